/* Managed calls: calls of a runtime whose records have no stack address (sj_managed_stack).
 *
 * The assembler nests them in the thread's own stack by the order of their records alone. It gives
 * an open managed call the address of its nearest native caller, less one. So the lowest bit of the
 * address is set, which is never set for a native call. By the rules of native calls, the managed
 * call then ends at the latest when that native caller ends:
 *   A native ENTER at S ends managed calls only if it also ends their native caller.
 *   A native LEAVE at S ends the managed calls that the native call at S has made.
 *
 *   ENTER: a new call opens; no call ends.
 *   LEAVE of f: the innermost managed call of f ends, by return or by exception. The calls inside
 *     it have ended unseen. If f is not among the innermost SJ_MANAGED_REACH calls, the exit is an
 *     orphan. An exit by SJ_MANAGED_INTERRUPTED is never an orphan: the exception may have struck
 *     before the entry was recorded, or after the exit.
 *   LEAVE by exception while native calls inside the managed call are open: the runtime reports the
 *     exception while it unwinds. The managed call ends with these native calls, or when the next
 *     managed call is entered or returns. If such a native call runs on nevertheless, its exit
 *     comes later, ends no call and is not an orphan.
 *   SJ_MANAGED_PASSED of f: a LEAVE by exception from code that is hooked in place, whose calls
 *     have stack addresses like native calls. The innermost call of f with a stack address ends. If
 *     there is none, the frame is older than the hooks, or the code is not hooked. The exit is not
 *     an orphan.
 *
 * After a gap, open managed calls are as uncertain as native ones (call_trust.h). */
#ifndef SJ_AGENT_ASSEMBLER_MANAGED_CALLS_H
#define SJ_AGENT_ASSEMBLER_MANAGED_CALLS_H

#include "agent/assembler/call_stack.h"

enum { SJ_MANAGED_REACH = 4096 };

/* Returns the address of a managed call that has no native caller. Its bit 0 is set, and no native
 * call on the run's stack has a higher address. */
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

/* Returns the depth of the outermost open call that an exception left while native calls that it
 * made still run; 0: there is none. */
static inline uint32_t sj_managed_pending(const sj_call_stack *stream)
{
    const uint32_t depth = stream->thrown_depth;
    return depth != 0 && depth <= stream->depth &&
                   stream->frames[depth - 1].call_index == stream->thrown_call
               ? depth
               : 0;
}

/* Returns the address of a managed call whose caller, native or managed, has the address `below`.
 */
static inline uint64_t sj_managed_address(uint64_t below)
{
    return sj_managed_is_call(below) ? below : below - 1;
}

/* Process one record on the stream of the thread's own stack. `stack` is the sj_managed_stack of
 * the LEAVE. Return SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_managed_enter(sj_call_stack *stream, const sj_record_run *run,
                                         uint32_t function, uint64_t ticks);
SJ_MUST_CHECK sj_status sj_managed_leave(sj_call_stack *stream, uint32_t function, uint64_t stack,
                                         uint64_t ticks);

/* The counterpart of sj_call_stack_feed_ordinary for managed records. Consumes the leading records
 * that enter a managed call, or return from the innermost call. Consumes none if an open call is
 * uncertain (call_trust.h). Returns their number, and stops at any other record. */
size_t sj_managed_feed_ordinary(sj_call_stack *stream, const sj_record_run *run,
                                const sj_record *records, size_t count, uint64_t *last_ticks);

#endif
