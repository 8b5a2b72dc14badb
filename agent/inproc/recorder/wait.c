/* Design notes
 *
 * Whether a thread runs a signal handler is read off its stack: the kernel leaves there, as the
 * handler's return address, the restorer that sigaction was given, and gives the restorers when
 * asked for the actions; behind it lies the frame that the kernel made. Where no restorers are in
 * use, a word that the kernel writes into every such frame takes their place. The remains of an
 * earlier frame make the thread drop instead of wait, which is the safe side; so does a stack that
 * is not the thread's own (alternate signal stacks, coroutines). */
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/sys.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/uio.h>
#include <time.h>

enum { SIGNALS = 64, MAX_MARKS = 4, WAIT_SLICE_NS = 2000000, NS_PER_MS = 1000000 };
enum { UNSEEN_BLOCK_MS = 100 };

/* Collects the words that mark a handler's frame. */
#if defined(SJ_ARCH_SIGNAL_WORD)

static uint32_t collect_marks(uint64_t *marks)
{
    marks[0] = SJ_ARCH_SIGNAL_WORD;
    return 1;
}

#else

/* The kernel's struct sigaction. */
typedef struct kernel_action {
    uint64_t handler;
    uint64_t flags;
    uint64_t restorer;
    uint64_t mask;
} kernel_action;

/* Collects the distinct restorers; MAX_MARKS + 1 when there are more. */
static uint32_t collect_marks(uint64_t *restorers)
{
    uint32_t count = 0;
    for (uint32_t number = 1; number <= SIGNALS; number++) {
        kernel_action action = {0, 0, 0, 0};
        if (SJ_SYS(SYS_rt_sigaction, number, NULL, &action, sizeof(action.mask), 0, 0) != 0 ||
            action.restorer == 0) {
            continue;
        }
        uint32_t known = 0;
        while (known < count && restorers[known] != action.restorer) {
            known++;
        }
        if (known == count) {
            if (count == MAX_MARKS) {
                return MAX_MARKS + 1;
            }
            restorers[count++] = action.restorer;
        }
    }
    return count;
}

#endif

/* A part of the stack, copied by the kernel: whatever another thread protects or unmaps meanwhile,
 * reading it cannot fault. */
enum {
    PART_BYTES = 1024,
    BYTES_BEFORE = SJ_ARCH_SIGNAL_WORDS_BEFORE * 8,
    BYTES_BEHIND = SJ_ARCH_SIGNAL_WORDS_BEHIND * 8,
    COPY_BYTES = BYTES_BEFORE + PART_BYTES + BYTES_BEHIND
};

static bool copy_stack(uint64_t address, uint64_t *words, uint64_t bytes)
{
    const struct iovec here = {.iov_base = words, .iov_len = bytes};
    const struct iovec there = {.iov_base = (void *)address, .iov_len = bytes};
    const long got = SJ_SYS(SYS_process_vm_readv, sj_sys_pid(), &here, 1, &there, 1, 0);
    if (got == -ENOSYS) { /* an emulator */
        for (uint64_t i = 0; i < bytes / sizeof(*words); i++) {
            words[i] = ((const volatile uint64_t *)address)[i];
        }
        return true;
    }
    return got == (long)bytes;
}

/* Looks for a handler's frame from `from` up to `high`, at most PART_BYTES further. */
static bool has_frame(uint64_t from, uint64_t high, const uint64_t *marks, uint32_t count)
{
    uint64_t words[COPY_BYTES / 8];
    const uint64_t low = from - BYTES_BEFORE;
    const uint64_t bytes = high - low < COPY_BYTES ? high - low : COPY_BYTES;
    if (!copy_stack(low, words, bytes)) {
        return true;
    }
    for (uint64_t at = from; at < high && at < from + PART_BYTES; at += 8) {
        const uint64_t *word = words + (at - low) / 8;
        for (uint32_t i = 0; i < count; i++) {
            if (*word == marks[i] &&
                (high - at <= BYTES_BEHIND || sj_arch_is_signal_frame(word, at))) {
                return true;
            }
        }
    }
    return false;
}

static bool may_be_in_handler(sj_stack_bounds stack)
{
    uint64_t marks[MAX_MARKS];
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0) & ~UINT64_C(7);
    const uint64_t high = stack.high & ~UINT64_C(7);
    if (here < stack.low || here >= high) {
        return true;
    }
    const uint32_t count = collect_marks(marks);
    if (count > MAX_MARKS) {
        return true;
    }
    for (uint64_t at = here; count != 0 && at < high; at += PART_BYTES) {
        if (has_frame(at, high, marks, count)) {
            return true;
        }
    }
    return false;
}

static void sleep_until_woken(uint64_t remaining_ns)
{
    _Atomic uint32_t *word = &sj_recorder.arena->drain_waiters;
    const struct {
        int64_t seconds;
        int64_t nanoseconds;
    } slice = {0, (int64_t)(remaining_ns < WAIT_SLICE_NS ? remaining_ns : WAIT_SLICE_NS)};
    (void)SJ_SYS(SYS_futex, word, FUTEX_WAIT, atomic_load(word), &slice, 0, 0);
}

/* How long a thread waits for a consumer. One that is not there, which may also be one that another
 * namespace of processes hides, gets some time only. */
static uint64_t longest_wait_ns(void)
{
    const sj_arena_header *arena = sj_recorder.arena;
    const uint32_t consumer = atomic_load_explicit(&arena->consumer, memory_order_relaxed);
    const bool is_there = consumer == 0 || SJ_SYS(SYS_kill, consumer, 0, 0, 0, 0, 0) != -ESRCH;
    const uint32_t most_ms =
        !is_there && arena->wait_ms > UNSEEN_BLOCK_MS ? UNSEEN_BLOCK_MS : arena->wait_ms;
    return (uint64_t)most_ms * NS_PER_MS;
}

/* Waits until the consumer has given back what `is_there` takes or sees. */
static bool wait_for(sj_recorder_thread *self, bool (*is_there)(sj_recorder_thread *self))
{
    sj_arena_header *arena = sj_recorder.arena;
    const uint64_t start_ns = sj_sys_clock_ns(CLOCK_MONOTONIC);
    bool found = false;
    atomic_fetch_add(&arena->drain_waiters, 1);
    for (; !found; found = is_there(self)) {
        const uint64_t waited_ns = sj_sys_clock_ns(CLOCK_MONOTONIC) - start_ns;
        const uint64_t longest_ns = longest_wait_ns();
        if (waited_ns >= longest_ns || !sj_recorder_may_call()) {
            break;
        }
        sleep_until_woken(longest_ns - waited_ns);
    }
    atomic_fetch_sub(&arena->drain_waiters, 1);
    self->wait_failed = !found;
    return found;
}

static bool may_wait(const sj_recorder_thread *self)
{
    const sj_arena_header *arena = sj_recorder.arena;
    return arena->full_policy == SJ_FULL_WAIT && arena->wait_ms != 0 && !self->wait_failed &&
           sj_recorder_may_call();
}

static bool has_free_chunk(sj_recorder_thread *self)
{
    return atomic_load(&self->slot->free_chunks) != 0;
}

static bool wait_for_chunk(sj_recorder_thread *self)
{
    const sj_stack_bounds stack = {self->slot->stack_low, self->slot->stack_high};
    if (may_be_in_handler(stack)) {
        return false;
    }
    const uint64_t start_ticks = sj_arch_ticks();
    const bool found = wait_for(self, has_free_chunk);
    const uint64_t waited = sj_arch_ticks() - start_ticks;
    self->waited_ticks += waited;
    atomic_fetch_add_explicit(&self->slot->waited_ticks, waited, memory_order_relaxed);
    return found;
}

/* Whether a slot comes back soon: its thread has ended. */
static bool is_any_ended(void)
{
    const uint32_t pid = sj_sys_pid();
    const uint32_t count = sj_recorder.arena->max_threads;
    const uint32_t first = atomic_load_explicit(&sj_recorder.next_slot, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        const sj_thread_slot *slot = &sj_recorder.slots[(first + i) % count];
        const uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
        if (state == SJ_THREAD_FREE || state == SJ_THREAD_ENDED ||
            (state == SJ_THREAD_LIVE && SJ_SYS(SYS_tgkill, pid, slot->tid, 0, 0, 0, 0) == -ESRCH)) {
            return true;
        }
    }
    return false;
}

static bool wait_for_slot(sj_recorder_thread *self)
{
    if (!is_any_ended() || may_be_in_handler(sj_recorder_find_stack())) {
        return false;
    }
    const uint64_t start_ticks = sj_arch_ticks();
    atomic_fetch_add(&sj_recorder.arena->slot_waiters, 1);
    const bool found = wait_for(self, sj_recorder_claim);
    atomic_fetch_sub(&sj_recorder.arena->slot_waiters, 1);
    if (found) {
        const uint64_t waited = sj_arch_ticks() - start_ticks;
        self->waited_ticks += waited;
        atomic_fetch_add_explicit(&self->slot->waited_ticks, waited, memory_order_relaxed);
    }
    return found;
}

bool sj_recorder_wait(sj_recorder_thread *self)
{
    if (!may_wait(self) || !sj_recorder_begin_calls()) {
        return false;
    }
    const bool found = wait_for_chunk(self);
    sj_recorder_end_calls();
    return found;
}

bool sj_recorder_wait_for_slot(sj_recorder_thread *self)
{
    if (!may_wait(self) || !sj_recorder_begin_calls()) {
        return false;
    }
    const bool found = wait_for_slot(self);
    sj_recorder_end_calls();
    return found;
}
