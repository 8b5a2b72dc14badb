/* Call trust: decides which calls a gap makes untrustworthy. The device, which cuts blocks, and all
 * readers of blocks use this one rule.
 *
 * A gap concerns every call that is open at that moment, so the flagged calls are always the
 * outermost calls of a stack. One depth says how many they are, so flagging a stack of a million
 * frames is one store. A reader starts with the depths in a block's header and walks events, gaps
 * and endings in order.
 *
 *   SJ_CALL_GAP, SJ_CALL_WAITED: the call was open across a gap, or while the thread waited.
 *   SJ_CALL_BEFORE_RECORDING: the call was open when recording began. The header has no depth for
 *   it: the calls of later key-frames carry the flag themselves.
 *   SJ_CALL_UNCERTAIN_DEPTH: at the call's entry, it was unknown which of the open calls had ended
 *   in a gap. A call that returns proves nothing about its callers: another call of the same
 *   function may have begun at the same address. The uncertainty ends when all these calls have
 *   ended, or with a block whose header says so.
 *
 * Does not allocate or lock. An object belongs to one thread. */
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

/* Records a gap while `depth` calls are open. */
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
        trust->uncertain_depth = depth; /* after other reasons the open calls are unknown */
    }
}

/* Returns how many of the outermost calls have at least one flag. */
static inline uint32_t sj_call_trust_flagged(const sj_call_trust *trust)
{
    uint32_t depth = trust->gap_depth;
    depth = depth > trust->waited_depth ? depth : trust->waited_depth;
    return depth > trust->before_depth ? depth : trust->before_depth;
}

/* Returns the flags that gaps give to the open call number `index` (0: the outermost). */
static inline uint32_t sj_call_trust_flags(const sj_call_trust *trust, uint32_t index)
{
    return (index < trust->gap_depth ? (uint32_t)SJ_CALL_GAP : 0u) |
           (index < trust->waited_depth ? (uint32_t)SJ_CALL_WAITED : 0u) |
           (index < trust->before_depth ? (uint32_t)SJ_CALL_BEFORE_RECORDING : 0u);
}

/* Returns the flags with which a new call starts. */
static inline uint32_t sj_call_trust_enter(const sj_call_trust *trust)
{
    return trust->uncertain_depth > 0 ? (uint32_t)SJ_CALL_UNCERTAIN_DEPTH : 0u;
}

/* Records that the innermost call, number `index`, ended. */
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
