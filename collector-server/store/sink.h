/* A sink is where a collector keeps the frames that it takes. store.h is one, SQLite; another
 * database is another row: a file with its own `struct sj_sink` and a constant sj_sink_kind.
 *
 * A batch: begin, any number of apply, then commit or rollback. All calls from one thread, that of
 * the ingest's writer; while one waits, no sender gets an answer. */
#ifndef SJ_COLLECTOR_SERVER_STORE_SINK_H
#define SJ_COLLECTOR_SERVER_STORE_SINK_H

#include "collector-server/store/sender.h"
#include "proto/base/error.h"
#include "proto/wire/frame.h"

typedef struct sj_sink sj_sink; /* each kind defines its own */

typedef struct sj_sink_options {
    const char *path;              /* or an address: what the kind opens */
    bool create;                   /* create what is not there */
    uint64_t max_bytes;            /* refuse blocks beyond (SJ_EFULL); 0: no limit */
    uint64_t reserve_bytes;        /* free disk space to leave; SJ_EFULL below */
    size_t callgraph_memory_bytes; /* for call graphs kept in memory (ten times that for sessions
                                      that send large blocks); sessions beyond are summed from
                                      their stored blocks; 0: 24 MB */
    uint32_t most_paths;           /* of a session whose aggregates are made; 0: SJ_MOST_PATHS */
    uint32_t path_budget;          /* beyond it the rarest are folded, to half of it; 0:
                                      SJ_PATH_BUDGET */
    uint32_t aggregates_delay_ms; /* aggregates may lag behind their blocks for so long; 0: never */
    uint32_t lost_after_s; /* sessions without a frame for so long end as "lost contact"; 0: none */
} sj_sink_options;

typedef struct sj_sink_counters {
    uint64_t calls;   /* of the blocks stored since the sink was opened */
    uint64_t foreign; /* frames refused because they were for another sender's session */
} sj_sink_counters;

typedef struct sj_sink_kind {
    const char *name;
    /* open: SJ_ENOMEM, SJ_EIO, SJ_ENOTFOUND, SJ_EVERSION, SJ_ECORRUPT. */
    sj_status (*open)(const sj_sink_options *options, sj_sink **sink, sj_error *error);
    void (*close)(sj_sink *sink);
    sj_status (*begin)(sj_sink *sink, sj_error *error);
    /* apply stores one frame (any type up to SJ_FRAME_UNHOOKED) of a sender (NULL: of this
     * process). `*duplicate` is set when it was stored before; that is success. A frame that is
     * corrupt, contradicts a stored one, refers to nothing known or belongs to another sender
     * returns SJ_ECORRUPT, SJ_EVERSION, SJ_ELIMIT, SJ_EEXIST, SJ_EUNSUPPORTED, SJ_ENOTFOUND or
     * SJ_EINVAL and changes nothing but the record of what was refused; the batch goes on.
     * Anything else (SJ_EFULL, SJ_EIO, SJ_ENOMEM, SJ_EAGAIN): roll back. */
    sj_status (*apply)(sj_sink *sink, const sj_frame_view *frame, const sj_sender *sender,
                       bool *duplicate, sj_error *error);
    /* commit makes the batch durable; then, and only then, its frames may be acknowledged. One that
     * fails has rolled back. */
    sj_status (*commit)(sj_sink *sink, sj_error *error);
    void (*rollback)(sj_sink *sink);
    /* check returns what `begin` or a block would be refused with now, between batches; SJ_OK:
     * nothing is known to be in the way. */
    sj_status (*check)(sj_sink *sink, sj_error *error);
    /* maintain does a little of what was put off; called when idle, again as long as it returns
     * true. */
    bool (*maintain)(sj_sink *sink);
    /* recover does a little of what a killed collector had put off; called between batches. */
    void (*recover)(sj_sink *sink);
    void (*get_counters)(const sj_sink *sink, sj_sink_counters *counters);
} sj_sink_kind;

#endif
