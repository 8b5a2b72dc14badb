/* A sink stores the frames that a collector receives. store.h is the SQLite sink. To add another
 * database, write a file with its own `struct sj_sink` and a constant sj_sink_kind.
 *
 * A batch is: begin, any number of apply, then commit or rollback. All calls come from the ingest's
 * writer thread. While a call waits, no sender gets a reply. */
#ifndef SJ_COLLECTOR_SERVER_STORE_SINK_H
#define SJ_COLLECTOR_SERVER_STORE_SINK_H

#include "collector-server/store/sender.h"
#include "proto/base/error.h"
#include "proto/wire/frame.h"

typedef struct sj_sink sj_sink; /* each kind defines its own */

typedef struct sj_sink_options {
    const char *path;       /* path or address of what the kind opens */
    bool create;            /* create it if it does not exist */
    uint64_t max_bytes;     /* size at which blocks are refused with SJ_EFULL; 0: no limit */
    uint64_t reserve_bytes; /* free disk space to leave; below it, SJ_EFULL */
    /* Memory for call graphs; ten times as much for sessions that send large blocks. The aggregates
     * of further sessions are computed from their stored blocks. 0: 24 MB. */
    size_t callgraph_memory_bytes;
    /* Maximum number of call paths of a session with aggregates. 0: SJ_MOST_PATHS. */
    uint32_t most_paths;
    /* Number of call paths beyond which the rarest are folded, down to half of it. 0:
     * SJ_PATH_BUDGET. */
    uint32_t path_budget;
    uint32_t aggregates_delay_ms; /* how long aggregates may lag behind their blocks; 0: never */
    /* seconds without a frame after which sessions end as "lost contact"; 0: never */
    uint32_t lost_after_s;
} sj_sink_options;

typedef struct sj_sink_counters {
    uint64_t calls;   /* calls in the blocks stored since the sink was opened */
    uint64_t foreign; /* frames refused because the session belongs to another sender */
} sj_sink_counters;

typedef struct sj_sink_kind {
    const char *name;
    /* Opens a sink. Returns SJ_ENOMEM, SJ_EIO, SJ_ENOTFOUND, SJ_EVERSION or SJ_ECORRUPT. */
    sj_status (*open)(const sj_sink_options *options, sj_sink **sink, sj_error *error);
    void (*close)(sj_sink *sink);
    sj_status (*begin)(sj_sink *sink, sj_error *error);
    /* Stores one frame, of any type up to SJ_FRAME_UNHOOKED. A `sender` of NULL is this process.
     * Sets `*duplicate`, and returns SJ_OK, if the frame was stored before.
     *
     * Refuses a frame that is corrupt, contradicts a stored frame, refers to something unknown or
     * belongs to another sender. It then returns SJ_ECORRUPT, SJ_EVERSION, SJ_ELIMIT, SJ_EEXIST,
     * SJ_EUNSUPPORTED, SJ_ENOTFOUND or SJ_EINVAL. A refusal changes nothing except the record of
     * refusals, and the batch continues. After SJ_EFULL, SJ_EIO, SJ_ENOMEM or SJ_EAGAIN, the caller
     * rolls back. */
    sj_status (*apply)(sj_sink *sink, const sj_frame_view *frame, const sj_sender *sender,
                       bool *duplicate, sj_error *error);
    /* Makes the batch durable. Only then may its frames be acknowledged. A commit that fails has
     * rolled back. */
    sj_status (*commit)(sj_sink *sink, sj_error *error);
    void (*rollback)(sj_sink *sink);
    /* Returns the error that `begin` or a block would return now, or SJ_OK if none is known. Call
     * it between batches. */
    sj_status (*check)(sj_sink *sink, sj_error *error);
    /* Does a little deferred work. The collector calls it when idle, and again while it returns
     * true. */
    bool (*maintain)(sj_sink *sink);
    /* Does a little of the work that a killed collector had deferred. Call it between batches. */
    void (*recover)(sj_sink *sink);
    void (*get_counters)(const sj_sink *sink, sj_sink_counters *counters);
} sj_sink_kind;

#endif
