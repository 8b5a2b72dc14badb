/* Sends the blocks of all threads to the destination that the recording's mode requires. */
#ifndef SJ_AGENT_DRAIN_BLOCK_SINK_H
#define SJ_AGENT_DRAIN_BLOCK_SINK_H

#include "agent/drain/drain_context.h"

/* Passes a block to the spool, the profile's aggregates or the flight ring. `bytes` is borrowed
 * during the call. Called by the drain's thread. Returns SJ_EFULL if the block was refused and not
 * sent. Also returns SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_sink_write(const sj_drain_shared *shared,
                                            const sj_block_header *header, sj_slice bytes);

/* Returns the number by which the offer of the next block is recognised (sj_slot_offer). */
uint64_t sj_block_sink_next(const sj_drain_shared *shared, const sj_block_header *header);

#endif
