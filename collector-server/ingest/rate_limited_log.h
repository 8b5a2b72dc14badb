/* Log lines about peers whose frames were dropped. The number of lines is limited, so that a person
 * can read them and a peer cannot fill the disk with them.
 *
 * A bucket allows SJ_COMPLAINTS_AT_ONCE lines, and one more every SJ_COMPLAINT_EVERY_S seconds. The
 * hash of an address chooses one of SJ_COMPLAINT_BUCKETS buckets. So an address that floods
 * silences few other addresses. In the long run, all addresses together get at most
 * SJ_COMPLAINT_BUCKETS lines every SJ_COMPLAINT_EVERY_S seconds. Lines that concern no peer have
 * their own bucket. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_RATE_LIMITED_LOG_H
#define SJ_COLLECTOR_SERVER_INGEST_RATE_LIMITED_LOG_H

#include "collector-server/edge/endpoint.h"

#include <pthread.h>
#include <stdint.h>

enum { SJ_COMPLAINT_BUCKETS = 16, SJ_COMPLAINTS_AT_ONCE = 10, SJ_COMPLAINT_EVERY_S = 30 };

typedef struct sj_complaint_bucket {
    uint64_t refilled_s; /* time of the last refill, CLOCK_MONOTONIC in seconds */
    uint64_t lines;      /* lines left */
    uint64_t suppressed; /* number of lines suppressed since the latest logged line */
} sj_complaint_bucket;

typedef struct sj_rate_limited_log {
    pthread_mutex_t lock;
    void (*report)(void *context, const char *line); /* NULL: no reporting */
    void *context;
    sj_complaint_bucket buckets[SJ_COMPLAINT_BUCKETS];
    sj_complaint_bucket own; /* for lines that concern no peer */
} sj_rate_limited_log;

/* sj_rate_limited_log_init initialises the log. sj_rate_limited_log_deinit releases it; from
 * then on, no thread may use it. */
void sj_rate_limited_log_init(sj_rate_limited_log *log, void (*report)(void *, const char *),
                              void *context);
void sj_rate_limited_log_deinit(sj_rate_limited_log *log);

/* Logs that a frame of a peer was dropped, and why (`what`), unless the peer's bucket is empty. The
 * bucket's next line says how many lines were suppressed. The bucket does not depend on the port or
 * on the lower half of an IPv6 address, because one peer can have many of these. Thread-safe;
 * `report` is called under a lock. */
void sj_complain(sj_rate_limited_log *log, const sj_edge_peer *peer, const char *what);

/* Does what sj_complain does at the time `now_s`, in seconds, which must not decrease. */
void sj_complain_at(sj_rate_limited_log *log, const sj_edge_peer *peer, const char *what,
                    uint64_t now_s);

/* Logs a line that concerns no peer, unless the bucket for such lines is empty. Thread-safe;
 * `report` is called under a lock. */
void sj_report_line(sj_rate_limited_log *log, const char *line);

#endif
