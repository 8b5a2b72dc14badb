/* Call trust: which calls a gap makes untrustworthy, by one rule for the device that cuts blocks
 * and for everyone who reads them.
 *
 * A gap concerns every call open at that moment, so flagged calls are always the outermost ones of
 * a stack: a depth says it all, and a stack of a million frames is flagged in one store. A reader
 * starts with the depths of a block's header and walks its events, gaps and endings in order.
 *
 *   SJ_CALL_GAP, SJ_CALL_WAITED: the call was open across a gap, or a wait.
 *   SJ_CALL_BEFORE_RECORDING: the call was open when recording began. The header has no depth for
 *   it: the calls of later key-frames carry the flag themselves.
 *   SJ_CALL_UNCERTAIN_DEPTH: the call was entered while calls below it were not known to have
 *   outlived a gap. A call that returns proves nothing of its callers: another call of its
 *   function may have begun at the same address. They are known again when all of them have ended,
 *   or when a block begins whose header says so.
 *
 * Freestanding; one thread per object. */
#ifndef SJ_PROTO_BLOCK_CALL_TRUST_H
#define SJ_PROTO_BLOCK_CALL_TRUST_H

#include "proto/block/block.h"

typedef struct sj_call_trust {
    uint32_t gap_depth;
    uint32_t waited_depth;
    uint32_t uncertain_depth;
    uint32_t before_depth;
} sj_call_trust;

static inline sj_call_trust sj_call_trust_of(const sj_block_header *header)
{
    return (sj_call_trust){.gap_depth = header->gap_depth,
                           .waited_depth = header->waited_depth,
                           .uncertain_depth = header->uncertain_depth};
}

/* sj_call_trust_gap notes a gap while `depth` calls are open. */
static inline void sj_call_trust_gap(sj_call_trust *trust, uint32_t reason, uint32_t depth)
{
    if (reason == SJ_GAP_WAITED) {
        trust->waited_depth = depth;
        return;
    }
    if (reason == SJ_GAP_BEFORE_RECORDING) {
        trust->before_depth = depth;
        return;
    }
    trust->gap_depth = depth;
    if (reason != SJ_GAP_ORPHAN && reason != SJ_GAP_SPOOL_FULL) {
        trust->uncertain_depth = depth; /* those two lose no knowledge of what is open */
    }
}

/* sj_call_trust_flagged returns how many of the outermost calls are flagged at least. */
static inline uint32_t sj_call_trust_flagged(const sj_call_trust *trust)
{
    uint32_t depth = trust->gap_depth;
    depth = depth > trust->waited_depth ? depth : trust->waited_depth;
    return depth > trust->before_depth ? depth : trust->before_depth;
}

/* sj_call_trust_flags returns the flags that gaps give to the open call number `index` (0: the
 * outermost). */
static inline uint32_t sj_call_trust_flags(const sj_call_trust *trust, uint32_t index)
{
    return (index < trust->gap_depth ? (uint32_t)SJ_CALL_GAP : 0u) |
           (index < trust->waited_depth ? (uint32_t)SJ_CALL_WAITED : 0u) |
           (index < trust->before_depth ? (uint32_t)SJ_CALL_BEFORE_RECORDING : 0u);
}

/* sj_call_trust_enter returns the flags that a new call starts with. */
static inline uint32_t sj_call_trust_enter(const sj_call_trust *trust)
{
    return trust->uncertain_depth > 0 ? (uint32_t)SJ_CALL_UNCERTAIN_DEPTH : 0u;
}

/* sj_call_trust_leave notes that the open call number `index`, the innermost, ended. */
static inline void sj_call_trust_leave(sj_call_trust *trust, uint32_t index)
{
    if (index < trust->uncertain_depth) {
        trust->uncertain_depth = index;
    }
    if (index < trust->gap_depth) {
        trust->gap_depth = index;
    }
    if (index < trust->waited_depth) {
        trust->waited_depth = index;
    }
    if (index < trust->before_depth) {
        trust->before_depth = index;
    }
}

#endif
