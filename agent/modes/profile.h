/* The profiler: takes the blocks of all threads and keeps sums per call path instead of them.
 * Used by the drain's thread only. */
#ifndef SJ_AGENT_MODES_PROFILE_H
#define SJ_AGENT_MODES_PROFILE_H

#include "agent/session/frame_writer.h"

typedef struct sj_profiler sj_profiler;

typedef struct sj_profiler_options {
    sj_frame_writer *writer;       /* borrowed */
    const sj_journal *journal;     /* borrowed; NULL: nobody can take over */
    const char *runtime_directory; /* where checkpoints lie; borrowed */
} sj_profiler_options;

SJ_MUST_CHECK sj_status sj_profiler_new(const sj_profiler_options *options, sj_profiler **profiler);
void sj_profiler_free(sj_profiler *profiler);

/* sj_profiler_block adds a block; what its gaps lost is reported by Gap frames. Like a sink of
 * blocks, errors mean that the block counts as lost. */
SJ_MUST_CHECK sj_status sj_profiler_block(sj_profiler *profiler, uint64_t thread, sj_slice bytes);

/* Returns the sums that were not sent, and the losses that were not reported. */
sj_profile_sums sj_profiler_unsent(const sj_profiler *profiler);

/* sj_profiler_send sends the sums since the last time and begins anew; nothing when there are none.
 * SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_profiler_send(sj_profiler *profiler);

/* sj_profiler_checkpoint keeps the sums, and the calls that are open behind them, in a file of the
 * runtime directory, for the process that finishes the session of a killed recorder. One that
 * cannot be written is missing then, which shows as a gap. */
void sj_profiler_checkpoint(sj_profiler *profiler);

/* sj_profiler_recover sends the sums that a killed recorder left behind and had not sent, and the
 * calls that were open then, in blocks without events; reports as a gap what it had read since.
 * SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_profiler_recover(const sj_profiler_options *options);

/* sj_profiler_is_large returns whether the sums should be sent before their time. */
bool sj_profiler_is_large(const sj_profiler *profiler);

#endif
