/* Complaints about peers: who sent what that was dropped, for the log; few enough to be read, and
 * few enough that nobody fills a disk with them.
 *
 * Each address has SJ_COMPLAINTS_AT_ONCE lines, and one more every SJ_COMPLAINT_EVERY_S seconds.
 * Addresses share SJ_COMPLAINT_BUCKETS accounts by their hash, so one that floods silences few
 * others, and all together log at most SJ_COMPLAINT_BUCKETS lines in that time. Lines about no peer
 * have an account of their own. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_RATE_LIMITED_LOG_H
#define SJ_COLLECTOR_SERVER_INGEST_RATE_LIMITED_LOG_H

#include "collector-server/edge/endpoint.h"

#include <pthread.h>
#include <stdint.h>

enum { SJ_COMPLAINT_BUCKETS = 16, SJ_COMPLAINTS_AT_ONCE = 10, SJ_COMPLAINT_EVERY_S = 30 };

typedef struct sj_complaint_bucket {
    uint64_t refilled_s; /* when its lines were last counted up, MONOTONIC */
    uint64_t lines;      /* that it has */
    uint64_t suppressed; /* since its last line */
} sj_complaint_bucket;

typedef struct sj_rate_limited_log {
    pthread_mutex_t lock;
    void (*report)(void *context, const char *line); /* NULL: no reporting */
    void *context;
    sj_complaint_bucket buckets[SJ_COMPLAINT_BUCKETS];
    sj_complaint_bucket own; /* of lines about no peer */
} sj_rate_limited_log;

/* sj_rate_limited_log_init makes them; sj_rate_limited_log_deinit ends them, after all threads. */
void sj_rate_limited_log_init(sj_rate_limited_log *log, void (*report)(void *, const char *),
                              void *context);
void sj_rate_limited_log_deinit(sj_rate_limited_log *log);

/* sj_complain reports a peer by its address, unless its bucket has no line; how many were left out
 * is reported with the bucket's next line. The port, and of IPv6 the lower half, do not count: one
 * peer has many. Any thread; `report` is called under a lock. */
void sj_complain(sj_rate_limited_log *log, const sj_edge_peer *peer, const char *what);

/* sj_complain_at does the same at a given time in seconds, which does not go back. */
void sj_complain_at(sj_rate_limited_log *log, const sj_edge_peer *peer, const char *what,
                    uint64_t now_s);

/* sj_report_line reports a line about no peer, unless SJ_COMPLAINTS_AT_ONCE were before it; no
 * complaint about a peer takes its place. Any thread; `report` is
 * called under a lock. */
void sj_report_line(sj_rate_limited_log *log, const char *line);

#endif
