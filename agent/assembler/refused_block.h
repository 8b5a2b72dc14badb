/* Refused block: what becomes of a block that the sink did not take.
 *
 * It goes on being filled, without the calls that began and ended in it: those are lost, and gaps
 * count them where they were. Calls that are open at its begin or at its end stay whole, so that a
 * block that is taken later holds their entries and their exits. One thread at a time. */
#ifndef SJ_AGENT_ASSEMBLER_REFUSED_BLOCK_H
#define SJ_AGENT_ASSEMBLER_REFUSED_BLOCK_H

#include "agent/assembler/call_stack.h"

/* sj_refused_block_shrink takes the calls that began and ended in the block being filled out of it,
 * and its values; counts them as refused, with the calls that stay until a block holds them.
 * SJ_EFULL leaves all as it was: more than half of the block, or of its gaps, would stay, or its
 * outer frames lie in STACK blocks. SJ_ENOMEM leaves all as it was. Does not block. */
SJ_MUST_CHECK sj_status sj_refused_block_shrink(sj_call_stack *stream);

/* sj_refused_block_count counts the block being filled as refused: what has not been counted by an
 * earlier refusal. */
void sj_refused_block_count(sj_call_stack *stream);

/* sj_refused_block_taken counts the calls that stayed as refused no more: a block holds them. */
void sj_refused_block_taken(sj_call_stack *stream);

#endif
