/* Replays the calls of an import log: makes the records that probes would have written, and has the
 * assembler (agent/assembler) make blocks of them, as in a recording.
 *
 * A thread that has only entries and exits keeps their order. On other threads, A calls B if A's
 * interval contains B's and no call between them does. Calls of such a thread that overlap although
 * neither contains the other are on further stacks of the thread, at most SJ_REPLAY_STACKS. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_CALL_REPLAY_H
#define SJ_COLLECTOR_SERVER_IMPORT_CALL_REPLAY_H

#include "collector-server/import/import_log.h"
#include "proto/block/block.h"

enum { SJ_REPLAY_STACKS = 64 };

typedef struct sj_replay_sums {
    uint64_t records, calls, blocks;
} sj_replay_sums;

/* Receives what the replay makes. The stream of a block is announced before its first block. An
 * error of a function ends the replay. */
typedef struct sj_replay_sink {
    void *context;
    /* Announces that the thread has `count` stacks, whose streams are streams[0 .. count - 1]. */
    sj_status (*streams)(void *context, uint32_t thread, const uint32_t *streams, size_t count);
    /* Receives an encoded block, which is valid during the call. */
    sj_status (*block)(void *context, sj_slice bytes);
} sj_replay_sink;

typedef struct sj_replay_options {
    const sj_import_log *log;
    const char *beside; /* temporary files are in the folder of this file */
    sj_session_id session;
    uint64_t base_ticks;       /* ticks at first_ns; a tick is one ns */
    const uint32_t *functions; /* by id in the log less 1: the id in the session */
} sj_replay_options;

/* Passes the log's streams and blocks to `sink`, and writes their numbers to `*sums`. Returns
 * SJ_ELIMIT if a thread would need more than SJ_REPLAY_STACKS stacks, SJ_EIO, SJ_ENOMEM, or an
 * error of the sink. Not thread-safe. */
SJ_MUST_CHECK sj_status sj_call_replay(const sj_replay_options *options, const sj_replay_sink *sink,
                                       sj_replay_sums *sums, sj_error *error);

#endif
