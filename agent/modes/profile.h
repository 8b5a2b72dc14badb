/* Profiler: turns the blocks of all threads into sums per call path. Only the drain's thread uses
 * it. */
#ifndef SJ_AGENT_MODES_PROFILE_H
#define SJ_AGENT_MODES_PROFILE_H

#include "agent/session/frame_writer.h"

typedef struct sj_profiler sj_profiler;

typedef struct sj_profiler_options {
    sj_frame_writer *writer;       /* borrowed */
    const sj_journal *journal;     /* borrowed; NULL: no other process can take over */
    const char *runtime_directory; /* folder of checkpoints; borrowed */
} sj_profiler_options;

/* Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_profiler_new(const sj_profiler_options *options, sj_profiler **profiler);
void sj_profiler_free(sj_profiler *profiler);

/* Adds a block, except its gaps. As for a sink of blocks, an error means that the block counts as
 * lost. */
SJ_MUST_CHECK sj_status sj_profiler_block(sj_profiler *profiler, sj_slice bytes);

/* Returns the gaps of the block that was added last, for the caller to report. Borrowed until the
 * next block. */
const sj_gap *sj_profiler_gaps(const sj_profiler *profiler, size_t *count);

/* Returns the sums that were not sent. */
sj_profile_sums sj_profiler_unsent(const sj_profiler *profiler);

/* Sends the sums since the last call and starts new ones; does nothing if there are none. Returns
 * SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_profiler_send(sj_profiler *profiler);

/* Stores the sums and the open calls in a file of the runtime directory, for the process that
 * finishes a killed recorder's session. Without that file, recovery reports a gap. */
void sj_profiler_checkpoint(sj_profiler *profiler);

/* Calls sj_profiler_checkpoint if a checkpoint is due at `now_ns` (CLOCK_MONOTONIC): a second after
 * the previous one, or later if that one took long. */
void sj_profiler_checkpoint_if_due(sj_profiler *profiler, uint64_t now_ns);

/* Sends the last checkpoint of a killed recorder: its unsent sums, and its open calls in blocks
 * without events. Reports a gap for the calls after the checkpoint. Returns SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_profiler_recover(const sj_profiler_options *options);

/* True if the sums should be sent early. */
bool sj_profiler_is_large(const sj_profiler *profiler);

#endif
