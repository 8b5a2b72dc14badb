/* A recorder, and then the recovery of its session, are killed at each step. Each event is stored
 * or counted as lost, once. */
#include "agent/assembler/assembler.h"
#include "agent/drain/arena_view.h"
#include "agent/drain/drain.h"
#include "agent/drain/read_progress.h"
#include "agent/drain/thread_drain.h"
#include "agent/host/clock.h"
#include "agent/host/directories.h"
#include "agent/recording/recovery.h"
#include "agent/session/journal.h"
#include "agent/session/metadata_store.h"
#include "proto/wire/frame.h"
#include "proto/wire/sojourn.pb-c.h"
#include "tests/support/check.h"
#include "tests/support/fake_arena.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FUNCTION = 5,
    STACK = 0x7f0000,
    THREADS = 2,
    CHUNKS = 4,
    BLOCK_EVENTS = 16,
    CALLS = 5, /* by each thread, between two losses */
    LOST = 3,  /* calls */
    REFUSED = 4,
    KILLED = 77, /* exit status */
    EARLY = 15,  /* steps of a recorder */
    MOST_STEPS = 2000
};

static const char name[] = "0102030405060708090a0b0c0d0e0f10";
static const sj_session_id id = {.bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

typedef struct fixture {
    char root[64];
    char spool[128];
    char path[128]; /* path of the .to file */
    fake_arena arena;
    pid_t pid;
    uint64_t events;
} fixture;

static bool gives_up; /* true if no recorder can end a thread */

/* The steps of a process that is to be killed. */
static uint64_t steps_left = UINT64_MAX;
static uint64_t passed_ns; /* added to the drain's clock */

static void pass_step(void)
{
    if (steps_left-- == 0) {
        _exit(KILLED);
    }
}

/* Makes the linker's replacement of a function: there is a step before it. */
#define STEP_BEFORE(name, parameters, arguments)                                                   \
    void __real_##name parameters;                                                                 \
    void __wrap_##name parameters;                                                                 \
    void __wrap_##name parameters                                                                  \
    {                                                                                              \
        pass_step();                                                                               \
        __real_##name arguments;                                                                   \
    }

#define STEP_BEFORE_STATUS(name, parameters, arguments)                                            \
    sj_status __real_##name parameters;                                                            \
    sj_status __wrap_##name parameters;                                                            \
    sj_status __wrap_##name parameters                                                             \
    {                                                                                              \
        pass_step();                                                                               \
        return __real_##name arguments;                                                            \
    }

STEP_BEFORE(sj_read_progress_save, (sj_read_progress * progress), (progress))
STEP_BEFORE(sj_read_progress_offer,
            (sj_read_progress * progress, uint64_t number, uint64_t calls, uint64_t events),
            (progress, number, calls, events))
STEP_BEFORE(sj_read_progress_sent, (sj_read_progress * progress, uint64_t calls, uint64_t events),
            (progress, calls, events))
STEP_BEFORE(sj_read_progress_settle, (sj_read_progress * progress, uint64_t calls, uint64_t events),
            (progress, calls, events))
STEP_BEFORE(sj_journal_begin,
            (const sj_journal *journal, const sj_journal_sums *sums, uint64_t spool_end),
            (journal, sums, spool_end))
STEP_BEFORE(sj_journal_commit, (const sj_journal *journal, bool appended), (journal, appended))
STEP_BEFORE(sj_arena_view_recycle, (const sj_arena_view *view, uint32_t slot), (view, slot))
STEP_BEFORE_STATUS(sj_spool_append, (sj_spool * spool, sj_slice frame, sj_error *error),
                   (spool, frame, error))

static bool keeps_block; /* true while the flight recorder writes the file of a block */

static void pass_file_step(void)
{
    if (keeps_block) {
        pass_step();
    }
}

int __real_posix_fallocate(int fd, off_t offset, off_t size);
int __wrap_posix_fallocate(int fd, off_t offset, off_t size);
int __wrap_posix_fallocate(int fd, off_t offset, off_t size)
{
    pass_file_step();
    const int failure = __real_posix_fallocate(fd, offset, size);
    pass_file_step();
    return failure;
}

sj_status __real_sj_flight_recorder_block(sj_flight_recorder *flight, const sj_block_header *header,
                                          sj_slice bytes);
sj_status __wrap_sj_flight_recorder_block(sj_flight_recorder *flight, const sj_block_header *header,
                                          sj_slice bytes);
sj_status __wrap_sj_flight_recorder_block(sj_flight_recorder *flight, const sj_block_header *header,
                                          sj_slice bytes)
{
    pass_step();
    keeps_block = true;
    const sj_status status = __real_sj_flight_recorder_block(flight, header, bytes);
    keeps_block = false;
    return status;
}

STEP_BEFORE_STATUS(sj_flight_recorder_ship, (sj_flight_recorder * flight, uint64_t ticks),
                   (flight, ticks))

static bool threads_fail; /* no thread can be ended, so the drain gives up */

sj_status __real_sj_thread_drain_end(sj_thread_drain *thread, bool orderly, unsigned block_flags);
sj_status __wrap_sj_thread_drain_end(sj_thread_drain *thread, bool orderly, unsigned block_flags);
sj_status __wrap_sj_thread_drain_end(sj_thread_drain *thread, bool orderly, unsigned block_flags)
{
    return threads_fail ? SJ_ENOMEM : __real_sj_thread_drain_end(thread, orderly, block_flags);
}

sj_status __real_sj_assembler_new(const sj_assembler_options *options,
                                  const sj_assembler_sink *sink, sj_assembler **assembler);
sj_status __wrap_sj_assembler_new(const sj_assembler_options *options,
                                  const sj_assembler_sink *sink, sj_assembler **assembler);
sj_status __wrap_sj_assembler_new(const sj_assembler_options *options,
                                  const sj_assembler_sink *sink, sj_assembler **assembler)
{
    sj_assembler_options small = *options;
    small.block_events = BLOCK_EVENTS;
    return __real_sj_assembler_new(&small, sink, assembler);
}

uint64_t __real_sj_clock_ns(clockid_t clock);
uint64_t __wrap_sj_clock_ns(clockid_t clock);
uint64_t __wrap_sj_clock_ns(clockid_t clock)
{
    return __real_sj_clock_ns(clock) + passed_ns;
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

static void open_spool(const fixture *f, sj_spool **spool)
{
    const sj_spool_options options = {.directory = f->spool, .reserve_bytes = 1};
    sj_error error = {0};
    assert_int_equal(sj_spool_open(&options, spool, &error), SJ_OK);
}

/* Spools the first frame of a session. Recovery does not read its content. */
static void announce(const fixture *f)
{
    uint8_t frame[64];
    size_t size = 0;
    sj_spool *spool = NULL;
    open_spool(f, &spool);
    assert_int_equal(
        sj_frame_write(SJ_FRAME_SESSION, (sj_slice){0}, (sj_slice){0}, frame, sizeof(frame), &size),
        SJ_OK);
    assert_int_equal(sj_spool_append(spool, (sj_slice){.data = frame, .size = size}, NULL), SJ_OK);
    sj_spool_close(spool);
}

static void call(fixture *f, fake_thread *thread)
{
    for (int i = 0; i < CALLS; i++) {
        assert_true(fake_thread_call(thread, FUNCTION));
    }
    f->events += 2 * CALLS;
}

/* Drops whole calls, and says so in the thread's stream or only in its slot. */
static void drop(fixture *f, fake_thread *thread, bool notes)
{
    sj_thread_slot *slot = sj_arena_view_slot(&f->arena.view, thread->slot);
    atomic_fetch_add(&slot->dropped_calls, LOST);
    atomic_fetch_add(&slot->dropped_events, 2 * LOST);
    f->events += 2 * LOST;
    if (notes) {
        assert_true(fake_thread_put(thread, SJ_RECORD_NOTE, SJ_NOTE_DROPPED_CALLS, LOST));
        assert_true(fake_thread_put(thread, SJ_RECORD_NOTE, SJ_NOTE_DROPPED_EVENTS, 2 * LOST));
    }
}

/* Records what ends in gaps of each kind: drops, an exit without an entry, a torn record, and
 * events of threads without a slot. */
static void record(fixture *f)
{
    sj_arena_header *header = sj_arena_view_header(&f->arena.view);
    for (uint32_t i = 0; i < THREADS; i++) {
        fake_thread thread;
        fake_thread_start(&thread, &f->arena, i, (uint32_t)f->pid + i);
        thread.ticks = sj_clock_ticks() - 1000000;
        sj_arena_view_slot(&f->arena.view, i)->start_ticks = thread.ticks;
        call(f, &thread);
        drop(f, &thread, true);
        call(f, &thread);
        assert_true(fake_thread_put(&thread, SJ_RECORD_LEAVE, FUNCTION, STACK));
        assert_non_null(fake_thread_reserve(&thread));
        f->events += 2;
        call(f, &thread);
        drop(f, &thread, i == 0);
    }
    atomic_store(&header->threads_refused, 1);
    atomic_store(&header->calls_refused, REFUSED);
    atomic_store(&header->events_refused, 2 * REFUSED);
    f->events += 2 * REFUSED;
}

static void set_up(fixture *f)
{
    static pid_t pid;
    pid = pid != 0 ? pid : end_process();
    *f = (fixture){.pid = pid};
    snprintf(f->root, sizeof(f->root), "/dev/shm/sj-test-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    snprintf(f->spool, sizeof(f->spool), "%s/%s", f->root, name);
    fake_arena_make(&f->arena, "1.0.arena", THREADS, CHUNKS);
    snprintf(f->path, sizeof(f->path), "%s/%s.to", f->root, name);
    FILE *file = fopen(f->path, "w");
    fprintf(file, "tcp://collector:1\n%s\n1\n", f->arena.directory);
    fclose(file);
    announce(f);
    record(f);
}

static void tear_down(fixture *f)
{
    fake_arena_remove(&f->arena);
    sj_directory_remove(f->arena.directory);
    sj_directory_remove(f->spool);
    sj_directory_remove(f->root);
    assert_int_not_equal(access(f->root, F_OK), 0);
}

static void begin_session(sj_frame_writer *writer)
{
    Sojourn__Session session = SOJOURN__SESSION__INIT;
    session.session_id = sj_frame_writer_session_bytes(writer);
    assert_int_equal(sj_frame_writer_send(writer, SJ_FRAME_SESSION, &session.base, (sj_slice){0}),
                     SJ_OK);
}

/* Records a session as `record` does, up to the end of the drain. */
static void run_recorder(const fixture *f, const sj_policy *policy)
{
    sj_journal journal;
    sj_error error = {0};
    sj_frame_writer *writer = NULL;
    sj_registry *registry = NULL;
    sj_drain *drain = NULL;
    sj_spool *spool = NULL;
    sj_selection selection = {0};
    sj_function_rules *rules = NULL;
    sj_metadata_store *metadata = NULL;
    sj_journal_process process = {.number = 1, .pid = (uint32_t)f->pid, .how = "launch"};
    snprintf(process.arena_name, sizeof(process.arena_name), "1.0.arena");
    open_spool(f, &spool);
    assert_int_equal(sj_journal_create(f->arena.directory, &id, &journal, &error), SJ_OK);
    journal.data->ns_per_tick = 1;
    sj_journal_add_process(&journal, &process);
    assert_int_equal(sj_metadata_store_new(f->arena.directory, &metadata), SJ_OK);
    const sj_frame_writer_options options = {
        .session = id, .spool = spool, .control_store = metadata, .journal = &journal};
    assert_int_equal(sj_frame_writer_new(&options, &writer), SJ_OK);
    begin_session(writer);
    if (policy != NULL) {
        assert_int_equal(sj_function_rules_new(policy, &rules), SJ_OK);
    }
    const sj_registry_options registered = {
        .writer = writer, .selection = &selection, .runtime_directory = f->arena.directory};
    assert_int_equal(sj_registry_new(&registered, &registry), SJ_OK);
    assert_int_equal(sj_registry_adopt_process(registry, &process), SJ_OK);
    const sj_drain_options drained = {.writer = writer,
                                      .registry = registry,
                                      .runtime_directory = f->arena.directory,
                                      .journal = &journal,
                                      .policy = policy,
                                      .rules = rules,
                                      .ns_per_tick = 1,
                                      .flush_ms = 1,
                                      .threadless = true};
    assert_int_equal(sj_drain_start(&drained, &drain, &error), SJ_OK);
    assert_int_equal(sj_drain_add(drain, 1, f->pid, process.arena_name), SJ_OK);
    sj_drain_finish(drain);
    _exit(0);
}

static void run_recovery(const fixture *f)
{
    unsigned count = 0;
    sj_error error = {0};
    if (sj_recovery_all(f->root, &count, &error) != SJ_OK) {
        fail_msg("recovery: %s", error.text);
    }
}

/* Runs the recorder, or a recovery, in a process that is killed after `steps` steps. Returns true
 * if it was killed. */
static bool is_killed(const fixture *f, const sj_policy *policy, bool is_recovery, uint64_t steps)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        steps_left = steps;
        if (is_recovery) {
            run_recovery(f);
        } else {
            threads_fail = gives_up;
            run_recorder(f, policy);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_true(WEXITSTATUS(status) == KILLED || WEXITSTATUS(status) == 0);
    return WEXITSTATUS(status) == KILLED;
}

/* The events that the frames of a session report. */
typedef struct reported {
    uint64_t ends;
    uint64_t stored_events; /* by the session's end; also below */
    uint64_t lost_events;
    uint64_t gap_events; /* by the gap frames and the gaps of blocks */
    /* The blocks of the last child session, which a flight recorder sends. */
    uint64_t child_events;
    uint64_t child_lost_events;
} reported;

static bool is_own_session(const ProtobufCBinaryData *session)
{
    return session->len == sizeof(id.bytes) && memcmp(session->data, id.bytes, session->len) == 0;
}

static void add_block(const sj_frame_view *frame, reported *all)
{
    sj_block_header header;
    Sojourn__BlockInfo *info =
        sojourn__block_info__unpack(NULL, frame->header.size, frame->header.data);
    assert_int_equal(sj_block_read_header(frame->payload, &header), SJ_OK);
    if (is_own_session(&info->session_id)) {
        all->gap_events += header.lost_events;
    } else {
        all->child_events += header.event_count;
        all->child_lost_events += header.lost_events;
    }
    sojourn__block_info__free_unpacked(info, NULL);
}

static void add_end(const sj_frame_view *frame, reported *all)
{
    Sojourn__SessionEnd *end =
        sojourn__session_end__unpack(NULL, frame->header.size, frame->header.data);
    if (is_own_session(&end->session_id)) {
        all->ends++;
        all->stored_events = end->records;
        all->lost_events = end->lost_events;
    }
    sojourn__session_end__free_unpacked(end, NULL);
}

static void add_frame(const sj_frame_view *frame, reported *all)
{
    if (frame->type == SJ_FRAME_SESSION) {
        all->child_events = all->child_lost_events = 0;
    } else if (frame->type == SJ_FRAME_SESSION_END) {
        add_end(frame, all);
    } else if (frame->type == SJ_FRAME_GAP) {
        Sojourn__Gap *gap = sojourn__gap__unpack(NULL, frame->header.size, frame->header.data);
        all->gap_events += gap->events;
        sojourn__gap__free_unpacked(gap, NULL);
    } else if (frame->type == SJ_FRAME_BLOCK) {
        add_block(frame, all);
    }
}

/* Compares the sums of the session's end with the gaps, and with what the program recorded. */
static void check_session(const fixture *f, uint64_t steps, uint64_t recovery_steps)
{
    sj_spool *spool = NULL;
    sj_slice bytes;
    uint64_t position;
    reported all = {0};
    open_spool(f, &spool);
    while (sj_spool_next(spool, &bytes, &position) == SJ_OK) {
        sj_frame_view frame;
        assert_int_equal(sj_frame_read(bytes, &frame), SJ_OK);
        add_frame(&frame, &all);
    }
    sj_spool_close(spool);
    all.stored_events += all.child_events;
    all.lost_events += all.child_lost_events;
    all.gap_events += all.child_lost_events;
    assert_int_not_equal(all.ends, 0);
    if (all.stored_events + all.lost_events != f->events || all.gap_events != all.lost_events) {
        fail_msg("killed after %llu and %llu steps: of %llu events, %llu are stored, %llu lost, "
                 "%llu in gaps",
                 (unsigned long long)steps, (unsigned long long)recovery_steps,
                 (unsigned long long)f->events, (unsigned long long)all.stored_events,
                 (unsigned long long)all.lost_events, (unsigned long long)all.gap_events);
    }
}

/* Kills the recorder after `steps` steps, and its recovery after `recovery_steps`. Returns false if
 * a process had fewer steps. */
static bool survives(const sj_policy *policy, uint64_t steps, uint64_t recovery_steps)
{
    fixture f;
    set_up(&f);
    const bool recorder = is_killed(&f, policy, false, steps);
    const bool recovery = recovery_steps != UINT64_MAX && is_killed(&f, NULL, true, recovery_steps);
    run_recovery(&f);
    check_session(&f, steps, recovery_steps);
    tear_down(&f);
    return recorder && (recovery || recovery_steps == UINT64_MAX);
}

static void kill_recorders(const sj_policy *policy)
{
    uint64_t steps = 0;
    while (steps < MOST_STEPS && survives(policy, steps, UINT64_MAX)) {
        steps++;
    }
    assert_in_range(steps, 20, MOST_STEPS - 1);
}

/* Kills the recoveries of a recorder that was killed in its first blocks. */
static void kill_recoveries(const sj_policy *policy)
{
    uint64_t steps = 0;
    while (steps < MOST_STEPS && survives(policy, EARLY, steps)) {
        steps++;
    }
    assert_in_range(steps, 10, MOST_STEPS - 1);
}

static const char profile[] = "{\"policy\": 1, \"mode\": \"profile\"}";
static const char flight[] = "{\"policy\": 1, \"mode\": \"flight\", \"flight\": {\"before\": "
                             "\"600s\", \"memory\": \"16M\"}}";

static void read_policy(const char *text, sj_policy *policy)
{
    sj_error error = {0};
    assert_int_equal(sj_policy_parse(text, strlen(text), "test", policy, &error), SJ_OK);
}

static void a_killed_recorder_loses_and_repeats_nothing(void **state)
{
    (void)state;
    kill_recorders(NULL);
}

static void kill_recorders_with(const char *text)
{
    sj_policy policy;
    read_policy(text, &policy);
    kill_recorders(&policy);
    sj_policy_free(&policy);
}

static void a_killed_recorder_of_a_profile_loses_and_repeats_nothing(void **state)
{
    (void)state;
    kill_recorders_with(profile);
}

static void a_killed_recorder_in_flight_mode_loses_and_repeats_nothing(void **state)
{
    (void)state;
    kill_recorders_with(flight);
}

/* The recorder cannot end any thread, so it reports the rest as lost. Its recovery can. */
static void a_recorder_killed_while_it_gives_up_loses_and_repeats_nothing(void **state)
{
    (void)state;
    gives_up = true;
    kill_recorders(NULL);
    kill_recorders_with(profile);
    gives_up = false;
}

static void a_killed_recovery_loses_and_repeats_nothing(void **state)
{
    sj_policy policy;
    (void)state;
    kill_recoveries(NULL);
    read_policy(profile, &policy);
    kill_recoveries(&policy);
    sj_policy_free(&policy);
    read_policy(flight, &policy);
    kill_recoveries(&policy);
    sj_policy_free(&policy);
}

static char home[] = "/tmp/sj_recovery_XXXXXX"; /* the device's folder */

static int make_home(void **state)
{
    (void)state;
    return mkdtemp(home) == NULL || setenv("XDG_STATE_HOME", home, 1) != 0;
}

static int remove_home(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", home);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_recorder_loses_and_repeats_nothing),
        cmocka_unit_test(a_killed_recorder_of_a_profile_loses_and_repeats_nothing),
        cmocka_unit_test(a_killed_recorder_in_flight_mode_loses_and_repeats_nothing),
        cmocka_unit_test(a_recorder_killed_while_it_gives_up_loses_and_repeats_nothing),
        cmocka_unit_test(a_killed_recovery_loses_and_repeats_nothing),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
