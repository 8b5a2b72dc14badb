/* Tests what a recorder that continues after a kill reports of a thread. It reads the thread's
 * start and name from the slot, and sends them in place of what the killed recorder had sent. */
#include "agent/drain/thread_drain.h"
#include "agent/host/clock.h"

#include "tests/support/check.h"
#include "tests/support/fake_arena.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TID = 77, FUNCTION = 5, STACK = 0x7f0000 };

typedef struct fixture {
    fake_arena arena;
    fake_thread thread;
    char folder[64];
    sj_spool *spool;
    sj_frame_writer *writer;
    sj_drain_shared shared;
    sj_journal_data journal;
    sj_process_drain process;
    sj_thread_drain *drained;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof(*f));
    sj_error error = {0};
    fake_arena_make(&f->arena, "1.0.arena", 1, 4);
    fake_thread_start(&f->thread, &f->arena, 0, TID);
    snprintf(f->folder, sizeof(f->folder), "/tmp/sj_resumed_XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    const sj_spool_options spool = {.directory = f->folder, .reserve_bytes = 1};
    assert_int_equal(sj_spool_open(&spool, &f->spool, &error), SJ_OK);
    const sj_frame_writer_options writer = {.spool = f->spool};
    assert_int_equal(sj_frame_writer_new(&writer, &f->writer), SJ_OK);
    f->shared.options.writer = f->writer;
    f->shared.journal = &f->journal;
    f->shared.clock_step = 1;
    f->shared.buffer = malloc(SJ_CHUNK_RECORDS * sizeof(sj_record));
    assert_int_equal(sj_block_encoder_new(&f->shared.encoder), SJ_OK);
    f->process = (sj_process_drain){
        .shared = &f->shared, .tracked = {.pid = 1, .pidfd = -1}, .view = f->arena.view};
    assert_int_equal(sj_unhooked_set_new(&f->process.freed), SJ_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    char command[96];
    snprintf(command, sizeof(command), "rm -rf %s", f->folder);
    sj_thread_drain_free(f->drained);
    sj_unhooked_set_release(f->process.freed);
    sj_frame_writer_free(f->writer);
    sj_spool_close(f->spool);
    sj_block_encoder_free(f->shared.encoder);
    free(f->shared.buffer);
    fake_arena_remove(&f->arena);
    free(f);
    return system(command);
}

static void start(fixture *f)
{
    assert_int_equal(sj_thread_drain_new(&f->process, 0, &f->drained), SJ_OK);
}

/* Continues as another recorder, which has nothing but the arena. */
static void resume(fixture *f)
{
    sj_thread_drain_free(f->drained);
    f->shared = (sj_drain_shared){.options = {.writer = f->writer, .salvage = true},
                                  .journal = &f->journal,
                                  .clock_step = 1,
                                  .buffer = f->shared.buffer,
                                  .encoder = f->shared.encoder};
    start(f);
}

/* Calls that were open at the attach began before the thread's first record. */
static void a_thread_keeps_the_start_of_the_calls_that_were_open(void **state)
{
    fixture *f = *state;
    const uint64_t attached = f->thread.ticks - 1000000;
    sj_open_call_at_attach open = {.tid = TID, .function = FUNCTION, .stack = STACK};
    f->shared.preopened = &open;
    f->shared.preopened_count = 1;
    f->shared.preopened_pid = f->process.tracked.pid;
    f->shared.preopened_ticks = attached;
    start(f);
    assert_int_equal(f->drained->emitter.start_ticks, attached);
    const uint64_t number = f->drained->emitter.number;
    resume(f);
    assert_int_equal(f->drained->emitter.number, number);
    assert_int_equal(f->drained->emitter.start_ticks, attached);
}

static void a_thread_without_open_calls_starts_with_its_slot(void **state)
{
    fixture *f = *state;
    start(f);
    resume(f);
    assert_int_equal(f->drained->emitter.start_ticks, f->thread.ticks);
    assert_string_equal(f->drained->emitter.name, "fake");
}

static void a_thread_keeps_a_later_name(void **state)
{
    static const char longest[] = "worker-12345678";
    fixture *f = *state;
    start(f);
    f->drained->emitter.tid = (uint32_t)syscall(SYS_gettid);
    sj_tracked_process_open(getpid(), &f->process.tracked);
    f->drained->next_name_ns = 0;
    assert_int_equal(prctl(PR_SET_NAME, longest), 0);
    sj_thread_drain_follow_name(f->drained);
    assert_string_equal(f->drained->emitter.name, longest);
    resume(f);
    assert_string_equal(f->drained->emitter.name, longest);
    sj_tracked_process_close(&f->process.tracked);
}

#define RESUME_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RESUME_TEST(a_thread_keeps_the_start_of_the_calls_that_were_open),
        RESUME_TEST(a_thread_without_open_calls_starts_with_its_slot),
        RESUME_TEST(a_thread_keeps_a_later_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
