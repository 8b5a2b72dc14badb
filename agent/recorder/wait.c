/* Design notes
 *
 * Whether a thread runs a signal handler is read off its stack: the kernel leaves there, as the
 * handler's return address, the restorer that sigaction was given, and tells the restorers when
 * asked for the actions; behind it lies the frame that the kernel made. Where no restorers are in
 * use, a word that the kernel writes into every such frame takes their place. The remains of an
 * earlier frame make the thread drop instead of wait, which is the safe side; so does a stack that
 * is not the thread's own (alternate signal stacks, coroutines). */
#include "agent/recorder/internal.h"
#include "agent/recorder/sys.h"

#include <linux/futex.h>
#include <time.h>

enum { SIGNALS = 64, MAX_MARKS = 4, WAIT_SLICE_NS = 2000000, NS_PER_MS = 1000000 };

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

static bool may_be_in_handler(const sj_thread_slot *slot)
{
    uint64_t marks[MAX_MARKS];
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    if (here < slot->stack_low || here >= slot->stack_high) {
        return true;
    }
    const uint32_t count = collect_marks(marks);
    if (count > MAX_MARKS) {
        return true;
    }
    for (uint64_t at = here & ~UINT64_C(7); count != 0 && at < slot->stack_high; at += 8) {
        const uint64_t word = *(const volatile uint64_t *)at;
        for (uint32_t i = 0; i < count; i++) {
            if (word == marks[i] && (slot->stack_high - at < SJ_ARCH_SIGNAL_FRAME_BYTES ||
                                     sj_arch_is_signal_frame(at))) {
                return true;
            }
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

bool sj_recorder_wait(sj_recorder_thread *self)
{
    const sj_arena_header *arena = sj_recorder.arena;
    if (arena->full_policy != SJ_FULL_BLOCK || arena->block_ms == 0 || self->wait_failed ||
        !sj_recorder_may_call() || may_be_in_handler(self->slot)) {
        return false;
    }
    const uint64_t start_ticks = sj_arch_ticks();
    const uint64_t deadline_ns =
        sj_sys_clock_ns(CLOCK_MONOTONIC) + (uint64_t)arena->block_ms * NS_PER_MS;
    bool found = false;
    atomic_fetch_add(&sj_recorder.arena->drain_waiters, 1);
    for (uint64_t now_ns = 0; !found; found = atomic_load(&self->slot->free_chunks) != 0) {
        now_ns = sj_sys_clock_ns(CLOCK_MONOTONIC);
        if (now_ns >= deadline_ns) {
            break;
        }
        sleep_until_woken(deadline_ns - now_ns);
    }
    atomic_fetch_sub(&sj_recorder.arena->drain_waiters, 1);
    const uint64_t waited = sj_arch_ticks() - start_ticks;
    self->waited_ticks += waited;
    atomic_fetch_add_explicit(&self->slot->waited_ticks, waited, memory_order_relaxed);
    self->wait_failed = !found;
    return found;
}
