/* Complaints about peers: who sent what that was dropped, for the log; few enough to be read. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_RATE_LIMITED_LOG_H
#define SJ_COLLECTOR_SERVER_INGEST_RATE_LIMITED_LOG_H

#include "collector-server/edge/endpoint.h"

#include <pthread.h>
#include <stdint.h>

typedef struct sj_rate_limited_log {
    pthread_mutex_t lock;
    void (*report)(void *context, const char *line); /* NULL: no reporting */
    void *context;
    uint64_t second;     /* MONOTONIC */
    unsigned reported;   /* in that second */
    uint64_t suppressed; /* since the last line */
} sj_rate_limited_log;

enum { SJ_RATE_LIMITED_LOG_A_SECOND = 10 };

/* sj_rate_limited_log_init makes them; sj_rate_limited_log_deinit ends them, after all threads. */
void sj_rate_limited_log_init(sj_rate_limited_log *log, void (*report)(void *, const char *),
                              void *context);
void sj_rate_limited_log_deinit(sj_rate_limited_log *log);

/* sj_complain reports a peer by its address. At most SJ_RATE_LIMITED_LOG_A_SECOND lines a second;
 * how many were left out is reported with the next. Any thread; `report` is called under a lock. */
void sj_complain(sj_rate_limited_log *log, const sj_edge_peer *peer, const char *what);

/* sj_report_line reports a line about no peer, within the same limit. Any thread; likewise. */
void sj_report_line(sj_rate_limited_log *log, const char *line);

#endif
