/* Lets allocations of a drain's steps fail. Each record must be sent or reported as lost, exactly
 * once. */
#include "agent/drain/drain.h"
#include "agent/drain/process_drain.h"
#include "agent/host/clock.h"
#include "tests/support/check.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/fake_arena.h"
#include "tests/support/test_session.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    FUNCTION = 5,
    STACK = 0x7f0000,
    BLOCK_EVENTS = 16,
    THREADS = 2,
    CHUNKS = 2,
    DEPTH = 5,
    TREES = 4, /* trees of DEPTH calls each, for each thread and each step */
    STEPS = 3,
    STEP_NS = 25000000, /* time between two full checks */
    DROPPED_CALLS = 3,
    OPEN_CALLS = 2 /* calls open at the attach */
};

typedef enum shortage { ONCE, LASTING } shortage;

typedef struct fixture {
    test_session *session;
    fake_arena arena;
    fake_thread threads[THREADS];
    sj_selection selection;
    sj_registry *registry;
    sj_function_rules *rules;
    sj_drain *drain;
    uint64_t calls; /* calls that the program recorded or dropped */
    uint64_t events;
} fixture;

static atomic_bool next_poll_fails;
static _Atomic uint64_t passed_ns; /* time that the test adds to the drain's clock */

uint64_t __real_sj_clock_ns(clockid_t clock);
uint64_t __wrap_sj_clock_ns(clockid_t clock);
uint64_t __wrap_sj_clock_ns(clockid_t clock)
{
    return __real_sj_clock_ns(clock) + atomic_load(&passed_ns);
}

sj_status __real_sj_process_drain_poll(sj_process_drain *process, uint64_t now_ns,
                                       uint64_t *records);
sj_status __wrap_sj_process_drain_poll(sj_process_drain *process, uint64_t now_ns,
                                       uint64_t *records);
sj_status __wrap_sj_process_drain_poll(sj_process_drain *process, uint64_t now_ns,
                                       uint64_t *records)
{
    return atomic_exchange(&next_poll_fails, false)
               ? SJ_EIO
               : __real_sj_process_drain_poll(process, now_ns, records);
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

static _Atomic uint32_t mapping_failures; /* number of mappings of files that fail from now on */

void *__real_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (fd >= 0 && atomic_load(&mapping_failures) > 0) {
        atomic_fetch_sub(&mapping_failures, 1);
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(address, bytes, protection, flags, fd, offset);
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

static void set_up(fixture *f, pid_t pid, const sj_policy *policy, bool threadless)
{
    sj_error error = {0};
    *f = (fixture){.session = test_session_open(0)};
    const uint64_t ticks = sj_clock_ticks() - 1000000;
    fake_arena_make(&f->arena, "1.0.arena", THREADS, CHUNKS);
    for (uint32_t i = 0; i < THREADS; i++) {
        fake_thread_start(&f->threads[i], &f->arena, i, (uint32_t)pid);
        f->threads[i].ticks = ticks;
        /* The threads start at the same time, so none counts as the successor of another. */
        sj_arena_view_slot(&f->arena.view, i)->start_ticks = ticks;
    }
    if (policy != NULL) {
        assert_int_equal(sj_function_rules_new(policy, &f->rules), SJ_OK);
    }
    const sj_registry_options registry = {.writer = f->session->writer,
                                          .selection = &f->selection,
                                          .runtime_directory = f->arena.directory};
    assert_int_equal(sj_registry_new(&registry, &f->registry), SJ_OK);
    const sj_journal_process process = {
        .number = 1, .pid = (uint32_t)pid, .how = "launch", .arena_name = "1.0.arena"};
    assert_int_equal(sj_registry_adopt_process(f->registry, &process), SJ_OK);
    const sj_drain_options drain = {.writer = f->session->writer,
                                    .registry = f->registry,
                                    .runtime_directory = f->arena.directory,
                                    .policy = policy,
                                    .rules = f->rules,
                                    .ns_per_tick = 1,
                                    .flush_ms = 1,
                                    .threadless = threadless};
    assert_int_equal(sj_drain_start(&drain, &f->drain, &error), SJ_OK);
    assert_int_equal(sj_drain_add(f->drain, 1, pid, "1.0.arena"), SJ_OK);
}

static void tear_down(fixture *f)
{
    sj_drain_free(f->drain);
    sj_registry_free(f->registry);
    sj_function_rules_free(f->rules);
    fake_arena_remove(&f->arena);
    test_session_close(f->session);
}

static void record(fixture *f, fake_thread *thread)
{
    for (int tree = 0; tree < TREES; tree++) {
        for (uint64_t i = 0; i < DEPTH; i++) {
            assert_true(fake_thread_put(thread, SJ_RECORD_ENTER, FUNCTION, STACK - 16 * i));
        }
        for (uint64_t i = DEPTH; i-- > 0;) {
            assert_true(fake_thread_put(thread, SJ_RECORD_LEAVE, FUNCTION, STACK - 16 * i));
        }
    }
    f->calls += TREES * DEPTH;
    f->events += TREES * DEPTH * 2;
}

/* Lets the thread drop whole calls, with or without a note in its stream. */
static void drop(fixture *f, fake_thread *thread, bool notes)
{
    sj_thread_slot *slot = sj_arena_view_slot(&f->arena.view, thread->slot);
    atomic_fetch_add(&slot->dropped_calls, DROPPED_CALLS);
    atomic_fetch_add(&slot->dropped_events, DROPPED_CALLS * 2);
    f->calls += DROPPED_CALLS;
    f->events += DROPPED_CALLS * 2;
    if (notes) {
        assert_true(fake_thread_put(thread, SJ_RECORD_NOTE, SJ_NOTE_DROPPED_CALLS, DROPPED_CALLS));
        assert_true(
            fake_thread_put(thread, SJ_RECORD_NOTE, SJ_NOTE_DROPPED_EVENTS, DROPPED_CALLS * 2));
    }
}

/* A thread reserves a slot for a record and never writes it. */
static void tear(fixture *f, fake_thread *thread)
{
    assert_non_null(fake_thread_reserve(thread));
    f->events++;
}

static void attach(fixture *f, pid_t pid)
{
    const sj_open_call_at_attach calls[OPEN_CALLS] = {
        {.tid = pid, .function = FUNCTION, .stack = STACK + 64},
        {.tid = pid, .function = FUNCTION, .stack = STACK + 32}};
    /* otherwise the other thread would succeed this one */
    const uint64_t ticks = f->threads[0].ticks;
    assert_int_equal(sj_drain_preopen(f->drain, pid, calls, OPEN_CALLS, ticks), SJ_OK);
    assert_true(fake_thread_put(&f->threads[0], SJ_RECORD_LEAVE, FUNCTION, STACK + 32));
    assert_true(fake_thread_put(&f->threads[0], SJ_RECORD_LEAVE, FUNCTION, STACK + 64));
    f->calls += OPEN_CALLS;
    f->events += OPEN_CALLS * 2;
}

static void check(fixture *f)
{
    sj_drain_counters drain;
    sj_frame_writer_counters sent;
    sj_drain_get_counters(f->drain, &drain);
    sj_frame_writer_get_counters(f->session->writer, &sent);
    const uint64_t lost_events = sent.block_lost_events + sent.gap_events + drain.unreported_events;
    const uint64_t lost_calls = sent.block_lost_calls + sent.gap_calls + drain.unreported_calls;
    assert_int_equal(sent.block_events + lost_events, f->events);
    assert_true(sent.block_calls + lost_calls <= f->calls);
    assert_true(lost_events != 0 || sent.block_calls == f->calls);
    assert_int_equal(sent.block_lost_calls <= sent.block_lost_events, true);
}

static void record_all(fixture *f)
{
    record(f, &f->threads[0]);
    drop(f, &f->threads[0], true);
    record(f, &f->threads[0]);
    drop(f, &f->threads[1], false);
    record(f, &f->threads[1]);
    tear(f, &f->threads[1]);
    record(f, &f->threads[1]);
}

/* True if an allocation failed. Adds 1 to `*failures` if a step failed. */
static bool run(uint64_t n, shortage kind, bool has_ended, const sj_policy *policy,
                unsigned *failures)
{
    fixture f;
    sj_drain_counters drain;
    const pid_t pid = has_ended ? end_process() : getpid();
    set_up(&f, pid, policy, true);
    attach(&f, pid);
    (kind == ONCE ? fail_alloc_at : fail_alloc_from)(n);
    if (has_ended) {
        record_all(&f);
    }
    for (int i = 0; i < STEPS; i++) {
        bool busy = false;
        atomic_fetch_add(&passed_ns, STEP_NS);
        (void)!sj_drain_step(f.drain, &busy);
        if (!has_ended) {
            record_all(&f);
        }
    }
    sj_drain_finish(f.drain);
    const bool failed = fail_alloc_stop();
    sj_drain_get_counters(f.drain, &drain);
    *failures += drain.failure != SJ_OK;
    check(&f);
    tear_down(&f);
    return failed;
}

static void fail_each(shortage kind, bool has_ended, const sj_policy *policy)
{
    unsigned failures = 0;
    uint64_t n = 0;
    while (run(n, kind, has_ended, policy, &failures)) {
        n++;
    }
    assert_true(failures > 10);
}

static void a_lack_of_memory_loses_no_record_uncounted(void **state)
{
    (void)state;
    fail_each(ONCE, false, NULL);
    fail_each(ONCE, true, NULL);
}

static void a_lasting_lack_of_memory_loses_no_record_uncounted(void **state)
{
    (void)state;
    fail_each(LASTING, false, NULL);
    fail_each(LASTING, true, NULL);
}

/* The sums of a profile that cannot be sent are reported as lost, too. */
static void a_profile_of_a_failed_drain_counts_its_calls_as_lost(void **state)
{
    static const char text[] = "{\"policy\": 1, \"mode\": \"profile\"}";
    sj_policy policy;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_policy_parse(text, sizeof(text) - 1, "test", &policy, &error), SJ_OK);
    fail_each(ONCE, false, &policy);
    fail_each(LASTING, true, &policy);
    sj_policy_free(&policy);
}

/* The drain's thread ends only with the recording, so records written after the failure are
 * sent. */
static void records_after_the_failure_are_sent(void **state)
{
    fixture f;
    sj_drain_counters drain = {0};
    (void)state;
    atomic_store(&next_poll_fails, true);
    set_up(&f, getpid(), NULL, false);
    while (drain.failure == SJ_OK) {
        sched_yield();
        sj_drain_get_counters(f.drain, &drain);
    }
    assert_int_equal(drain.failure, SJ_EIO);
    assert_int_equal(sj_drain_catch_up(f.drain, 1), SJ_ECLOSED);
    record(&f, &f.threads[0]);
    sj_drain_finish(f.drain);
    sj_frame_writer_counters sent;
    sj_frame_writer_get_counters(f.session->writer, &sent);
    assert_int_equal(sent.block_calls, f.calls);
    check(&f);
    tear_down(&f);
}

/* Writes to `*drain` the counters of a process whose arena cannot be mapped `failures` times. */
static void drain_unmappable(uint32_t failures, pid_t pid, fixture *f, sj_drain_counters *drain)
{
    bool busy = false;
    set_up(f, pid, NULL, true);
    record(f, &f->threads[0]);
    atomic_store(&mapping_failures, failures);
    (void)!sj_drain_step(f->drain, &busy);
    sj_drain_finish(f->drain);
    assert_true(atomic_load(&mapping_failures) == 0 || failures == UINT32_MAX);
    atomic_store(&mapping_failures, 0);
    sj_drain_get_counters(f->drain, drain);
}

static void an_arena_is_mapped_once_there_is_memory(void **state)
{
    fixture f;
    sj_drain_counters drain;
    (void)state;
    drain_unmappable(1, end_process(), &f, &drain);
    assert_int_equal(drain.processes_without_arena, 0);
    check(&f);
    tear_down(&f);
    drain_unmappable(1, getpid(), &f, &drain);
    assert_int_equal(drain.failure, SJ_OK);
    assert_int_equal(drain.processes_without_arena, 0);
    check(&f);
    tear_down(&f);
}

static void a_process_whose_arena_is_never_mapped_is_counted(void **state)
{
    fixture f;
    sj_drain_counters drain;
    (void)state;
    drain_unmappable(UINT32_MAX, end_process(), &f, &drain);
    assert_int_equal(drain.processes_without_arena, 1);
    tear_down(&f);
}

/* Without memory, the drain reports the arena without reading its process. */
static void a_failed_drain_counts_a_process_of_another_version(void **state)
{
    fixture f;
    bool busy = false;
    sj_drain_counters drain;
    (void)state;
    set_up(&f, end_process(), NULL, true);
    record(&f, &f.threads[0]);
    sj_arena_view_header(&f.arena.view)->version = SJ_ARENA_VERSION + 1;
    fail_alloc_from(0);
    (void)!sj_drain_step(f.drain, &busy);
    sj_drain_finish(f.drain);
    assert_true(fail_alloc_stop());
    sj_drain_get_counters(f.drain, &drain);
    assert_int_not_equal(drain.failure, SJ_OK);
    assert_int_equal(drain.processes_unreadable, 1);
    assert_int_equal(drain.processes_without_arena, 0);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lack_of_memory_loses_no_record_uncounted),
        cmocka_unit_test(a_lasting_lack_of_memory_loses_no_record_uncounted),
        cmocka_unit_test(a_profile_of_a_failed_drain_counts_its_calls_as_lost),
        cmocka_unit_test(records_after_the_failure_are_sent),
        cmocka_unit_test(an_arena_is_mapped_once_there_is_memory),
        cmocka_unit_test(a_process_whose_arena_is_never_mapped_is_counted),
        cmocka_unit_test(a_failed_drain_counts_a_process_of_another_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
