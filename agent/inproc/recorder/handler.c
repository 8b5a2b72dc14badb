/* Design notes
 *
 * The recorder reads from a thread's stack whether the thread runs a signal handler. The kernel
 * leaves the restorer that was passed to sigaction there, as the handler's return address. It
 * returns the restorers when asked for the actions. The frame that the kernel made follows that
 * address. Where no restorers are in use, the recorder searches for a word that the kernel writes
 * into every such frame. On a stack that is not its own (alternate signal stack, coroutine) a
 * thread drops instead of waiting, which is safe.
 *
 * Frames of handlers that have returned, and of inferior calls, may stay on the stack within live
 * frames that do not overwrite them. A running handler has its own signal blocked, in addition to
 * the signals that were blocked before. The frame holds the earlier mask. So a frame with the
 * thread's present mask is a remainder, unless some handler may be interrupted by its own signal
 * (SA_NODEFER). A handler that unblocks its signal itself waits like any function.
 *
 * A thread on a stack that is not its own, such as a coroutine's, drops instead of waiting if more
 * than SEARCH_BYTES lie above it. The kernel merges such stacks with other memory into one mapping,
 * and the recorder cannot tell where each ends. To search that mapping at each full chunk would
 * stall the thread for seconds, and a detach with it.
 *
 * A fault that the thread raised itself comes from an instruction of the program, never from the
 * recorder. Its handler may wait like any function. HotSpot relies on such faults. Its handler
 * leaves remainders in long-lived frames, which would keep the thread from waiting.
 *
 * A handler that forks leaves its frame on the child's stack for good. For example, PostgreSQL's
 * main process forks in a handler. The handler interrupted no code of the child. So the child
 * ignores the frame and waits. */
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/sys.h"

#include <errno.h>
#include <signal.h>
#include <sys/uio.h>

enum { SIGNALS = 64, MAX_MARKS = 4 };
enum { SEARCH_BYTES = 8 * 1024 * 1024 /* the usual maximum of a thread's stack */ };

/* The kernel's struct sigaction. */
typedef struct kernel_action {
    uint64_t handler;
    uint64_t flags;
    uint64_t restorer;
    uint64_t mask;
} kernel_action;

static bool read_action(uint32_t number, kernel_action *action)
{
    return SJ_SYS(SYS_rt_sigaction, number, NULL, action, sizeof(action->mask), 0, 0) == 0;
}

/* Collects the words that mark a handler's frame. */
#if defined(SJ_ARCH_SIGNAL_WORD)

static uint32_t collect_marks(uint64_t *marks)
{
    marks[0] = SJ_ARCH_SIGNAL_WORD;
    return 1;
}

#else

/* Collects the distinct restorers. Returns MAX_MARKS + 1 if there are more. */
static uint32_t collect_marks(uint64_t *restorers)
{
    uint32_t count = 0;
    for (uint32_t number = 1; number <= SIGNALS; number++) {
        kernel_action action = {0, 0, 0, 0};
        if (!read_action(number, &action) || action.restorer == 0) {
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

/* Sizes of a part of the stack. The kernel copies it, so reading cannot fault if another thread
 * protects or unmaps the stack meanwhile. */
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

/* True if a frame belongs to a handler of the thread's own fault. The kernel writes the siginfo
 * only for handlers that asked for it. */
static bool is_own_fault(const uint64_t *words)
{
    const sj_arch_signal signal = sj_arch_frame_signal(words);
    const bool is_fault = signal.number == SIGSEGV || signal.number == SIGFPE ||
                          signal.number == SIGILL ||
                          (signal.number == SIGBUS && signal.code != BUS_MCEERR_AO);
    kernel_action action = {0, 0, 0, 0};
    return is_fault && signal.code > 0 && read_action(signal.number, &action) &&
           (action.flags & SA_SIGINFO) != 0;
}

static bool is_any_undeferred(void)
{
    for (uint32_t number = 1; number <= SIGNALS; number++) {
        kernel_action action = {0, 0, 0, 0};
        if (read_action(number, &action) && (action.flags & SA_NODEFER) != 0) {
            return true;
        }
    }
    return false;
}

/* True if the handler of a frame has returned: the same signals are blocked as before the
 * handler. */
static bool is_remainder(const uint64_t *words)
{
    uint64_t mask = 0;
    return SJ_SYS(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof(mask), 0, 0) == 0 &&
           mask == sj_arch_frame_mask(words) && !is_any_undeferred();
}

static bool is_frame(const uint64_t *words, uint64_t at)
{
    return sj_arch_is_signal_frame(words, at) && !is_own_fault(words) && !is_remainder(words);
}

/* Searches for a handler's frame from `from` up to `high`, PART_BYTES at most. Skips the frame at
 * `known`. Returns the frame's address, SJ_UNKNOWN_HANDLER, or 0 if there is none. */
static uint64_t find_frame(uint64_t from, uint64_t high, const uint64_t *marks, uint32_t count,
                           uint64_t known)
{
    uint64_t words[COPY_BYTES / 8];
    const uint64_t low = from - BYTES_BEFORE;
    const uint64_t bytes = high - low < COPY_BYTES ? high - low : COPY_BYTES;
    if (!copy_stack(low, words, bytes)) {
        return SJ_UNKNOWN_HANDLER;
    }
    for (uint64_t at = from; at < high && at < from + PART_BYTES; at += 8) {
        const uint64_t *word = words + (at - low) / 8;
        for (uint32_t i = 0; i < count; i++) {
            if (*word == marks[i] && at != known &&
                (high - at <= BYTES_BEHIND || is_frame(word, at))) {
                return at;
            }
        }
    }
    return 0;
}

uint64_t sj_recorder_find_handler(sj_stack_bounds stack, uint64_t known)
{
    uint64_t marks[MAX_MARKS];
    uint64_t found = 0;
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0) & ~UINT64_C(7);
    const uint64_t high = stack.high & ~UINT64_C(7);
    if (here < stack.low || here >= high || (!stack.is_own && high - here > SEARCH_BYTES)) {
        return SJ_UNKNOWN_HANDLER;
    }
    const uint32_t count = collect_marks(marks);
    if (count > MAX_MARKS) {
        return SJ_UNKNOWN_HANDLER;
    }
    for (uint64_t at = here; count != 0 && at < high && found == 0; at += PART_BYTES) {
        found = find_frame(at, high, marks, count, known);
    }
    return found;
}
