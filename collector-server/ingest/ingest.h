/* Ingest: takes frames from the network, has them stored, and acknowledges after COMMIT.
 *
 * Listeners (listener.h) -> admission (who may come in, admission.h) -> bounded queue -> one writer
 * thread that commits what is queued to the sinks (sinks.h; no timer) -> replies. A watchdog pings
 * each address over a connection of its own and says when no answer comes. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_INGEST_H
#define SJ_COLLECTOR_SERVER_INGEST_INGEST_H

#include "collector-server/edge/edge.h"
#include "collector-server/ingest/admission.h"
#include "collector-server/ingest/sinks.h"

#include <stdbool.h>

typedef struct sj_ingest sj_ingest;

typedef struct sj_ingest_options {
    const char *const *urls; /* inproc://, ipc://, tcp://, tls+tcp:// */
    size_t url_count;
    size_t queue_bytes;   /* 0: 64 MB; beyond it receiving pauses, which slows the senders */
    uint32_t window;      /* frames each sender may have unacknowledged; 0: 16 */
    uint32_t watchdog_ms; /* 0: 10 s */
    uint32_t recheck_ms;  /* after a refused batch, when no other has come for so long, whether the
                             sinks would still refuse one is looked at; 0: a minute */
    sj_ingest_gate gate;
    const sj_edge_limits *limits; /* of connections; NULL: the edge's own */
    /* is given a line for the log, without its end, about each peer whose frame was dropped (at
     * most ten a second); from the ingest's threads. NULL: no report. */
    void (*complain)(void *context, const char *line);
    void *complain_context;
    const char *certificate; /* of tls+tcp URLs (PEM), with its key; borrowed for the call */
    const char *key;
} sj_ingest_options;

typedef struct sj_ingest_counters {
    uint64_t frames;
    uint64_t bytes;
    uint64_t duplicates;
    uint64_t strangers; /* frames of connections that had not said a good HELLO */
    uint64_t refused;   /* not taken now: store full or failing; the senders keep them */
    uint64_t rejected;  /* corrupt, unknown version, lying contents */
    uint64_t commits;
    uint64_t calls;
    uint64_t foreign; /* of the rejected: for a session of another device */
    uint64_t unanswered_probes;
    sj_edge_counters edge;
    uint64_t queue_peak_bytes;
    uint64_t writer_cpu_ns;
    uint64_t lag_ns;                   /* of the oldest frame of the last batch, until it was stored
                                          or refused */
    uint64_t oldest_unacknowledged_ns; /* age of the oldest frame that came and is not stored, also
                                          where it was refused and its sender has it; 0: none */
    bool is_refusing;                  /* the last batch was refused as a whole */
} sj_ingest_counters;

/* sj_ingest_start listens and stores into `sinks` (at least one), which it uses alone until
 * sj_ingest_stop; the caller closes them after that. */
SJ_MUST_CHECK sj_status sj_ingest_start(const sj_sinks *sinks, const sj_ingest_options *options,
                                        sj_ingest **ingest, sj_error *error);

/* sj_ingest_stop finishes what is queued, acknowledges it and stops listening. Blocking. */
void sj_ingest_stop(sj_ingest *ingest);

void sj_ingest_get_counters(sj_ingest *ingest, sj_ingest_counters *counters);

/* sj_ingest_check returns SJ_EAGAIN, with the reason, while frames are not taken: the last batch
 * was refused as a whole (full, failing or replaced store), and where none has come since, what was
 * in the way still was at a later look. Any thread. */
SJ_MUST_CHECK sj_status sj_ingest_check(sj_ingest *ingest, sj_error *error);

#endif
