/* Open stacks: the calls that are open at the end of what a profile has summed up, by stream, so
 * that the process which finishes the session of a killed recorder can count them, too. One thread
 * at a time. */
#ifndef SJ_AGENT_MODES_OPEN_STACKS_H
#define SJ_AGENT_MODES_OPEN_STACKS_H

#include "agent/session/frame_writer.h"
#include "proto/callgraph/callgraph.h"

/* Bytes of a checkpoint's stacks at most; the streams behind them are left out. */
enum { SJ_OPEN_STACKS_MAX_BYTES = 16 << 20 };

typedef struct sj_open_stack sj_open_stack;

typedef struct sj_open_stacks {
    sj_open_stack **by_stream; /* [capacity]; NULL: nothing is open, or it is not known */
    size_t capacity;
} sj_open_stacks;

void sj_open_stacks_deinit(sj_open_stacks *stacks); /* safe on a zeroed one */

/* sj_open_stacks_reserve makes room for what the block of `header` leaves open. SJ_ENOMEM; what is
 * known stays as it was in any case. */
SJ_MUST_CHECK sj_status sj_open_stacks_reserve(sj_open_stacks *stacks,
                                               const sj_block_header *header);

/* sj_open_stacks_note replaces what is known of the block's stream; `summary` is of that block and
 * lists what it leaves open. sj_open_stacks_reserve has made room for that block. */
void sj_open_stacks_note(sj_open_stacks *stacks, const sj_block_header *header,
                         const sj_block_summary *summary);

/* sj_open_stacks_write writes all stacks as bytes, which the caller frees; read on the same machine
 * only. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_open_stacks_write(const sj_open_stacks *stacks, uint8_t **bytes,
                                             size_t *size);

/* sj_open_stacks_send sends a block without events for each written stack: the collector ends its
 * calls as open when the session ends. A block that the spool has no room for, or
 * that cannot be encoded, is left out. SJ_ECORRUPT, SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_open_stacks_send(sj_slice bytes, sj_frame_writer *writer);

#endif
