/* Open stacks: the calls of each stream that are open at the end of a profile's sums. The process
 * that finishes a killed recorder's session counts them. Not thread-safe. */
#ifndef SJ_AGENT_MODES_OPEN_STACKS_H
#define SJ_AGENT_MODES_OPEN_STACKS_H

#include "agent/session/frame_writer.h"
#include "proto/callgraph/callgraph.h"

/* Maximum bytes of a checkpoint's stacks; further streams are left out. */
enum { SJ_OPEN_STACKS_MAX_BYTES = 16 << 20 };

typedef struct sj_open_stack sj_open_stack;

typedef struct sj_open_stacks {
    sj_open_stack **by_stream; /* [capacity]; NULL: no call is open, or it is not known */
    size_t capacity;
} sj_open_stacks;

void sj_open_stacks_deinit(sj_open_stacks *stacks); /* safe on a zeroed one */

/* Allocates memory for the calls that the block of `header` leaves open. Does not change the known
 * stacks. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_open_stacks_reserve(sj_open_stacks *stacks,
                                               const sj_block_header *header);

/* Replaces the stack of the block's stream. `summary` is of that block and lists its open calls.
 * Call sj_open_stacks_reserve for the block before. */
void sj_open_stacks_note(sj_open_stacks *stacks, const sj_block_header *header,
                         const sj_block_summary *summary);

/* Writes all stacks as bytes, which only a process on this machine can read. The caller frees them.
 * Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_open_stacks_write(const sj_open_stacks *stacks, uint8_t **bytes,
                                             size_t *size);

/* Sends a block without events for each written stack, so that the collector ends its calls as open
 * when the session ends. Skips a block for which the spool has no space, or that cannot be encoded.
 * Returns SJ_ECORRUPT, SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_open_stacks_send(sj_slice bytes, sj_frame_writer *writer);

#endif
