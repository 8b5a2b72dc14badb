/* Routes the blocks of all threads to where the mode of the recording wants them. */
#ifndef SJ_AGENT_DRAIN_BLOCK_SINK_H
#define SJ_AGENT_DRAIN_BLOCK_SINK_H

#include "agent/drain/drain_context.h"

/* sj_block_sink_take passes a block of the thread number `thread` to the spool, the profile's
 * aggregates or the flight ring. The bytes are borrowed for the call. The drain's thread.
 * SJ_EFULL: refused, and not sent. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_block_sink_take(const sj_drain_shared *shared, uint64_t thread,
                                           const sj_block_header *header, sj_slice bytes);

#endif
