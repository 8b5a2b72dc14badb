/* Signal handlers and a full buffer: who waits, who drops, and who finds room. */
#include "agent/inproc/recorder/internal.h"
#include "tests/agent/inproc/recorder/arena_account.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include <cmocka.h>

static void ignore_signal(int number)
{
    (void)number;
}

/* What the kernel writes into a handler's frame where there are no restorers. */
#define SIGNAL_FRAME_WORD UINT64_C(0x0000021046508001)

/* A handler's return address that merely lies on the stack, as sigaction itself leaves it there. */
static void wait_despite_installed_handler(const char *directory)
{
    struct {
        uint64_t handler;
        uint64_t flags;
        uint64_t restorer;
        uint64_t mask;
    } installed = {0};
    volatile uint64_t remains[64];
    struct sigaction action = {.sa_handler = ignore_signal};
    start(directory, make_welcome(2, 2, SJ_FULL_WAIT));
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &installed, sizeof(installed.mask)) == 0);
#if defined(__aarch64__)
    installed.restorer = SIGNAL_FRAME_WORD;
#endif
    CHECK(installed.restorer != 0);
    for (uint32_t i = 0; i < 64; i++) {
        remains[i] = installed.restorer;
    }
    call_times(50021);
    CHECK(remains[0] == installed.restorer);
    CHECK(atomic_load(&arena_slot(arena, 0)->waited_ticks) > 0);
}

static void test_an_installed_handler_does_not_keep_from_waiting(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(wait_despite_installed_handler), 0);
}

static void fill_in_handler(int number)
{
    (void)number;
    call_times(3 * SJ_CHUNK_RECORDS);
}

static void never_wait(const char *directory, int flags)
{
    struct sigaction action = {.sa_handler = fill_in_handler, .sa_flags = flags};
    start(directory, make_welcome(2, 2, SJ_FULL_WAIT));
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(raise(SIGUSR1) == 0);
    CHECK(atomic_load(&arena_slot(arena, 0)->dropped_events) > 0);
    CHECK(atomic_load(&arena_slot(arena, 0)->waited_ticks) == 0);
    check_account(0, (tally){0}, 3 * SJ_CHUNK_RECORDS);
}

static void never_wait_in_handler(const char *directory)
{
    never_wait(directory, 0);
}

static void never_wait_in_undeferred_handler(const char *directory)
{
    never_wait(directory, SA_NODEFER);
}

static void test_a_signal_handler_never_waits(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(never_wait_in_handler), 0);
    assert_int_equal(run_in_child(never_wait_in_undeferred_handler), 0);
}

enum { LEFT_BYTES = 48 * 1024 };

/* Has a handler run on the part of the stack that wait_above_remains takes next. */
static __attribute__((noinline)) void leave_remains(void)
{
    volatile uint8_t room[LEFT_BYTES / 2];
    room[0] = 0;
    CHECK(raise(SIGUSR1) == 0);
    CHECK(room[0] == 0);
}

/* The frame's mark is what the kernel left, so this fails if the handler's frame lay elsewhere. */
static __attribute__((noinline)) void wait_above_remains(uint64_t mark)
{
    volatile uint64_t room[LEFT_BYTES / sizeof(uint64_t)];
    uint32_t found = 0;
    __asm__ volatile("" : "=m"(room)); /* the compiler takes what lies there for written */
    for (uint32_t i = 0; i < LEFT_BYTES / sizeof(uint64_t); i++) {
        found += room[i] == mark;
    }
    CHECK(found != 0);
    call_times(50021);
    CHECK(atomic_load(&arena_slot(arena, 0)->waited_ticks) > 0);
}

static void wait_despite_a_handler_that_returned(const char *directory)
{
    struct {
        uint64_t handler;
        uint64_t flags;
        uint64_t restorer;
        uint64_t mask;
    } installed = {0};
    struct sigaction action = {.sa_handler = ignore_signal};
    start(directory, make_welcome(2, 2, SJ_FULL_WAIT));
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &installed, sizeof(installed.mask)) == 0);
#if defined(__aarch64__)
    installed.restorer = SIGNAL_FRAME_WORD;
#endif
    leave_remains();
    wait_above_remains(installed.restorer);
}

static void test_a_handler_that_returned_does_not_keep_from_waiting(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(wait_despite_a_handler_that_returned), 0);
}

enum { SPARE_CHUNKS = 4, SPARE_HANDLERS = 20 };

/* Sends signals to the main thread while that waits for room, then makes room. */
static void *interrupt_wait(void *target)
{
    const pid_t tid = *(const pid_t *)target;
    const sj_arena_header *header = (const sj_arena_header *)arena;
    while (atomic_load(&header->drain_waiters) == 0) {
        usleep(100);
    }
    for (uint64_t i = 0; i < SPARE_HANDLERS; i++) {
        CHECK(syscall(SYS_tgkill, getpid(), tid, SIGUSR1) == 0);
        while (atomic_load(&handler_runs) <= i) {
            usleep(100);
        }
    }
    return drain_all_the_time(NULL);
}

/* Calls until the thread has waited, `handled` of them by each handler, and returns how many. */
static uint64_t wait_with_handlers(const char *directory, void (*handler)(int))
{
    pthread_t other;
    const pid_t tid = (pid_t)syscall(SYS_gettid);
    struct sigaction action = {.sa_handler = handler};
    sj_link_welcome welcome = make_welcome(2, SPARE_CHUNKS, SJ_FULL_WAIT);
    const uint64_t calls = (uint64_t)SPARE_CHUNKS * SJ_CHUNK_RECORDS;
    welcome.wait_ms = 60000;
    start(directory, welcome);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(pthread_create(&other, NULL, interrupt_wait, (void *)&tid) == 0);
    call_times((uint32_t)calls);
    atomic_store(&stop_draining, 1);
    pthread_join(other, NULL);
    CHECK(atomic_load(&handler_runs) == SPARE_HANDLERS);
    check_account(0, drained, calls + atomic_load(&handler_calls));
    return atomic_load(&arena_slot(arena, 0)->dropped_events);
}

static void record_in_handlers_of_a_waiting_thread(const char *directory)
{
    CHECK(wait_with_handlers(directory, call_in_handler) == 0);
}

static void overfill_in_handler(int number)
{
    fill_in_handler(number);
    atomic_fetch_add(&handler_calls, UINT64_C(3) * SJ_CHUNK_RECORDS);
    atomic_fetch_add(&handler_runs, 1);
}

/* The handlers lose what finds no room, and the thread they interrupted loses nothing. */
static void overfill_in_handlers_of_a_waiting_thread(const char *directory)
{
    const uint64_t handled = UINT64_C(2) * 3 * SJ_CHUNK_RECORDS * SPARE_HANDLERS;
    const uint64_t dropped = wait_with_handlers(directory, overfill_in_handler);
    CHECK(dropped != 0 && dropped < handled && handled - dropped > SJ_CHUNK_RECORDS / 2);
    CHECK(atomic_load(&((sj_arena_header *)arena)->drain_waiters) == 0);
}

static void test_handlers_of_a_waiting_thread_find_room(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(record_in_handlers_of_a_waiting_thread), 0);
    assert_int_equal(run_in_child(overfill_in_handlers_of_a_waiting_thread), 0);
}

static sigjmp_buf behind_wait;

static void leave_wait(int number)
{
    (void)number;
    siglongjmp(behind_wait, 1);
}

static void *interrupt_once(void *target)
{
    const pid_t tid = *(const pid_t *)target;
    const sj_arena_header *header = (const sj_arena_header *)arena;
    while (atomic_load(&header->drain_waiters) == 0) {
        usleep(100);
    }
    CHECK(syscall(SYS_tgkill, getpid(), tid, SIGUSR1) == 0);
    return NULL;
}

/* Buffers of two chunks have none to spare: the thread waits in its slow path. */
static void record_behind_longjmp(const char *directory)
{
    pthread_t other;
    const pid_t tid = (pid_t)syscall(SYS_gettid);
    struct sigaction action = {.sa_handler = leave_wait};
    sj_link_welcome welcome = make_welcome(2, 2, SJ_FULL_WAIT);
    welcome.wait_ms = 60000;
    start(directory, welcome);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(pthread_create(&other, NULL, interrupt_once, (void *)&tid) == 0);
    if (sigsetjmp(behind_wait, 1) == 0) {
        call_times(3 * SJ_CHUNK_RECORDS);
        CHECK(!"the handler returned");
    }
    pthread_join(other, NULL);
    drain_thread(arena, 0, true, &drained);
    const uint64_t before = drained.enters + drained.leaves;
    call_times(100);
    drain_thread(arena, 0, false, &drained);
    CHECK(atomic_load(&arena_slot(arena, 0)->dropped_events) == 0);
    CHECK(drained.enters + drained.leaves - before == 200);
    CHECK(atomic_load(&((const sj_arena_header *)arena)->drain_waiters) == 0);
    CHECK(atomic_load(&sj_recorder.calling) == 0);
}

static void test_a_handler_may_leave_a_waiting_thread_by_longjmp(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(record_behind_longjmp), 0);
}

#if defined(__x86_64__)

static sigjmp_buf behind_fault;

static void fill_after_fault(int number, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    fill_in_handler(number);
    siglongjmp(behind_fault, 1);
}

/* Calls in a handler of SIGSEGV, which the thread's own access raises, or raise(). */
static void fill_in_segv_handler(const char *directory, bool by_access)
{
    struct sigaction action = {.sa_sigaction = fill_after_fault, .sa_flags = SA_SIGINFO};
    volatile char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    start(directory, make_welcome(2, 2, SJ_FULL_WAIT));
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    if (sigsetjmp(behind_fault, 1) == 0) {
        if (by_access) {
            *page = 1;
        }
        CHECK(raise(SIGSEGV) == 0);
        CHECK(!"the handler returned");
    }
    CHECK((atomic_load(&arena_slot(arena, 0)->waited_ticks) > 0) == by_access);
    check_account(0, (tally){0}, 3 * SJ_CHUNK_RECORDS);
}

static void wait_in_fault(const char *directory)
{
    fill_in_segv_handler(directory, true);
}

static void never_wait_in_sent_fault(const char *directory)
{
    fill_in_segv_handler(directory, false);
}

/* As HotSpot's, whose frames remain on the stack. */
static void test_a_handler_of_an_own_fault_waits(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(wait_in_fault), 0);
    assert_int_equal(run_in_child(never_wait_in_sent_fault), 0);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_installed_handler_does_not_keep_from_waiting),
        cmocka_unit_test(test_a_signal_handler_never_waits),
        cmocka_unit_test(test_a_handler_that_returned_does_not_keep_from_waiting),
        cmocka_unit_test(test_handlers_of_a_waiting_thread_find_room),
        cmocka_unit_test(test_a_handler_may_leave_a_waiting_thread_by_longjmp),
#if defined(__x86_64__)
        cmocka_unit_test(test_a_handler_of_an_own_fault_waits),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
