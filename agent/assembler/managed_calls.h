/* Managed calls: calls of a runtime whose records have no stack address (sj_managed_stack).
 *
 * The assembler nests them in the thread's own stack by the order of their records alone. It gives
 * an open managed call the address of the native call below it, less one. Its lowest bit is set,
 * which a native call's address never is. By the rules of native calls, the managed call then ends
 * together with that native call and never without it:
 *   A native ENTER at S ends managed calls only if it ends a native call below them.
 *   A native LEAVE at S ends the managed calls above the native call at S.
 *
 *   ENTER: a new call opens; no call ends.
 *   LEAVE of f: the innermost managed call of f ends, by return or by exception. The calls above it
 *     have ended unseen. If the innermost SJ_MANAGED_REACH calls have no f, the exit is an orphan.
 *     The exit of an interrupted frame is not: the exception may have hit outside of its call.
 *   LEAVE by exception while native calls above it are open: the runtime reports the exception
 *     while it unwinds. The call ends with these native calls, or when the next managed call is
 *     entered or returns. A native call that ran on nevertheless returns later: that ends no call
 *     and is not an orphan.
 *   SJ_MANAGED_PASSED of f: the same for code that is hooked in place, whose calls have the
 *     addresses of native ones. The innermost call of f that is not managed ends. If there is
 *     none, the frame is older than its hooks or has none, and the exit is not an orphan.
 *
 * After a gap, open managed calls are as uncertain as native ones (call_trust.h). */
#ifndef SJ_AGENT_ASSEMBLER_MANAGED_CALLS_H
#define SJ_AGENT_ASSEMBLER_MANAGED_CALLS_H

#include "agent/assembler/call_stack.h"

enum { SJ_MANAGED_REACH = 4096 };

/* Returns the address of a managed call that has no native call below it. It has bit 0 set and lies
 * above all of the run's stack. */
static inline uint64_t sj_managed_base(const sj_record_run *run)
{
    const uint64_t high =
        run->stack_span != 0 ? run->stack_low + run->stack_span : UINT64_C(1) << 48;
    return (high - 1) | 1;
}

static inline bool sj_managed_is_call(uint64_t stack)
{
    return (stack & 1) != 0;
}

/* Returns the depth of the outermost call that an exception left while native calls above it run
 * on; 0: there is none. */
static inline uint32_t sj_managed_pending(const sj_call_stack *stream)
{
    const uint32_t depth = stream->thrown_depth;
    return depth != 0 && depth <= stream->depth &&
                   stream->frames[depth - 1].call_index == stream->thrown_call
               ? depth
               : 0;
}

/* Returns the address of a managed call that is entered above a call at address `below`. */
static inline uint64_t sj_managed_address(uint64_t below)
{
    return sj_managed_is_call(below) ? below : below - 1;
}

/* Process one record on the stream of the thread's own stack. `stack` is the sj_managed_stack of
 * the LEAVE. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_managed_enter(sj_call_stack *stream, const sj_record_run *run,
                                         uint32_t function, uint64_t ticks);
SJ_MUST_CHECK sj_status sj_managed_leave(sj_call_stack *stream, uint32_t function, uint64_t stack,
                                         uint64_t ticks);

/* Like sj_call_stack_feed_ordinary, for managed records: consumes ordinary entries and returns, and
 * returns their number. */
size_t sj_managed_feed_ordinary(sj_call_stack *stream, const sj_record_run *run,
                                const sj_record *records, size_t count, uint64_t *last_ticks);

#endif
