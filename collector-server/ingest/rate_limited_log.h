/* Log lines about peers whose frames were dropped. They are limited, so that a person can read them
 * and a peer cannot fill the disk with them.
 *
 * Each address has SJ_COMPLAINTS_AT_ONCE lines, and one more every SJ_COMPLAINT_EVERY_S seconds.
 * Addresses share SJ_COMPLAINT_BUCKETS buckets by their hash. So an address that floods silences
 * few others, and all together log at most SJ_COMPLAINT_BUCKETS lines in that time. Lines that
 * concern no peer have their own bucket. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_RATE_LIMITED_LOG_H
#define SJ_COLLECTOR_SERVER_INGEST_RATE_LIMITED_LOG_H

#include "collector-server/edge/endpoint.h"

#include <pthread.h>
#include <stdint.h>

enum { SJ_COMPLAINT_BUCKETS = 16, SJ_COMPLAINTS_AT_ONCE = 10, SJ_COMPLAINT_EVERY_S = 30 };

typedef struct sj_complaint_bucket {
    uint64_t refilled_s; /* time of the last refill, CLOCK_MONOTONIC */
    uint64_t lines;      /* lines left */
    uint64_t suppressed; /* number of suppressed lines since the last line */
} sj_complaint_bucket;

typedef struct sj_rate_limited_log {
    pthread_mutex_t lock;
    void (*report)(void *context, const char *line); /* NULL: no reporting */
    void *context;
    sj_complaint_bucket buckets[SJ_COMPLAINT_BUCKETS];
    sj_complaint_bucket own; /* for lines that concern no peer */
} sj_rate_limited_log;

/* sj_rate_limited_log_init initialises the log. sj_rate_limited_log_deinit releases it; no thread
 * may use it any more. */
void sj_rate_limited_log_init(sj_rate_limited_log *log, void (*report)(void *, const char *),
                              void *context);
void sj_rate_limited_log_deinit(sj_rate_limited_log *log);

/* Reports a peer by its address, unless its bucket is empty. The bucket's next line reports how
 * many lines were suppressed. The port and the lower half of an IPv6 address do not count, because
 * one peer has many. Thread-safe; `report` is called under a lock. */
void sj_complain(sj_rate_limited_log *log, const sj_edge_peer *peer, const char *what);

/* Like sj_complain, at a given time in seconds, which must not decrease. */
void sj_complain_at(sj_rate_limited_log *log, const sj_edge_peer *peer, const char *what,
                    uint64_t now_s);

/* Reports a line that concerns no peer, unless its bucket is empty. Lines about peers do not use up
 * this bucket. Thread-safe; `report` is called under a lock. */
void sj_report_line(sj_rate_limited_log *log, const char *line);

#endif
