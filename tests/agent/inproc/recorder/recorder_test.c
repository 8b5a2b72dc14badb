/* Tests that every record is either in the arena or counted as dropped, whichever code interrupts
 * another. */
#include "agent/inproc/recorder/address_space.h"
#include "agent/inproc/recorder/callers.h"
#include "agent/inproc/recorder/changes.h"
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/values.h"
#include "tests/agent/inproc/recorder/arena_account.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <cmocka.h>

/* A slot of the window that has been counted is all 0. Otherwise its bytes would be read as short
 * records. */
static void check_counted_places(uint32_t chunks)
{
    static const sj_record nothing;
    const sj_record *window = (const sj_record *)(arena + sj_arena_discard_offset(2, chunks, 0));
    for (uint32_t i = 0; i < SJ_DISCARD_RECORDS; i++) {
        CHECK(sj_record_tag(&window[i]) != 0 || memcmp(&window[i], &nothing, sizeof(nothing)) == 0);
    }
}

static void drop_when_full(const char *directory)
{
    enum { CALLS = 100003, CHUNKS = 4 };
    start(directory, make_welcome(2, CHUNKS, SJ_FULL_DROP_NEW));
    errno = 77;
    call_times(CALLS);
    CHECK(errno == 77);
    check_account(0, (tally){0}, CALLS);
    CHECK(atomic_load(&arena_slot(arena, 0)->dropped_calls) > 0);
    check_counted_places(CHUNKS);

    /* Chunks are free again. The notes come first and agree exactly with the counters. */
    tally sum = {0};
    drain_thread(arena, 0, true, &sum);
    CHECK(sum.enters + sum.leaves == CHUNKS * SJ_CHUNK_RECORDS);
    call_times(SJ_DISCARD_RECORDS);
    const sj_record *first =
        (const sj_record *)(arena + sj_arena_chunk_offset(2, CHUNKS, 0, 0) + SJ_CHUNK_HEADER_BYTES);
    CHECK(sj_record_tag(&first[0]) == (UINT32_C(2) << 30 | SJ_NOTE_DROPPED_CALLS));
    CHECK(sj_record_tag(&first[1]) == (UINT32_C(2) << 30 | SJ_NOTE_DROPPED_EVENTS));
    CHECK(sj_record_stack(&first[0]) == atomic_load(&arena_slot(arena, 0)->dropped_calls));
    CHECK(sj_record_stack(&first[1]) == atomic_load(&arena_slot(arena, 0)->dropped_events));
    check_account(0, sum, CALLS + SJ_DISCARD_RECORDS);
    CHECK(atomic_load(&arena_slot(arena, 0)->waited_ticks) == 0);
}

static void test_full_ring_drops_and_notes_exact_counts(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(drop_when_full), 0);
}

/* True if the byte at an address can be read. */
static bool is_mapped(const volatile uint8_t *address)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    const bool is_read = write(ends[1], (const void *)(uintptr_t)address, 1) == 1;
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
    return is_read;
}

/* The program may map addresses that the recorder has unmapped, and keeps its mapping. */
static void give_space_back(const char *directory)
{
    enum { THREADS = 64, KEPT = 16, CHUNKS = 2 };
    start(directory, make_welcome(THREADS, CHUNKS, SJ_FULL_DROP_NEW));
    call_times(5);
    const uint64_t low = sj_arena_chunk_offset(THREADS, CHUNKS, KEPT, 0);
    const uint64_t high = sj_arena_counted_offset(THREADS, CHUNKS);
    uint8_t *base = (uint8_t *)sj_recorder.arena;
    sj_recorder_limit_space(UINT64_MAX);
    CHECK(is_mapped(base + low) && is_mapped(base + high - 1));
    sj_recorder_limit_space(0);
    sj_recorder_limit_space(1);
    CHECK(is_mapped(base + low - 1) && !is_mapped(base + low));
    CHECK(!is_mapped(base + high - 1) && is_mapped(base + high));
    volatile uint8_t *hole = mmap(base + low, high - low, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(hole == base + low);
    hole[0] = 7;
    call_times(5);
    check_account(0, (tally){0}, 10);
    sj_recorder_unmap();
    CHECK(hole[0] == 7 && hole[high - low - 1] == 0);
    CHECK(!is_mapped(base) && !is_mapped(base + low - 1) && !is_mapped(base + high));
}

static void test_address_space_of_ended_arenas_is_released(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(give_space_back), 0);
}

/* Two threads call exec at once, and the kernel refuses one of the programs. */
static void announce_two_programs(const char *directory)
{
    start(directory, make_welcome(2, 2, SJ_FULL_DROP_NEW));
    sj_arena_header *header = (sj_arena_header *)arena;
    sj_recorder_begin_exec(SJ_UNRECORDED_NONE);
    sj_recorder_begin_exec(SJ_UNRECORDED_KIND);
    sj_recorder_cancel_exec(SJ_UNRECORDED_KIND);
    CHECK(sj_arena_execs_that_join(atomic_load(&header->own_execs)) == 1);
    CHECK(sj_arena_execs_counted(atomic_load(&header->own_execs)) == 0);
    CHECK(atomic_load(sj_arena_unrecorded(header, SJ_UNRECORDED_KIND)) == 0);
    sj_recorder_begin_exec(SJ_UNRECORDED_UNFOLLOWED);
    sj_recorder_cancel_exec(SJ_UNRECORDED_NONE);
    CHECK(sj_arena_execs_that_join(atomic_load(&header->own_execs)) == 0);
    CHECK(sj_arena_execs_counted(atomic_load(&header->own_execs)) == 1);
    CHECK(atomic_load(sj_arena_unrecorded(header, SJ_UNRECORDED_UNFOLLOWED)) == 1);
    sj_recorder_cancel_exec(SJ_UNRECORDED_UNFOLLOWED);
    CHECK(atomic_load(&header->own_execs) == 0);
}

static void test_programs_that_are_executed_at_once_have_marks_of_their_own(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(announce_two_programs), 0);
}

static void test_arenas_take_an_eighth_of_the_address_space(void **state)
{
    (void)state;
    assert_int_equal(sj_address_space_threads(512, 64, UINT64_MAX), 512);
    assert_int_equal(sj_address_space_threads(512, 64, 800000000), 16);
    assert_true(sj_address_space_is_enough(16, 64, 800000000));
    assert_int_equal(sj_address_space_threads(512, 64, UINT64_C(8) << 30), 128);
    assert_int_equal(sj_address_space_threads(40, 64, 0), 16);
    assert_int_equal(sj_address_space_threads(2, 64, 0), 2);
    assert_true(!sj_address_space_is_enough(16, 64, 500000000));
}

static void wait_when_full(const char *directory)
{
    enum { CALLS = 50021 };
    start(directory, make_welcome(2, 2, SJ_FULL_WAIT));
    struct timespec before;
    struct timespec after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    call_times(CALLS);
    clock_gettime(CLOCK_MONOTONIC, &after);
    const double waited =
        (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) * 1e-9;
    /* The thread waits once for wait_ms, not once for each window. */
    CHECK(waited >= 0.050 && waited < 5.0);
    CHECK(atomic_load(&arena_slot(arena, 0)->waited_ticks) > 0);
    check_account(0, (tally){0}, CALLS);
    tally sum = {0};
    drain_thread(arena, 0, true, &sum);
    call_times(SJ_DISCARD_RECORDS);
    check_account(0, sum, CALLS + SJ_DISCARD_RECORDS);
    drain_thread(arena, 0, false, &sum);
    CHECK(sum.waited_notes == 1 && sum.noted_calls > 0);
}

static void test_full_ring_waits_once_then_drops(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(wait_when_full), 0);
}

static void wait_and_lose_nothing(const char *directory)
{
    enum { CALLS = 300007 };
    pthread_t drain;
    sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_WAIT);
    welcome.wait_ms = 20000;
    start(directory, welcome);
    CHECK(pthread_create(&drain, NULL, drain_all_the_time, NULL) == 0);
    call_times(CALLS);
    atomic_store(&stop_draining, 1);
    pthread_join(drain, NULL);
    drain_thread(arena, 0, false, &drained);
    CHECK(drained.enters == CALLS && drained.leaves == CALLS);
    CHECK(atomic_load(&arena_slot(arena, 0)->dropped_events) == 0);
    CHECK(atomic_load(&((sj_arena_header *)arena)->drain_waiters) == 0);
}

static void test_blocking_ring_with_a_drain_loses_nothing(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(wait_and_lose_nothing), 0);
}

static void spin_for(uint32_t turns)
{
    for (volatile uint32_t spin = turns; spin > 0; spin--) {
    }
}

/* Sends both signals, the second possibly while the first is handled. Then spins, so that the
 * interrupted code can proceed. Otherwise, handlers would take all of the time where each
 * instruction is slow. */
static void *signal_main_thread(void *target)
{
    const pid_t tid = *(const pid_t *)target;
    for (uint32_t i = 0; !atomic_load(&stop_draining); i++) {
        syscall(SYS_tgkill, getpid(), tid, i % 2 == 0 ? SIGUSR1 : SIGUSR2);
        spin_for(i % 89);
        syscall(SYS_tgkill, getpid(), tid, i % 2 == 0 ? SIGUSR2 : SIGUSR1);
        while (!atomic_load(&stop_draining) && atomic_load(&handler_runs) < 2 * ((uint64_t)i + 1)) {
            sched_yield();
        }
        spin_for(i % 977);
    }
    return NULL;
}

/* Records while another thread sends two signals. Their handlers can interrupt each other. */
static void hammer(const char *directory, sj_full_policy policy, uint32_t chunks, bool drain)
{
    enum { ROUNDS = 20, LONG_ROUNDS = 400, CALLS = 997, HANDLER_CALLS = 250 /* a round */ };
    const char *fewer = getenv("SJ_HAMMER_ROUNDS"); /* set where each instruction is slow */
    const uint64_t rounds = fewer != NULL               ? strtoull(fewer, NULL, 10)
                            : getenv("SJ_LONG") != NULL ? LONG_ROUNDS
                                                        : ROUNDS;
    pthread_t signaller;
    pthread_t drainer;
    const pid_t tid = (pid_t)syscall(SYS_gettid);
    struct sigaction action = {.sa_handler = call_in_handler};
    sj_link_welcome welcome = make_welcome(2, chunks, policy);
    start(directory, welcome);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGUSR2, &action, NULL) == 0);
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &both, NULL);
    CHECK(pthread_create(&signaller, NULL, signal_main_thread, (void *)&tid) == 0);
    CHECK(!drain || pthread_create(&drainer, NULL, drain_all_the_time, NULL) == 0);
    pthread_sigmask(SIG_UNBLOCK, &both, NULL);
    uint64_t calls = 0;
    for (uint32_t i = 0; i < rounds || atomic_load(&handler_calls) < rounds * HANDLER_CALLS; i++) {
        call_times(CALLS);
        calls += CALLS;
    }
    atomic_store(&stop_draining, 1);
    pthread_join(signaller, NULL);
    if (drain) {
        pthread_join(drainer, NULL);
    }
    pthread_sigmask(SIG_BLOCK, &both, NULL);
    /* A handler dropped these calls before the thread had its slot. */
    const uint64_t early = atomic_load(&((sj_arena_header *)arena)->calls_refused);
    CHECK(early * 2 == atomic_load(&((sj_arena_header *)arena)->events_refused));
    check_account(0, drained, calls + atomic_load(&handler_calls) - early);
}

static void hammer_dropping(const char *directory)
{
    hammer(directory, SJ_FULL_DROP_NEW, 2, false);
}

static void hammer_draining(const char *directory)
{
    hammer(directory, SJ_FULL_DROP_NEW, 2, true);
}

static void hammer_blocking(const char *directory)
{
    hammer(directory, SJ_FULL_WAIT, 4, true);
}

static void test_signal_handlers_keep_counts_exact(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(hammer_dropping), 0);
}

static void test_signal_handlers_keep_counts_exact_beside_a_drain(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(hammer_draining), 0);
    assert_int_equal(run_in_child(hammer_blocking), 0);
}

static void *call_thousand(void *argument)
{
    (void)argument;
    call_times(1000);
    return NULL;
}

static void run_thread(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, call_thousand, NULL) == 0);
    pthread_join(thread, NULL);
}

/* Does what the consumer does after a thread has ended: counts the records, zeroes the chunks and
 * frees the slot. */
static void free_slot(uint32_t thread, tally *sum)
{
    sj_thread_slot *slot = arena_slot(arena, thread);
    drain_thread(arena, thread, false, sum);
    for (uint32_t i = 0; i < 2; i++) {
        memset(arena + sj_arena_chunk_offset(2, 2, thread, i), 0, SJ_CHUNK_BYTES);
    }
    atomic_store(&slot->free_chunks, 3);
    atomic_store(&slot->state, SJ_THREAD_FREE);
}

static void reuse_slots(const char *directory)
{
    start(directory, make_welcome(2, 2, SJ_FULL_DROP_NEW));
    const sj_arena_header *header = (const sj_arena_header *)arena;
    run_thread();
    const uint32_t first_tid = arena_slot(arena, 0)->tid;
    run_thread();
    CHECK(arena_slot(arena, 1)->tid != first_tid);
    run_thread();
    CHECK(atomic_load(&header->threads_refused) == 1);
    CHECK(atomic_load(&header->events_refused) == 2000);
    CHECK(atomic_load(&header->calls_refused) == 1000);
    tally sum = {0};
    sj_thread_slot *slot = arena_slot(arena, 0);
    /* The next thread of the slot does not inherit the counters of the previous one. */
    atomic_store(&slot->dropped_calls, 3);
    atomic_store(&slot->dropped_events, 5);
    atomic_store(&slot->waited_ticks, 7);
    atomic_store(&slot->cpu_ns, 9);
    atomic_store(&slot->allocated_bytes, 11);
    free_slot(0, &sum);
    CHECK(sum.enters == 1000 && sum.leaves == 1000);
    run_thread();
    CHECK(slot->tid != first_tid);
    CHECK(atomic_load(&slot->dropped_calls) == 0 && atomic_load(&slot->dropped_events) == 0);
    CHECK(atomic_load(&slot->waited_ticks) == 0 && atomic_load(&slot->cpu_ns) == 0);
    CHECK(atomic_load(&slot->allocated_bytes) == 0);
    CHECK(atomic_load(&arena_slot(arena, 0)->chunk_sequence) == 1);
    sum = (tally){0};
    free_slot(0, &sum);
    CHECK(sum.enters == 1000 && sum.leaves == 1000);
    CHECK(atomic_load(&header->threads_refused) == 1);
}

static void *call_some(void *count)
{
    call_times(*(const uint32_t *)count);
    return NULL;
}

/* Threads end after any number of calls while a living thread has the only slot. They do not wait
 * for the slot, and each of their records is counted. */
static void count_refused_threads(const char *directory)
{
    sj_link_welcome welcome = make_welcome(1, 2, SJ_FULL_WAIT);
    welcome.wait_ms = 10000000;
    start(directory, welcome);
    const sj_arena_header *header = (const sj_arena_header *)arena;
    uint64_t calls = 0;
    call_times(1);
    for (uint32_t count = 1; count <= 100; count++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, call_some, &count) == 0);
        pthread_join(thread, NULL);
        calls += count;
        CHECK(atomic_load(&header->calls_refused) == calls);
        CHECK(atomic_load(&header->events_refused) == 2 * calls);
        CHECK(atomic_load(&header->threads_refused) == count);
    }
    check_account(0, (tally){0}, 1);
}

static void test_calls_of_threads_without_a_slot_are_counted_exactly(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(count_refused_threads), 0);
}

static void *free_when_waited_for(void *sum)
{
    const sj_arena_header *header = (const sj_arena_header *)arena;
    while (atomic_load(&header->slot_waiters) == 0) {
        sched_yield();
    }
    free_slot(0, sum);
    return NULL;
}

static void wait_for_slot(const char *directory)
{
    sj_link_welcome welcome = make_welcome(1, 2, SJ_FULL_WAIT);
    tally sum = {0};
    pthread_t consumer;
    welcome.wait_ms = 10000000;
    start(directory, welcome);
    run_thread();
    CHECK(pthread_create(&consumer, NULL, free_when_waited_for, &sum) == 0);
    run_thread();
    pthread_join(consumer, NULL);
    CHECK(sum.enters == 1000 && sum.leaves == 1000);
    sum = (tally){0};
    CHECK(atomic_load(&arena_slot(arena, 0)->waited_ticks) > 0);
    check_account(0, sum, 1000);
    CHECK(atomic_load(&((sj_arena_header *)arena)->events_refused) == 0);
}

static void test_a_thread_waits_for_the_slot_of_one_that_has_ended(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(wait_for_slot), 0);
}

static void test_slots_of_ended_threads_are_reused(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(reuse_slots), 0);
}

static void wait_for(pid_t child)
{
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void fork_with_handlers(const char *directory)
{
    enum { FILLING = 50000 };
    start(directory, make_welcome(2, 2, SJ_FULL_DROP_NEW));
    call_times(FILLING); /* the parent reports its dropped calls itself */
    sj_recorder_park();
    call_times(5);
    const pid_t child = fork();
    if (child == 0) {
        call_times(100);
        sj_recorder_after_fork();
        call_times(50000);
        char path[128];
        const sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_DROP_NEW);
        CHECK(sj_recorder_start(directory, "2.1.arena", &welcome) == SJ_OK);
        call_times(7);
        snprintf(path, sizeof(path), "%s/2.1.arena", directory);
        uint8_t *own = map_arena_file(path);
        CHECK(own != NULL && arena_slot(own, 0)->tid == (uint32_t)getpid());
        const sj_record *first =
            (const sj_record *)(own + sj_arena_chunk_offset(2, 2, 0, 0) + SJ_CHUNK_HEADER_BYTES);
        CHECK(sj_record_tag(first) >> SJ_RECORD_FUNCTION_BITS == SJ_RECORD_ENTER);
        tally sum = {0};
        drain_thread(own, 0, false, &sum);
        CHECK(sum.enters == 7 && sum.leaves == 7);
        _exit(0);
    }
    sj_recorder_unpark();
    call_times(20);
    wait_for(child);
    check_account(0, (tally){0}, FILLING + 25);
}

static void test_a_forked_child_records_into_its_own_arena(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(fork_with_handlers), 0);
}

/* No fork handler ran for this child. It stops at its next slow path and does not change its
 * parent's state. */
static void fork_without_handlers(const char *directory)
{
    start(directory, make_welcome(2, 2, SJ_FULL_DROP_NEW));
    const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) {
        call_times(50000);
        CHECK(!sj_recorder_is_armed());
        sj_recorder_mark("child", false);
        sj_recorder_set_state(SJ_ARENA_ENDED);
        _exit(0);
    }
    wait_for(child);
    CHECK(sj_recorder_is_armed());
    CHECK(atomic_load(&((sj_arena_header *)arena)->state) == SJ_ARENA_STARTING);
    CHECK(atomic_load(&((sj_arena_header *)arena)->mark_count) == 0);
    CHECK(atomic_load(&arena_slot(arena, 0)->state) == SJ_THREAD_FREE);
    call_times(10);
    check_account(0, (tally){0}, 10);
}

static void test_a_child_without_handlers_disarms_itself(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(fork_without_handlers), 0);
}

static void store_marks(const char *directory)
{
    start(directory, make_welcome(2, 2, SJ_FULL_DROP_NEW));
    char longest[100];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    sj_recorder_mark("phase", false);
    call_times(1);
    sj_recorder_mark(longest, true);
    sj_recorder_mark(NULL, true);
    const sj_arena_mark *marks = (const sj_arena_mark *)(arena + SJ_ARENA_MARKS_OFFSET);
    CHECK(atomic_load(&((sj_arena_header *)arena)->mark_count) == 2);
    CHECK(strcmp(marks[0].name, "phase") == 0 && marks[0].end == 0);
    CHECK(strlen(marks[1].name) == SJ_ARENA_MARK_BYTES - 1 && marks[1].end == 1);
    CHECK(atomic_load(&marks[1].sequence) == 2);
    const sj_record *records =
        (const sj_record *)(arena + sj_arena_chunk_offset(2, 2, 0, 0) + SJ_CHUNK_HEADER_BYTES);
    CHECK(sj_record_tag(&records[0]) == (UINT32_C(2) << 30 | SJ_NOTE_MARK_BEGIN));
    CHECK(sj_record_tag(&records[3]) == (UINT32_C(2) << 30 | SJ_NOTE_MARK_END));
    CHECK(sj_record_stack(&records[3]) == 1);
}

static void test_marks_are_in_the_table_and_in_the_stream(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(store_marks), 0);
}

static uint32_t count_descriptors(void)
{
    uint32_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static void start_only_once(const char *directory)
{
    const uint32_t before = count_descriptors();
    sj_link_welcome welcome = make_welcome(0, 2, SJ_FULL_DROP_NEW);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_EINVAL);
    welcome = make_welcome(2, SJ_ARENA_MAX_CHUNKS + 1, SJ_FULL_DROP_NEW);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_EINVAL);
    welcome.chunks_per_thread = SJ_ARENA_MAX_CHUNKS;
    CHECK(sj_recorder_start("no-such-directory", "1.1.arena", &welcome) == SJ_EIO);
    CHECK(!sj_recorder_is_armed());
    start(directory, welcome);
    CHECK(sj_recorder_start(directory, "1.1.arena", &welcome) == SJ_EEXIST);
    call_times(10);
    CHECK(count_descriptors() == before);
}

static void note_last_name(const char *directory)
{
    start(directory, make_welcome(2, 2, SJ_FULL_DROP_NEW));
    CHECK(prctl(PR_SET_NAME, "first") == 0);
    call_times(1);
    const sj_thread_slot *slot = arena_slot(arena, 0);
    CHECK(prctl(PR_SET_NAME, "last") == 0);
    CHECK(slot->last_name[0] == '\0');
    sj_recorder_end();
    CHECK(strcmp(slot->name, "first") == 0 && strcmp(slot->last_name, "last") == 0);
}

static void test_the_thread_that_ends_the_program_notes_its_name(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(note_last_name), 0);
}

/* True if any page of the arena's file from `from` on is allocated. */
static bool has_data(const char *directory, uint64_t from)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/1.1.arena", directory);
    const int file = open(path, O_RDONLY);
    CHECK(file >= 0);
    const bool found = lseek(file, (off_t)from, SEEK_DATA) >= 0;
    close(file);
    return found;
}

static void prepare_slots_late(const char *directory)
{
    enum { SLOTS = 512, CHUNKS = 3, ALL_BUT_THE_FIRST = 6 };
    start(directory, make_welcome(SLOTS, CHUNKS, SJ_FULL_DROP_NEW));
    const sj_arena_header *header = (const sj_arena_header *)arena;
    CHECK(!has_data(directory, SJ_ARENA_HEADER_BYTES));
    call_times(10);
    CHECK(has_data(directory, SJ_ARENA_HEADER_BYTES));
    CHECK(atomic_load(&header->slots_begun) == 1);
    run_thread();
    CHECK(atomic_load(&header->slots_begun) == 2);
    CHECK(atomic_load(&arena_slot(arena, 0)->free_chunks) == ALL_BUT_THE_FIRST);
    CHECK(atomic_load(&arena_slot(arena, 1)->free_chunks) == ALL_BUT_THE_FIRST);
    CHECK(arena_slot(arena, 2)->start_ticks == 0);
}

static void test_slots_take_no_memory_before_they_are_claimed(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(prepare_slots_late), 0);
}

static void test_start_refuses_bad_sizes_and_leaves_no_descriptor(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(start_only_once), 0);
}

/* Several plans of one module note the same callers. Dropping a plan removes only the callers that
 * this plan noted. */
static void test_callers_are_forgotten_with_their_owner(void **state)
{
    (void)state;
    const int owners[2] = {0};
    sj_recorder_note_function(7, 0x1000, 16, &owners[0]);
    sj_recorder_note_function(7, 0x1000, 16, &owners[1]);
    sj_recorder_note_function(8, 0x2000, 16, &owners[1]);
    assert_int_equal(sj_recorder_function_at(0x2000), 8);
    sj_recorder_forget_functions(&owners[1]);
    assert_int_equal(sj_recorder_function_at(0x100f), 7);
    assert_int_equal(sj_recorder_function_at(0x1010), 0);
    assert_int_equal(sj_recorder_function_at(0x2000), 0);
    sj_recorder_forget_functions(&owners[0]);
    assert_int_equal(sj_recorder_function_at(0x100f), 0);
}

/* If the table is full, entries that it holds can still be changed. */
static void test_results_of_imports_have_a_limit(void **state)
{
    (void)state;
    uint32_t kept = 0;
    while (sj_return_values_set(1 + kept, 1)) {
        kept++;
    }
    assert_int_equal(kept, 2048);
    assert_true(sj_return_values_set(1, 2) && sj_return_values_set(kept, 0));
    assert_true(sj_return_values_set(1 + kept, 0));
}

/* A mark switches on the rule of its slot, but not a later rule that replaces it there. */
static void judge_between_marks(const char *directory)
{
    enum { FUNCTION = 5 };
    const uint8_t descriptor = sj_value_descriptor(1, SJ_VALUE_INT);
    sj_due_change due;
    start(directory, make_welcome(2, 4, SJ_FULL_DROP_NEW));
    sj_changes *changes = calloc(1, sizeof(*changes));
    CHECK(changes != NULL);
    sj_changed_function *function = &changes->functions[sj_changes_place(FUNCTION)];
    sj_change_rule *rule = &changes->rules[0];
    changes->grace_ticks = UINT64_MAX;
    changes->is_on = 1;
    function->function = FUNCTION;
    function->rules[0] = 1;
    *rule = (sj_change_rule){.descriptor = descriptor, .begin_mark = "one", .end_mark = "two"};
    sj_recorder_changes = changes;
    CHECK(!sj_recorder_judge(FUNCTION, descriptor, 0, NULL, &due));
    sj_recorder_change_at_mark("one", false);
    CHECK(sj_recorder_judge(FUNCTION, descriptor, 0, NULL, &due));
    sj_recorder_change_at_mark("two", false);
    CHECK(!sj_recorder_judge(FUNCTION, descriptor, 0, NULL, &due));
    sj_recorder_change_at_mark("one", false);
    memcpy(rule->begin_mark, "new", sizeof("new"));
    atomic_store(&rule->version, 2);
    CHECK(!sj_recorder_judge(FUNCTION, descriptor, 0, NULL, &due));
    sj_recorder_change_at_mark("new", false);
    CHECK(sj_recorder_judge(FUNCTION, descriptor, 0, NULL, &due));
    sj_recorder_changes = NULL;
    free(changes);
}

/* A value is not recorded if only rules that change calls need it and their conditions do not match
 * it. */
static void leave_idle_values_out(const char *directory)
{
    enum { FUNCTION = 5 };
    const uint8_t descriptor = sj_value_descriptor(1, SJ_VALUE_INT);
    start(directory, make_welcome(2, 4, SJ_FULL_DROP_NEW));
    sj_changes *changes = calloc(1, sizeof(*changes));
    CHECK(changes != NULL);
    CHECK(!sj_recorder_is_idle(FUNCTION, descriptor, 3));
    sj_changed_function *function = &changes->functions[sj_changes_place(FUNCTION)];
    function->function = FUNCTION;
    function->rules[1] = 2;
    changes->rules[65] = (sj_change_rule){
        .descriptor = descriptor, .comparison = SJ_CHANGE_LESS, .operand = (uint64_t)-3};
    sj_recorder_changes = changes;
    CHECK(!sj_recorder_is_idle(FUNCTION, descriptor, 3));
    function->is_quiet = 1;
    CHECK(sj_recorder_is_idle(FUNCTION, descriptor, 3));
    CHECK(!sj_recorder_is_idle(FUNCTION, descriptor, (uint64_t)-4));
    CHECK(sj_recorder_is_idle(FUNCTION, sj_value_descriptor(2, SJ_VALUE_INT), (uint64_t)-4));
    CHECK(!sj_recorder_is_idle(FUNCTION + 1, descriptor, 3));
    sj_recorder_changes = NULL;
    free(changes);
}

static void test_values_without_a_rule_are_not_recorded(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(leave_idle_values_out), 0);
}

static void test_marks_enable_the_rules_between_them(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(judge_between_marks), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_ring_drops_and_notes_exact_counts),
        cmocka_unit_test(test_full_ring_waits_once_then_drops),
        cmocka_unit_test(test_blocking_ring_with_a_drain_loses_nothing),
        cmocka_unit_test(test_signal_handlers_keep_counts_exact),
        cmocka_unit_test(test_signal_handlers_keep_counts_exact_beside_a_drain),
        cmocka_unit_test(test_slots_of_ended_threads_are_reused),
        cmocka_unit_test(test_slots_take_no_memory_before_they_are_claimed),
        cmocka_unit_test(test_calls_of_threads_without_a_slot_are_counted_exactly),
        cmocka_unit_test(test_a_thread_waits_for_the_slot_of_one_that_has_ended),
        cmocka_unit_test(test_a_forked_child_records_into_its_own_arena),
        cmocka_unit_test(test_a_child_without_handlers_disarms_itself),
        cmocka_unit_test(test_marks_are_in_the_table_and_in_the_stream),
        cmocka_unit_test(test_the_thread_that_ends_the_program_notes_its_name),
        cmocka_unit_test(test_address_space_of_ended_arenas_is_released),
        cmocka_unit_test(test_programs_that_are_executed_at_once_have_marks_of_their_own),
        cmocka_unit_test(test_arenas_take_an_eighth_of_the_address_space),
        cmocka_unit_test(test_callers_are_forgotten_with_their_owner),
        cmocka_unit_test(test_results_of_imports_have_a_limit),
        cmocka_unit_test(test_values_without_a_rule_are_not_recorded),
        cmocka_unit_test(test_marks_enable_the_rules_between_them),
        cmocka_unit_test(test_start_refuses_bad_sizes_and_leaves_no_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
