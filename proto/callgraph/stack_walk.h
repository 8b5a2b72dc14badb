/* The calls that are open at the end of a block, and those that it ends as open. One thread at a
 * time. */
#ifndef SJ_PROTO_CALLGRAPH_STACK_WALK_H
#define SJ_PROTO_CALLGRAPH_STACK_WALK_H

#include "proto/block/block.h"
#include "proto/block/call_trust.h"

typedef struct sj_stack_walk {
    sj_stack_frame *frames; /* the calls that are open, outermost first; with the flags that they
                               were entered with */
    size_t count, capacity;
    size_t kept_frames; /* frames of STACK blocks that were open all the time, 0: none */
    sj_call_trust trust;
    uint64_t next_call; /* number of the next call in the stream */
    /* is called with each call that the block ends as open, its depth and its flags; or NULL */
    sj_status (*open_call)(void *context, const sj_stack_frame *frame, uint32_t depth);
    void *context;
} sj_stack_walk;

/* sj_stack_walk_begin puts the calls that are open at the start of the block on the stack. `deep`
 * are header.stack_frames frames of its STACK blocks. Release with sj_stack_walk_deinit, after a
 * failure, too. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_stack_walk_begin(sj_stack_walk *walk, const sj_block *block,
                                            const sj_stack_frame *deep);
void sj_stack_walk_deinit(sj_stack_walk *walk);

/* sj_stack_walk_run walks the events of a block that was decoded whole. SJ_ENOMEM, or what
 * `open_call` returns. */
SJ_MUST_CHECK sj_status sj_stack_walk_run(sj_stack_walk *walk, const sj_block *block);

/* sj_stack_walk_flags returns the flags of the open call number `index`, 0 being the outermost. */
static inline uint32_t sj_stack_walk_flags(const sj_stack_walk *walk, uint32_t index)
{
    return walk->frames[index].flags | sj_call_trust_flags(&walk->trust, index);
}

#endif
