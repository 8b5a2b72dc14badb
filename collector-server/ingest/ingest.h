/* Ingest: receives frames from the network, stores them in the database, and acknowledges them
 * after SQLite's COMMIT.
 *
 * Frames pass from the listeners (listener.h) through admission (admission.h) to a bounded queue.
 * One writer thread commits queued frames to the store (store.h) and replies. If there are many
 * senders, it first gathers frames for a few milliseconds. A watchdog sends pings to each address,
 * except inproc://, over a new connection, and reports missing answers. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_INGEST_H
#define SJ_COLLECTOR_SERVER_INGEST_INGEST_H

#include "collector-server/edge/edge.h"
#include "collector-server/ingest/admission.h"
#include "collector-server/store/store.h"

#include <stdbool.h>

typedef struct sj_ingest sj_ingest;

typedef struct sj_ingest_options {
    const char *const *urls; /* inproc://, ipc://, tcp://, tls+tcp:// */
    size_t url_count;
    /* maximum size of the queue; 0 means 64 MB. While it is full, nothing is received, so senders
     * wait. */
    size_t queue_bytes;
    /* maximum number of unacknowledged frames per sender, at most 48; 0 means 16 */
    uint32_t window;
    uint32_t watchdog_ms; /* pause between two pings of all addresses; 0 means 10 s */
    /* If a batch was refused and no batch has come for this time, the store is checked again. 0: a
     * minute. */
    uint32_t recheck_ms;
    sj_ingest_gate gate;
    const sj_edge_limits *limits; /* limits of connections; NULL: the edge's defaults */
    /* Receives log lines without line ends: about dropped frames, unanswered pings, and a store
     * that refuses frames. Their rate is limited (rate_limited_log.h). Called on the ingest's
     * threads. NULL: no report. */
    void (*complain)(void *context, const char *line);
    void *complain_context;
    const char *certificate; /* for tls+tcp URLs (PEM), with its key; borrowed for the call */
    const char *key;
} sj_ingest_options;

typedef struct sj_ingest_counters {
    uint64_t frames;
    uint64_t bytes;
    uint64_t duplicates;
    uint64_t strangers; /* frames that admission refused, mostly of connections that had not sent
                         * a valid HELLO */
    /* frames that were not stored, because the store is full or failing, or a quota is used up; the
     * senders keep these frames */
    uint64_t refused;
    uint64_t rejected; /* frames that are corrupt, of an unknown version, or with false contents */
    uint64_t commits;
    uint64_t calls;
    uint64_t foreign; /* rejected frames for a session of another device */
    uint64_t unanswered_probes;
    sj_edge_counters edge;
    uint64_t queue_peak_bytes;
    uint64_t writer_cpu_ns;
    /* time from the arrival of the last batch's oldest frame until it was stored or refused */
    uint64_t lag_ns;
    /* age of the oldest frame that arrived and is not stored, including refused frames that senders
     * keep; 0: none */
    uint64_t oldest_unacknowledged_ns;
    bool is_refusing; /* sj_ingest_check fails now */
} sj_ingest_counters;

/* Listens, and stores frames into `store`. No other code may use `store` until sj_ingest_stop; the
 * caller then closes it. Returns SJ_EIO, SJ_ENOMEM, or an error of sj_edge_start. */
SJ_MUST_CHECK sj_status sj_ingest_start(sj_store *store, const sj_ingest_options *options,
                                        sj_ingest **ingest, sj_error *error);

/* Stores and acknowledges the queued frames, stops listening and frees the ingest. NULL is
 * allowed. Blocking. */
void sj_ingest_stop(sj_ingest *ingest);

void sj_ingest_get_counters(sj_ingest *ingest, sj_ingest_counters *counters);

/* Returns SJ_EAGAIN, with the reason, while frames are not stored: the last batch was refused as a
 * whole, because the store is full, failing or replaced. If no batch has come for
 * recheck_ms, a check of the store then failed, too. Thread-safe. */
SJ_MUST_CHECK sj_status sj_ingest_check(sj_ingest *ingest, sj_error *error);

#endif
