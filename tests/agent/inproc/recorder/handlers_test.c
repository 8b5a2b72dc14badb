/* Tests signal handlers and a full buffer: which calls wait, which calls are dropped, and which
 * calls find a free slot. */
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/readable.h"
#include "tests/agent/inproc/recorder/arena_account.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <cmocka.h>

static void ignore_signal(int number)
{
    (void)number;
}

/* The kernel writes this word into a handler's frame on machines without restorers. */
#define SIGNAL_FRAME_WORD UINT64_C(0x0000021046508001)

/* The stack holds words that equal a handler's return address, but no handler's frame. */
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

static void test_a_thread_waits_although_a_handler_is_installed(void **state)
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

/* Runs a handler on the part of the stack that wait_above_remains uses next. */
static __attribute__((noinline)) void leave_remains(void)
{
    volatile uint8_t space[LEFT_BYTES / 2];
    space[0] = 0;
    CHECK(raise(SIGUSR1) == 0);
    CHECK(space[0] == 0);
}

/* `mark` is a word that the kernel left in the handler's frame. The check fails if that frame was
 * elsewhere on the stack. */
static __attribute__((noinline)) void wait_above_remains(uint64_t mark)
{
    volatile uint64_t space[LEFT_BYTES / sizeof(uint64_t)];
    uint32_t found = 0;
    __asm__ volatile("" : "=m"(space)); /* the compiler assumes that the array is initialised */
    for (uint32_t i = 0; i < LEFT_BYTES / sizeof(uint64_t); i++) {
        found += space[i] == mark;
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

static void test_a_thread_waits_after_a_handler_has_returned(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(wait_despite_a_handler_that_returned), 0);
}

/* Runs on a coroutine's stack, which is the low end of a mapping of 64 MiB. */
static void fill_in_coroutine(void)
{
    call_times(3 * SJ_CHUNK_RECORDS);
}

/* The search for a handler's frame would copy the whole mapping. */
static void never_wait_below_a_large_mapping(const char *directory)
{
    enum { MAPPING_BYTES = 64 * 1024 * 1024, STACK_BYTES = 256 * 1024 };
    static ucontext_t here;
    static ucontext_t coroutine;
    void *stack = mmap(NULL, MAPPING_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(stack != MAP_FAILED);
    start(directory, make_welcome(2, 2, SJ_FULL_WAIT));
    CHECK(getcontext(&coroutine) == 0);
    coroutine.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK_BYTES};
    coroutine.uc_link = &here;
    makecontext(&coroutine, fill_in_coroutine, 0);
    CHECK(swapcontext(&here, &coroutine) == 0);
    CHECK(atomic_load(&arena_slot(arena, 0)->waited_ticks) == 0);
    CHECK(atomic_load(&arena_slot(arena, 0)->dropped_events) > 0);
    check_account(0, (tally){0}, 3 * SJ_CHUNK_RECORDS);
}

static void test_a_coroutine_below_a_large_mapping_never_waits(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(never_wait_below_a_large_mapping), 0);
}

enum { SPARE_CHUNKS = 4, SPARE_HANDLERS = 20 };

/* Sends signals to the main thread while it waits for free chunks, then frees chunks. */
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

/* Fills the buffer, so that the thread waits. `handler` runs SPARE_HANDLERS times during the wait.
 * Returns the number of dropped events. */
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

/* The handlers lose the calls that do not fit. The thread that they interrupted loses nothing. */
static void overfill_in_handlers_of_a_waiting_thread(const char *directory)
{
    const uint64_t handled = UINT64_C(2) * 3 * SJ_CHUNK_RECORDS * SPARE_HANDLERS;
    const uint64_t dropped = wait_with_handlers(directory, overfill_in_handler);
    CHECK(dropped != 0 && dropped < handled && handled - dropped > SJ_CHUNK_RECORDS / 2);
    CHECK(atomic_load(&((sj_arena_header *)arena)->drain_waiters) == 0);
}

static void test_handlers_of_a_waiting_thread_record_into_reserved_space(void **state)
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

static bool is_asleep(pid_t tid)
{
    char path[64];
    char state = '?';
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    CHECK(fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
    fclose(file);
    return state == 'S';
}

/* Interrupts a thread that has announced its wait in drain_waiters and sleeps. */
static void *interrupt_once(void *target)
{
    const pid_t tid = *(const pid_t *)target;
    const sj_arena_header *header = (const sj_arena_header *)arena;
    while (atomic_load(&header->drain_waiters) == 0 || !is_asleep(tid)) {
        usleep(100);
    }
    CHECK(syscall(SYS_tgkill, getpid(), tid, SIGUSR1) == 0);
    return NULL;
}

/* Overwrites the frames that have been left. */
static __attribute__((noinline)) void overwrite_stack(void)
{
    volatile uint8_t bytes[16384];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = 0xff;
    }
}

/* Buffers of two chunks have none to spare, so the thread waits in its slow path. */
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
    overwrite_stack();
    CHECK(!sj_recorder_must_restart(0, UINT64_MAX));
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

/* FORK_RESTARTS: the child joins, and leaves the slow path as the agent's restorer of signals
 * does. */
typedef enum fork_way { FORK_ALONE, FORK_JOINS, FORK_CALLS, FORK_RESTARTS, FORK_UNSEEN } fork_way;

enum { SPACE_CALLS = 5 }; /* calls that find a slot without waiting */

static const char *fork_directory;
static fork_way forks_by;
static volatile bool is_child;
static volatile uint64_t made, made_at_fork;
static pid_t forked;

static void join_as_child(void)
{
    char path[128];
    const sj_link_welcome welcome = make_welcome(2, SPARE_CHUNKS, SJ_FULL_DROP_NEW);
    CHECK(sj_recorder_start(fork_directory, "2.1.arena", &welcome) == SJ_OK);
    snprintf(path, sizeof(path), "%s/2.1.arena", fork_directory);
    arena = map_arena_file(path);
    CHECK(arena != NULL);
}

static bool joins(void)
{
    return forks_by == FORK_JOINS || forks_by == FORK_CALLS || forks_by == FORK_RESTARTS;
}

#if defined(__x86_64__)

/* Makes the thread continue at the beginning of the slow path that the handler interrupted. Only
 * the slow path's own frames count. */
static void restart(void *interrupted)
{
    enum { PAGE = 4096, BELOW = 256, PUSHED = 8 };
    ucontext_t *context = interrupted;
    greg_t *registers = context->uc_mcontext.gregs;
    const uint64_t sp = (uint64_t)registers[REG_RSP];
    CHECK(!sj_recorder_must_restart(sp - PAGE, sp));
    CHECK(sj_recorder_must_restart(sp, sp + PAGE));
    registers[REG_RIP] = (greg_t)(uintptr_t)&sj_recorder_restart;
    registers[REG_RSP] = (greg_t)(((sp - BELOW) & ~UINT64_C(15)) - PUSHED);
}

#else

static void restart(void *interrupted)
{
    (void)interrupted;
}

#endif

/* Forks in a handler that interrupts a wait. The child returns into its copy of the wait. The
 * parent's wait ends, too, because wait_ms becomes 0. */
static void fork_in_wait(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    if (forks_by == FORK_UNSEEN) {
        forked = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    } else {
        sj_recorder_park();
        forked = fork();
    }
    if (forked != 0) {
        sj_recorder_unpark();
        ((sj_arena_header *)arena)->wait_ms = 0;
        return;
    }
    is_child = true;
    made_at_fork = made;
    if (forks_by != FORK_UNSEEN) {
        sj_recorder_after_fork();
    }
    if (joins()) {
        join_as_child();
    }
    if (forks_by == FORK_CALLS || forks_by == FORK_RESTARTS) {
        call_times(SPACE_CALLS);
        made_at_fork -= SPACE_CALLS;
    }
    if (forks_by == FORK_RESTARTS) {
        restart(context);
    }
}

static void end_child(uint64_t calls)
{
    CHECK(atomic_load(&sj_recorder.calling) == 0);
    CHECK(sj_recorder_self.busy == 0 && sj_recorder_self.wait_at == 0);
    if (joins()) {
        CHECK(atomic_load(&((sj_arena_header *)arena)->drain_waiters) == 0);
        check_account(0, (tally){0}, calls - made_at_fork);
    }
    _exit(0);
}

/* Makes calls until the buffer is full and a handler has forked in the wait for a free chunk. */
static void fork_while_waiting(const char *directory, uint32_t chunks, uint64_t calls)
{
    int status = -1;
    pthread_t other;
    const pid_t tid = (pid_t)syscall(SYS_gettid);
    const struct sigaction action = {.sa_sigaction = fork_in_wait, .sa_flags = SA_SIGINFO};
    const sj_arena_header *header;
    fork_directory = directory;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    if (arena == NULL) {
        sj_link_welcome welcome = make_welcome(1, chunks, SJ_FULL_WAIT);
        welcome.wait_ms = 60000;
        start(directory, welcome);
    }
    header = (const sj_arena_header *)arena;
    CHECK(pthread_create(&other, NULL, interrupt_once, (void *)&tid) == 0);
    for (made = 0; made < calls; made++) {
        probe();
    }
    if (is_child) {
        end_child(calls);
    }
    pthread_join(other, NULL);
    CHECK(waitpid(forked, &status, 0) == forked && status == 0);
    CHECK(atomic_load(&header->drain_waiters) == 0 && atomic_load(&header->slot_waiters) == 0);
    CHECK(atomic_load(&sj_recorder.calling) == 0);
}

static void fork_while_waiting_for_space(const char *directory)
{
    const uint64_t calls = UINT64_C(3) * SJ_CHUNK_RECORDS;
    fork_while_waiting(directory, 2, calls);
    check_account(0, (tally){0}, calls);
}

static void fork_while_waiting_with_spare(const char *directory)
{
    const uint64_t calls = UINT64_C(3) * SJ_CHUNK_RECORDS;
    fork_while_waiting(directory, SPARE_CHUNKS, calls);
    check_account(0, (tally){0}, calls);
}

static void *call_once(void *unused)
{
    probe();
    return unused;
}

/* Another thread had the only slot. */
static void fork_while_waiting_for_slot(const char *directory)
{
    pthread_t ended;
    sj_link_welcome welcome = make_welcome(1, 2, SJ_FULL_WAIT);
    welcome.wait_ms = 60000;
    start(directory, welcome);
    CHECK(pthread_create(&ended, NULL, call_once, NULL) == 0);
    pthread_join(ended, NULL);
    while (syscall(SYS_tgkill, getpid(), arena_slot(arena, 0)->tid, 0) == 0) {
        usleep(100); /* the kernel finds the ended thread for a moment */
    }
    fork_while_waiting(directory, 2, SJ_CHUNK_RECORDS);
    CHECK(atomic_load(&((sj_arena_header *)arena)->events_refused) == 2 * SJ_CHUNK_RECORDS);
}

static void test_a_child_may_return_from_a_handler_into_a_wait(void **state)
{
    (void)state;
    for (forks_by = FORK_ALONE; forks_by <= FORK_UNSEEN; forks_by++) {
        assert_int_equal(run_in_child(fork_while_waiting_for_space), 0);
        assert_int_equal(run_in_child(fork_while_waiting_with_spare), 0);
        assert_int_equal(run_in_child(fork_while_waiting_for_slot), 0);
    }
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

/* Makes calls in a handler of SIGSEGV, which the thread's own access or raise() triggers. */
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

/* HotSpot has such handlers. Their frames remain on the stack. */
static void test_a_handler_of_an_own_fault_waits(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(wait_in_fault), 0);
    assert_int_equal(run_in_child(never_wait_in_sent_fault), 0);
}

#endif

static void check_note(const sj_record *record, sj_note note, uint64_t argument)
{
    CHECK(sj_record_tag(record) == sj_record_make_tag(SJ_RECORD_NOTE, note));
    CHECK(sj_record_stack(record) == argument);
}

/* This test calls sj_recorder_begin_handler and sj_recorder_end_handler itself, as a handler
 * would. */
static void note_alternate_stacks(const char *directory)
{
    enum { BELOW = 32 * 1024, ABOVE = 64 };
    static char far[BELOW];
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    start(directory, make_welcome(2, 2, SJ_FULL_DROP_NEW));
    const sj_record *records =
        (const sj_record *)(arena + sj_arena_chunk_offset(2, 2, 0, 0) + SJ_CHUNK_HEADER_BYTES);
    sj_recorder_begin_handler(here - BELOW, here + ABOVE);
    call_times(1); /* the thread has no slot until now */
    sj_recorder_end_handler();
    check_note(&records[0], SJ_NOTE_ALTERNATE_LOW, here - BELOW);
    check_note(&records[1], SJ_NOTE_ALTERNATE_HIGH, here + ABOVE);
    check_note(&records[4], SJ_NOTE_ALTERNATE_LOW, 0);
    CHECK(sj_recorder_stack_space() > BELOW);
    sj_recorder_begin_handler((uint64_t)(uintptr_t)far, (uint64_t)(uintptr_t)far + BELOW);
    sj_recorder_end_handler();
    sj_recorder_begin_handler(here - BELOW, here + ABOVE);
    check_note(&records[5], SJ_NOTE_ALTERNATE_LOW, here - BELOW);
    check_note(&records[6], SJ_NOTE_ALTERNATE_HIGH, here + ABOVE);
    CHECK(sj_recorder_stack_space() < BELOW);
}

static void test_handlers_on_an_alternate_stack_are_noted(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(note_alternate_stacks), 0);
}

/* Many handlers that make no call find no space, and leave the cursor where it is. */
static void note_without_space(const char *directory)
{
    enum { BELOW = 32 * 1024, ABOVE = 64, HANDLERS = 3000 };
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    start(directory, make_welcome(2, 2, SJ_FULL_DROP_NEW));
    call_times(1);
    sj_recorder_self.cursor = 0; /* as in the slow path */
    for (uint32_t i = 0; i < HANDLERS; i++) {
        sj_recorder_begin_handler(here - BELOW, here + ABOVE);
        sj_recorder_end_handler();
    }
    CHECK(sj_recorder_self.cursor == 0);
}

static void test_a_handler_is_not_noted_without_space(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(note_without_space), 0);
}

/* After siglongjmp has left a handler, functions may use the memory of its stack. So a new chunk
 * does not repeat the notes. */
static void note_once(const char *directory)
{
    enum { BELOW = 32 * 1024, ABOVE = 64 };
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    start(directory, make_welcome(2, 2, SJ_FULL_DROP_NEW));
    call_times(1);
    sj_recorder_begin_handler(here - BELOW, here + ABOVE);
    call_times(3 * SJ_CHUNK_RECORDS / 4);
    const sj_record *records =
        (const sj_record *)(arena + sj_arena_chunk_offset(2, 2, 0, 1) + SJ_CHUNK_HEADER_BYTES);
    const uint32_t kind = sj_record_tag(&records[0]) >> SJ_RECORD_FUNCTION_BITS;
    CHECK(sj_record_stack(&records[0]) != 0);
    CHECK(kind == SJ_RECORD_ENTER || kind == SJ_RECORD_LEAVE);
}

static void test_a_later_chunk_does_not_repeat_a_handlers_notes(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(note_once), 0);
}

/* siglongjmp has left a handler that found no space for its notes. The next chunk is opened
 * elsewhere on the thread's own stack. So no later chunk may note the handler's stack. */
static void forget_handler_that_was_left(const char *directory)
{
    enum { STACK_BYTES = 4096 };
    start(directory, make_welcome(2, 2, SJ_FULL_DROP_NEW));
    call_times(1);
    const uint64_t low = sj_recorder_self.slot->stack_low;
    const uint64_t cursor = sj_recorder_self.cursor;
    sj_recorder_self.cursor = 0; /* as in the slow path */
    sj_recorder_begin_handler(low, low + STACK_BYTES);
    sj_recorder_self.cursor = cursor;
    CHECK(sj_recorder_self.alternate_high == low + STACK_BYTES);
    call_times(3 * SJ_CHUNK_RECORDS / 4);
    CHECK(sj_recorder_self.alternate_low == 0 && sj_recorder_self.alternate_high == 0);
}

static void test_a_handler_that_was_left_is_forgotten_at_the_next_chunk(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(forget_handler_that_was_left), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handlers_on_an_alternate_stack_are_noted),
        cmocka_unit_test(test_a_handler_is_not_noted_without_space),
        cmocka_unit_test(test_a_later_chunk_does_not_repeat_a_handlers_notes),
        cmocka_unit_test(test_a_handler_that_was_left_is_forgotten_at_the_next_chunk),
        cmocka_unit_test(test_a_thread_waits_although_a_handler_is_installed),
        cmocka_unit_test(test_a_signal_handler_never_waits),
        cmocka_unit_test(test_a_thread_waits_after_a_handler_has_returned),
        cmocka_unit_test(test_a_coroutine_below_a_large_mapping_never_waits),
        cmocka_unit_test(test_handlers_of_a_waiting_thread_record_into_reserved_space),
        cmocka_unit_test(test_a_handler_may_leave_a_waiting_thread_by_longjmp),
        cmocka_unit_test(test_a_child_may_return_from_a_handler_into_a_wait),
#if defined(__x86_64__)
        cmocka_unit_test(test_a_handler_of_an_own_fault_waits),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
