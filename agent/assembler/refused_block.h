/* Refused block: keeps the calls of a block that the sink did not accept, if other blocks need
 * them.
 *
 * The calls that began and ended in the block are removed, and the block is filled further. The
 * removed calls are lost. Gaps count them at their places. Calls that were open at the start or at
 * the end of the block stay whole. A block that is accepted later holds both their entries and
 * their exits. Not thread-safe. */
#ifndef SJ_AGENT_ASSEMBLER_REFUSED_BLOCK_H
#define SJ_AGENT_ASSEMBLER_REFUSED_BLOCK_H

#include "agent/assembler/call_stack.h"

/* Removes from the block being filled its values and the calls that began and ended in it. Counts
 * them as refused, together with the calls that stay until a block delivers them. Returns SJ_EFULL
 * if more than half of the block or of its gaps would stay, or if its outer frames lie in
 * DEEP_FRAMES blocks. On SJ_EFULL and SJ_ENOMEM nothing is changed. Does not block. */
SJ_MUST_CHECK sj_status sj_refused_block_shrink(sj_call_stack *stream);

/* Counts the block being filled as refused, except the events that an earlier refusal counted. */
void sj_refused_block_count(sj_call_stack *stream);

/* Subtracts the calls that stayed from the refused ones, because a block has delivered them. */
void sj_refused_block_delivered(sj_call_stack *stream);

#endif
