/* Finds the calls that are open at the end of a block, and the calls with the ending SJ_ENDING_OPEN
 * in it. Not thread-safe. */
#ifndef SJ_PROTO_CALLGRAPH_STACK_WALK_H
#define SJ_PROTO_CALLGRAPH_STACK_WALK_H

#include "proto/block/block.h"
#include "proto/block/call_trust.h"

typedef struct sj_stack_walk {
    sj_stack_frame *frames; /* open calls, outermost first, with the flags of their entry */
    size_t count, capacity;
    size_t kept_frames; /* number of frames from DEEP_FRAMES blocks that were open all the time */
    sj_call_trust trust;
    uint64_t next_call; /* number of the stream's next call */
    /* Called with each call that ended as open, with its depth and flags; may be NULL. */
    sj_status (*open_call)(void *context, const sj_stack_frame *frame, uint32_t depth);
    void *context;
} sj_stack_walk;

/* Puts the calls that are open at the start of the block on the stack. `deep` has
 * header.stack_frames frames from DEEP_FRAMES blocks. Release with sj_stack_walk_deinit, even after
 * a failure. Errors: SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_stack_walk_begin(sj_stack_walk *walk, const sj_block *block,
                                            const sj_stack_frame *deep);
void sj_stack_walk_deinit(sj_stack_walk *walk);

/* Walks the events of a block decoded with SJ_WANT_ALL. Errors: SJ_ENOMEM, or what `open_call`
 * returns. */
SJ_MUST_CHECK sj_status sj_stack_walk_run(sj_stack_walk *walk, const sj_block *block);

/* Returns the flags of the open call number `index`; 0 is the outermost. */
static inline uint32_t sj_stack_walk_flags(const sj_stack_walk *walk, uint32_t index)
{
    return walk->frames[index].flags | sj_call_trust_flags(&walk->trust, index);
}

#endif
