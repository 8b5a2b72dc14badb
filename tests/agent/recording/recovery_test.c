/* Tests the recovery of a session whose recorder was killed: which process may finish the session,
 * and what it delivers. */
#include "agent/recording/recovery.h"

#include "agent/host/clock.h"
#include "agent/session/journal.h"
#include "tests/support/check.h"
#include "tests/support/fake_arena.h"
#include "tests/support/test_session.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FUNCTION = 5, CALLS = 7 };

static const char name[] = "0102030405060708090a0b0c0d0e0f10";
static const sj_session_id id = {.bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

typedef struct fixture {
    char root[64];
    char path[128]; /* path of the .to file */
    fake_arena arena;
    fake_thread thread;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    snprintf(f.root, sizeof(f.root), "/tmp/sj_recovery_XXXXXX");
    assert_non_null(mkdtemp(f.root));
    assert_int_equal(setenv("XDG_STATE_HOME", f.root, 1), 0);
    fake_arena_make(&f.arena, "1.0.arena", 1, 4);
    snprintf(f.path, sizeof(f.path), "%s/%s.to", f.root, name);
    FILE *file = fopen(f.path, "w");
    fprintf(file, "tcp://collector:1\n%s\n1\n", f.arena.directory);
    fclose(file);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    char command[96];
    fake_arena_remove(&f->arena);
    snprintf(command, sizeof(command), "rm -rf %s", f->root);
    return system(command);
}

/* Returns the pid of a process that has ended. */
static pid_t end_process(void)
{
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    return child;
}

/* Spools the first frame of a session. Recovery does not read its content. */
static void announce(const fixture *f)
{
    char directory[128];
    uint8_t frame[64];
    size_t size = 0;
    const sj_spool_options options = {.directory = directory};
    sj_spool *spool = NULL;
    sj_error error = {0};
    snprintf(directory, sizeof(directory), "%s/%s", f->root, name);
    assert_int_equal(sj_spool_open(&options, &spool, &error), SJ_OK);
    assert_int_equal(
        sj_frame_write(SJ_FRAME_SESSION, (sj_slice){0}, (sj_slice){0}, frame, sizeof(frame), &size),
        SJ_OK);
    assert_int_equal(sj_spool_append(spool, (sj_slice){.data = frame, .size = size}, &error),
                     SJ_OK);
    assert_true(sj_spool_was_used(spool));
    sj_spool_close(spool);
}

/* Writes what a killed recorder leaves: a journal with one process, and calls in its arena. */
static void leave(fixture *f)
{
    sj_journal journal;
    sj_error error = {0};
    sj_journal_process process = {.number = 1, .pid = (uint32_t)end_process(), .how = "launch"};
    snprintf(process.arena_name, sizeof(process.arena_name), "1.0.arena");
    announce(f);
    assert_int_equal(sj_journal_create(f->arena.directory, &id, &journal, &error), SJ_OK);
    journal.data->ns_per_tick = 1;
    sj_journal_add_process(&journal, &process);
    sj_journal_close(&journal);
    fake_thread_start(&f->thread, &f->arena, 0, process.pid);
    f->thread.ticks = sj_clock_ticks() - 1000000;
    for (int i = 0; i < CALLS; i++) {
        assert_true(fake_thread_call(&f->thread, FUNCTION));
    }
}

/* Also leaves a block that was being written to the spool, `is_stored` or not. It has two calls
 * that are no longer in the arena. */
static void leave_block(fixture *f, bool is_stored)
{
    sj_journal journal;
    sj_error error = {0};
    leave(f);
    sj_thread_slot *slot = sj_arena_view_slot(&f->arena.view, 0);
    slot->cursor = (sj_slot_cursor){.thread = 1, .sequence = 1, .unsent = 4};
    slot->unsent_calls = 2;
    slot->offer = (sj_slot_offer){.number = 1};
    assert_int_equal(sj_journal_open(f->arena.directory, &journal, &error), SJ_OK);
    atomic_store(&journal.data->next_thread, 2);
    sj_journal_sums sums = {.blocks = 1, .block_calls = 2, .block_events = 4};
    sj_journal_begin(&journal, &sums, is_stored ? 0 : UINT64_MAX);
    sj_journal_close(&journal);
}

static void names_of_claims_are_session_ids(void **state)
{
    char text[64];
    (void)state;
    snprintf(text, sizeof(text), "%s.to", name);
    assert_true(sj_recovery_is_claim_name(text));
    assert_false(sj_recovery_is_claim_name(name));
    assert_false(sj_recovery_is_claim_name("0102.to"));
    text[3] = 'x';
    assert_false(sj_recovery_is_claim_name(text));
}

static void the_session_of_a_living_recorder_is_not_claimed(void **state)
{
    const fixture *f = *state;
    sj_recovery_claim claim;
    const int held = open(f->path, O_RDWR);
    assert_int_equal(flock(held, LOCK_EX), 0);
    assert_int_equal(sj_recovery_claim_session(f->path, &claim), SJ_EAGAIN);
    close(held);
    assert_int_equal(sj_recovery_claim_session(f->path, &claim), SJ_OK);
    assert_string_equal(claim.destination, "tcp://collector:1");
    assert_string_equal(claim.runtime_directory, f->arena.directory);
    sj_recovery_release(&claim, true);
    assert_int_equal(sj_recovery_claim_session(f->path, &claim), SJ_ENOTFOUND);
}

/* Opens a copy of the spool. Returns the end of the session, which the caller frees. */
static Sojourn__SessionEnd *read_end(const fixture *f, test_session **opened)
{
    test_session *session = *opened = test_session_open(0);
    const sj_spool_options options = {.directory = session->spool_directory, .reserve_bytes = 1};
    char command[512];
    sj_error error = {0};
    sj_spool_close(session->spool);
    snprintf(command, sizeof(command), "rm -rf %s && cp -r %s/%s %s", session->spool_directory,
             f->root, name, session->spool_directory);
    assert_int_equal(system(command), 0);
    assert_int_equal(sj_spool_open(&options, &session->spool, &error), SJ_OK);
    assert_int_equal(test_session_read(session, SJ_FRAME_SESSION_END), 1);
    return test_session_message(session, SJ_FRAME_SESSION_END, 0,
                                &sojourn__session_end__descriptor);
}

static void read_back(const fixture *f)
{
    test_session *session;
    Sojourn__SessionEnd *end = read_end(f, &session);
    assert_string_equal(end->how, "lost");
    assert_int_equal(end->calls, CALLS);
    assert_int_equal(end->lost_calls, 0);
    assert_int_not_equal(end->blocks, 0);
    assert_int_equal(test_session_read(session, SJ_FRAME_BLOCK), end->blocks);
    protobuf_c_message_free_unpacked(&end->base, NULL);
    test_session_close(session);
}

/* The recorder was killed between writing a block and recording that the spool has it. */
static void a_block_on_its_way_is_lost_only_if_it_is_not_stored(void **state)
{
    fixture *f = *state;
    for (int is_stored = 0; is_stored < 2; is_stored++) {
        unsigned count = 0;
        sj_error error = {0};
        test_session *session;
        char command[256];
        leave_block(f, is_stored != 0);
        assert_int_equal(sj_recovery_all(f->root, &count, &error), SJ_OK);
        assert_int_equal(count, 1);
        Sojourn__SessionEnd *end = read_end(f, &session);
        assert_int_equal(end->calls, CALLS + 2);
        assert_int_equal(end->lost_calls, is_stored ? 0 : 2);
        protobuf_c_message_free_unpacked(&end->base, NULL);
        test_session_close(session);
        snprintf(command, sizeof(command), "rm -rf %s/%s", f->root, name);
        assert_int_equal(system(command), 0);
        fake_arena_make(&f->arena, "1.0.arena", 1, 4);
        FILE *file = fopen(f->path, "w");
        fprintf(file, "tcp://collector:1\n%s\n1\n", f->arena.directory);
        fclose(file);
    }
}

static void recovery_sends_the_arenas_records_and_ends_the_session(void **state)
{
    fixture *f = *state;
    unsigned count = 0;
    sj_error error = {0};
    leave(f);
    assert_int_equal(sj_recovery_all(f->root, &count, &error), SJ_OK);
    assert_int_equal(count, 1);
    assert_int_not_equal(access(f->arena.directory, F_OK), 0);
    read_back(f);
    assert_int_equal(sj_recovery_all(f->root, &count, &error), SJ_OK);
    assert_int_equal(count, 0); /* recovery happens only once */
    assert_int_equal(mkdir(f->arena.directory, 0700), 0);
}

/* Another version wrote the arena, so its records cannot be read. The process frame reports
 * that. */
static void records_of_another_version_are_reported_as_lost(void **state)
{
    fixture *f = *state;
    sj_recovery_claim claim;
    sj_recovery_result result;
    sj_error error = {0};
    test_session *session;
    leave(f);
    sj_arena_view_header(&f->arena.view)->version = SJ_ARENA_VERSION + 1;
    assert_int_equal(sj_recovery_claim_session(f->path, &claim), SJ_OK);
    assert_int_equal(sj_recovery_session(&claim, &result, &error), SJ_OK);
    sj_recovery_release(&claim, false);
    assert_true(result.recovered);
    assert_int_equal(result.unreadable_processes, 1);
    protobuf_c_message_free_unpacked(&read_end(f, &session)->base, NULL);
    const size_t last = test_session_read(session, SJ_FRAME_PROCESS) - 1;
    Sojourn__Process *process =
        test_session_message(session, SJ_FRAME_PROCESS, last, &sojourn__process__descriptor);
    assert_int_equal(process->disarm_reason, SJ_DISARM_UNREADABLE);
    protobuf_c_message_free_unpacked(&process->base, NULL);
    test_session_close(session);
    assert_int_equal(mkdir(f->arena.directory, 0700), 0);
}

/* Runs recovery on a journal with this clock rate and an empty spool. It must recover nothing. */
static void recover_nothing(const fixture *f, double ns_per_tick)
{
    sj_journal journal;
    sj_recovery_claim claim;
    sj_recovery_result result;
    sj_error error = {0};
    assert_int_equal(sj_journal_create(f->arena.directory, &id, &journal, &error), SJ_OK);
    journal.data->ns_per_tick = ns_per_tick;
    sj_journal_close(&journal);
    assert_int_equal(sj_recovery_claim_session(f->path, &claim), SJ_OK);
    assert_int_equal(sj_recovery_session(&claim, &result, &error), SJ_OK);
    assert_false(result.recovered);
    assert_int_not_equal(access(f->arena.directory, F_OK), 0);
    sj_recovery_release(&claim, false);
    assert_int_equal(mkdir(f->arena.directory, 0700), 0);
}

static void a_session_that_was_never_announced_is_removed(void **state)
{
    recover_nothing(*state, 0);
}

/* The recorder was killed after it stored its clock rate and before the session's first frame. The
 * collector would refuse a session end without a start. */
static void a_session_without_a_frame_gets_no_end(void **state)
{
    const fixture *f = *state;
    char directory[128];
    const sj_spool_options options = {.directory = directory, .reserve_bytes = 1};
    sj_spool *spool = NULL;
    sj_error error = {0};
    snprintf(directory, sizeof(directory), "%s/%s", f->root, name);
    recover_nothing(f, 1); /* the spool does not exist yet */
    assert_int_equal(sj_spool_open(&options, &spool, &error), SJ_OK);
    sj_spool_close(spool);
    recover_nothing(f, 1);
    assert_int_equal(sj_spool_open(&options, &spool, &error), SJ_OK);
    assert_false(sj_spool_was_used(spool));
    assert_int_equal(sj_spool_remove(spool, &error), SJ_OK);
    assert_int_not_equal(access(directory, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_claims_are_session_ids),
        cmocka_unit_test_setup_teardown(the_session_of_a_living_recorder_is_not_claimed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(recovery_sends_the_arenas_records_and_ends_the_session,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_block_on_its_way_is_lost_only_if_it_is_not_stored, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(records_of_another_version_are_reported_as_lost, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_session_that_was_never_announced_is_removed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_session_without_a_frame_gets_no_end, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
