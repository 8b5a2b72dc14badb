/* Collects the open calls that a key-frame lacks from the DEEP_FRAMES blocks that it refers to. */
#ifndef SJ_COLLECTOR_SERVER_STORE_STACK_LOOKUP_H
#define SJ_COLLECTOR_SERVER_STORE_STACK_LOOKUP_H

#include "proto/base/error.h"
#include "proto/block/block.h"

/* Decodes the DEEP_FRAMES block with the number `reference` of one stream into `block`, which stays
 * valid until the next call. Returns SJ_ENOTFOUND if there is none. */
typedef sj_status sj_stack_block_read(void *context, uint32_t reference, sj_block *block);

/* Writes `count` frames to `frames`, outermost first, from the block `reference` and those that it
 * refers to. Returns SJ_ENOTFOUND if one is missing, SJ_ECORRUPT if they contradict each other, and
 * the errors of `read`. */
SJ_MUST_CHECK sj_status sj_stack_collect(sj_stack_block_read *read, void *context,
                                         uint32_t reference, uint32_t count,
                                         sj_stack_frame *frames);

#endif
