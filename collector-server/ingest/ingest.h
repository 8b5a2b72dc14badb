/* Ingest: takes frames from the network, has them stored, and acknowledges after COMMIT.
 *
 * NNG raw REP on any number of URLs -> bounded queue -> one writer thread that commits what is
 * queued (no timer) -> replies. A watchdog pings each listener over its own URL and re-creates one
 * that has stopped answering (NNG 1.5.2 bug #1518); established connections survive that. */
#ifndef SJ_COLLECTOR_INGEST_INGEST_H
#define SJ_COLLECTOR_INGEST_INGEST_H

#include "collector-server/store/store.h"
#include "proto/sojourn.pb-c.h"

#include <nng/nng.h>
#include <stdbool.h>

typedef struct sj_ingest sj_ingest;

/* Who may come in, and what is not for the store. Called in the receiver's thread. */
typedef struct sj_ingest_gate {
    void *context;
    /* judges a HELLO; other than SJ_OK refuses it, and every other frame of that connection. With
     * SJ_OK it gives a pass, not 0. NULL: everybody may come in. */
    sj_status (*hello)(void *context, const Sojourn__Hello *hello, int64_t *pass, sj_error *error);
    /* tells whether a pass is still valid; asked for each frame. */
    bool (*has_pass)(void *context, int64_t pass);
    /* takes over a message whose frame is one of the fleet (SJ_FRAME_ENROL to FLEET_LAST): it is
     * answered by sending it back over `socket`, or freed. NULL: they are refused. */
    void (*fleet)(void *context, nng_socket socket, nng_msg *message);
} sj_ingest_gate;

typedef struct sj_ingest_options {
    const char *const *urls; /* inproc://, ipc://, tcp://, tls+tcp:// */
    size_t url_count;
    size_t queue_bytes;   /* 0: 64 MB; beyond it receiving pauses, which slows the senders */
    uint32_t window;      /* frames each sender may have unacknowledged; 0: 16 */
    uint32_t watchdog_ms; /* 0: 500 */
    sj_ingest_gate gate;
    /* is given a line for the log, without its end, about each peer whose frame was dropped (at
     * most ten a second); from the ingest's threads. NULL: nobody is told. */
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
    uint64_t listeners_recreated;
    uint64_t queue_peak_bytes;
    uint64_t writer_cpu_ns;
} sj_ingest_counters;

/* sj_ingest_start listens and stores into `store`, which it owns until sj_ingest_stop. */
SJ_MUST_CHECK sj_status sj_ingest_start(sj_store *store, const sj_ingest_options *options,
                                        sj_ingest **ingest, sj_error *error);

/* sj_ingest_stop finishes what is queued, acknowledges it and stops listening. Blocking. */
void sj_ingest_stop(sj_ingest *ingest);

void sj_ingest_get_counters(sj_ingest *ingest, sj_ingest_counters *counters);

#endif
