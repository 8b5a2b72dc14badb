#include "collector-server/ingest/rate_limited_log.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

enum { LINE_BYTES = 512 };

void sj_rate_limited_log_init(sj_rate_limited_log *log, void (*report)(void *, const char *),
                              void *context)
{
    *log = (sj_rate_limited_log){.report = report, .context = context};
    pthread_mutex_init(&log->lock, NULL);
}

void sj_rate_limited_log_deinit(sj_rate_limited_log *log)
{
    pthread_mutex_destroy(&log->lock);
}

/* Takes one line of this second's; false: there are none left. */
static bool take_line(sj_rate_limited_log *log)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((uint64_t)now.tv_sec != log->second) {
        log->second = (uint64_t)now.tv_sec;
        log->reported = 0;
    }
    return log->reported++ < SJ_RATE_LIMITED_LOG_A_SECOND;
}

void sj_complain(sj_rate_limited_log *log, const sj_edge_peer *peer, const char *what)
{
    char address[SJ_EDGE_PEER_TEXT_BYTES];
    char line[LINE_BYTES];
    if (log->report == NULL) {
        return;
    }
    pthread_mutex_lock(&log->lock);
    if (!take_line(log)) {
        log->suppressed++;
        pthread_mutex_unlock(&log->lock);
        return;
    }
    sj_edge_peer_text(peer, address);
    if (log->suppressed != 0) {
        snprintf(line, sizeof(line), "%s: dropped a frame: %.300s (and %" PRIu64 " more before)",
                 address, what, log->suppressed);
    } else {
        snprintf(line, sizeof(line), "%s: dropped a frame: %.300s", address, what);
    }
    log->suppressed = 0;
    log->report(log->context, line);
    pthread_mutex_unlock(&log->lock);
}

void sj_report_line(sj_rate_limited_log *log, const char *line)
{
    pthread_mutex_lock(&log->lock);
    if (log->report != NULL && take_line(log)) {
        log->report(log->context, line);
    }
    pthread_mutex_unlock(&log->lock);
}
