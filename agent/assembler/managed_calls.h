/* Managed calls: those of a runtime whose records bear no stack address (sj_managed_stack).
 *
 * They nest in the thread's own stack by the order of their records alone. An open managed call is
 * given the address of the native call below it, less one: an odd number, as no native call has.
 * By the rules of native calls it then ends together with that one and never without it:
 *   a native ENTER at S ends managed calls only with a native call at S or below that has them on
 *   top; a native LEAVE at S ends the managed calls above the native call at S.
 *
 *   ENTER: a new call opens; nothing ends.
 *   LEAVE f: the innermost managed call of f ends, by return or by exception; what lies above it
 *   has ended unseen. No f among the innermost SJ_MANAGED_REACH calls: the exit is an orphan,
 *   but that of an interrupted frame, which may have been hit outside of what its call tells of.
 *   By exception with native calls above it (the runtime reports it while it unwinds): it ends,
 * with these, when they do or when the next managed call is entered or returns; of these, those
 * that went on nevertheless return later, which ends nothing and is no orphan. After a gap, open
 * managed calls are as uncertain as native ones (call_trust.h).
 *   SJ_MANAGED_PASSED f: likewise for code that is hooked in place, whose calls have the addresses
 * of native ones: the innermost of f that is no managed one ends. No such call: the frame is older
 * than its hooks or has none, which is no orphan. */
#ifndef SJ_AGENT_ASSEMBLER_MANAGED_CALLS_H
#define SJ_AGENT_ASSEMBLER_MANAGED_CALLS_H

#include "agent/assembler/call_stack.h"

enum { SJ_MANAGED_REACH = 4096 };

/* sj_managed_base is the address of a managed call with no native one below it: behind all that the
 * stack of the run can hold. */
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

/* sj_managed_pending is the depth of the outermost call that an exception has left while native
 * calls above it go on; 0: there is none (any more). */
static inline uint32_t sj_managed_pending(const sj_call_stack *stream)
{
    const uint32_t depth = stream->thrown_depth;
    return depth != 0 && depth <= stream->depth &&
                   stream->frames[depth - 1].call_index == stream->thrown_call
               ? depth
               : 0;
}

/* sj_managed_address is the address of a managed call that is entered above a call at `below`. */
static inline uint64_t sj_managed_address(uint64_t below)
{
    return sj_managed_is_call(below) ? below : below - 1;
}

/* sj_managed_enter and sj_managed_leave take a record on the stream of the thread's own stack;
 * `stack` is the sj_managed_stack of the LEAVE. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_managed_enter(sj_call_stack *stream, const sj_record_run *run,
                                         uint32_t function, uint64_t ticks);
SJ_MUST_CHECK sj_status sj_managed_leave(sj_call_stack *stream, uint32_t function, uint64_t stack,
                                         uint64_t ticks);

/* sj_managed_take is sj_call_stack_take for managed records: it takes ordinary entries and returns
 * of them, as the functions above would, and returns how many. */
size_t sj_managed_take(sj_call_stack *stream, const sj_record_run *run, const sj_record *records,
                       size_t count, uint64_t *last_ticks);

#endif
