#include "collector-server/ingest/rate_limited_log.h"

#include "proto/base/address_bucket.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

enum { LINE_BYTES = 512 };

void sj_rate_limited_log_init(sj_rate_limited_log *log, void (*report)(void *, const char *),
                              void *context)
{
    *log = (sj_rate_limited_log){.report = report, .context = context};
    for (size_t i = 0; i < SJ_COMPLAINT_BUCKETS; i++) {
        log->buckets[i].lines = SJ_COMPLAINTS_AT_ONCE;
    }
    log->own.lines = SJ_COMPLAINTS_AT_ONCE;
    pthread_mutex_init(&log->lock, NULL);
}

void sj_rate_limited_log_deinit(sj_rate_limited_log *log)
{
    pthread_mutex_destroy(&log->lock);
}

static sj_complaint_bucket *bucket_of(sj_rate_limited_log *log, const sj_edge_peer *peer)
{
    enum { V4_BYTES = 4 };
    const size_t size = peer->family == AF_INET6 ? sizeof(peer->address) : V4_BYTES;
    return &log->buckets[sj_address_bucket(peer->address, size, SJ_COMPLAINT_BUCKETS)];
}

/* Consumes a line of the bucket. Returns false if none are left. */
static bool spend_line(sj_complaint_bucket *bucket, uint64_t now_s)
{
    const uint64_t more = (now_s - bucket->refilled_s) / SJ_COMPLAINT_EVERY_S;
    bucket->refilled_s += more * SJ_COMPLAINT_EVERY_S;
    bucket->lines =
        bucket->lines + more < SJ_COMPLAINTS_AT_ONCE ? bucket->lines + more : SJ_COMPLAINTS_AT_ONCE;
    if (bucket->lines == 0) {
        return false;
    }
    bucket->lines--;
    return true;
}

void sj_complain_at(sj_rate_limited_log *log, const sj_edge_peer *peer, const char *what,
                    uint64_t now_s)
{
    char address[SJ_EDGE_PEER_TEXT_BYTES];
    char line[LINE_BYTES];
    if (log->report == NULL) {
        return;
    }
    pthread_mutex_lock(&log->lock);
    sj_complaint_bucket *bucket = bucket_of(log, peer);
    if (!spend_line(bucket, now_s)) {
        bucket->suppressed++;
        pthread_mutex_unlock(&log->lock);
        return;
    }
    sj_edge_peer_text(peer, address);
    if (bucket->suppressed != 0) {
        snprintf(line, sizeof(line), "%s: dropped a frame: %.300s (and %" PRIu64 " more before)",
                 address, what, bucket->suppressed);
    } else {
        snprintf(line, sizeof(line), "%s: dropped a frame: %.300s", address, what);
    }
    bucket->suppressed = 0;
    log->report(log->context, line);
    pthread_mutex_unlock(&log->lock);
}

void sj_complain(sj_rate_limited_log *log, const sj_edge_peer *peer, const char *what)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    sj_complain_at(log, peer, what, (uint64_t)now.tv_sec);
}

void sj_report_line(sj_rate_limited_log *log, const char *line)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&log->lock);
    if (log->report != NULL && spend_line(&log->own, (uint64_t)now.tv_sec)) {
        log->report(log->context, line);
    }
    pthread_mutex_unlock(&log->lock);
}
