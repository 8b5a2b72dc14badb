/* Opens, appends to and closes a spool. */
#include "agent/uplink/spool.h"

#include "agent/uplink/spool_collector.h"
#include "agent/uplink/spool_directory.h"
#include "agent/uplink/spool_secret.h"
#include "agent/uplink/spool_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_SEGMENT_BYTES = 4 << 20 };

static sj_status open_directory(const sj_spool_options *options, sj_spool **spool, sj_error *error)
{
    sj_spool *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->directory = strdup(options->directory)) == NULL) {
        free(made);
        return sj_fail(error, SJ_ENOMEM, "no memory for a spool");
    }
    pthread_mutex_init(&made->lock, NULL);
    made->budget_bytes = options->budget_bytes != 0 ? options->budget_bytes : UINT64_C(4) << 30;
    made->reserve_bytes = options->reserve_bytes;
    made->quota.budget_bytes = options->root_budget_bytes;
    made->segment_bytes =
        options->segment_bytes != 0 ? options->segment_bytes : DEFAULT_SEGMENT_BYTES;
    char path[SJ_SPOOL_PATH_BYTES];
    snprintf(path, sizeof(path), "%s/acked", made->directory);
    (void)sj_spool_aside_read(made->directory, &made->aside);
    made->ledger.file = -1;
    made->recalled.file = -1;
    sj_status status = sj_spool_ack_log_open(path, &made->ledger, error);
    if (status == SJ_OK) {
        sj_spool_announced_open(made->directory, &made->announced);
        status = sj_spool_load_segments(made, error);
    }
    if (status != SJ_OK) {
        sj_spool_close(made);
        return status == SJ_ENOMEM
                   ? sj_fail(error, status, "no memory to open the spool %s", options->directory)
                   : status;
    }
    *spool = made;
    return SJ_OK;
}

sj_status sj_spool_open(const sj_spool_options *options, sj_spool **spool, sj_error *error)
{
    bool is_new = false;
    SJ_TRY(sj_spool_directory_make(options->directory, SJ_SPOOL_PATH_BYTES, &is_new, error));
    const sj_status status = open_directory(options, spool, error);
    if (status != SJ_OK && is_new) {
        sj_spool_directory_remove_unused(options->directory);
    }
    return status;
}

static sj_status append_locked(sj_spool *spool, sj_slice frame, sj_error *error)
{
    SJ_TRY(sj_spool_check_space(spool, frame, error));
    sj_spool_segment *last =
        spool->segment_count > 0 ? &spool->segments[spool->segment_count - 1] : NULL;
    if (last == NULL || last->sealed || last->size >= spool->segment_bytes) {
        SJ_TRY(sj_spool_add_segment(spool, spool->next_number, true, error));
        last = &spool->segments[spool->segment_count - 1];
    }
    return sj_spool_segment_append(last, frame, error);
}

uint64_t sj_spool_end(sj_spool *spool)
{
    pthread_mutex_lock(&spool->lock);
    uint64_t end = spool->ledger.watermark;
    if (spool->segment_count > 0) {
        const sj_spool_segment *last = &spool->segments[spool->segment_count - 1];
        const uint64_t tail = sj_spool_position(last->number, last->size);
        end = tail > end ? tail : end;
    }
    pthread_mutex_unlock(&spool->lock);
    return end;
}

bool sj_spool_was_used(sj_spool *spool)
{
    return sj_spool_end(spool) > sj_spool_position(1, 0); /* The first segment may be empty. */
}

sj_status sj_spool_append(sj_spool *spool, sj_slice frame, sj_error *error)
{
    if (frame.size < SJ_FRAME_PREFIX_BYTES || sj_spool_frame_length(frame.data) != frame.size) {
        return sj_fail(error, SJ_EINVAL, "not a whole frame: %zu bytes", frame.size);
    }
    pthread_mutex_lock(&spool->lock);
    const sj_status status = append_locked(spool, frame, error);
    if (status == SJ_OK) {
        spool->counters.appended_frames++;
        spool->counters.appended_bytes += frame.size;
        spool->counters.pending_frames++;
        spool->counters.pending_bytes += frame.size;
    } else if (status == SJ_EFULL) {
        spool->counters.refused_frames++;
    }
    pthread_mutex_unlock(&spool->lock);
    return status;
}

void sj_spool_get_counters(sj_spool *spool, sj_spool_counters *counters)
{
    pthread_mutex_lock(&spool->lock);
    *counters = spool->counters;
    counters->unkept_frames = spool->announced.unkept_frames;
    pthread_mutex_unlock(&spool->lock);
}

void sj_spool_close(sj_spool *spool)
{
    if (spool == NULL) {
        return;
    }
    for (size_t i = 0; i < spool->segment_count; ++i) {
        sj_spool_segment_close(&spool->segments[i]);
    }
    sj_spool_segment_close(&spool->recalled);
    sj_spool_ack_log_close(&spool->ledger);
    for (unsigned i = 0; i < SJ_SPOOL_BUFFERS; ++i) {
        free(spool->buffers[i].bytes);
    }
    pthread_mutex_destroy(&spool->lock);
    free(spool->segments);
    free(spool->given);
    free(spool->directory);
    free(spool);
}

sj_status sj_spool_remove(sj_spool *spool, sj_error *error)
{
    if (spool->counters.pending_bytes != 0) {
        return sj_fail(error, SJ_EAGAIN, "the spool %s still holds %llu bytes not acknowledged",
                       spool->directory, (unsigned long long)spool->counters.pending_bytes);
    }
    sj_spool_announced_remove(spool->directory);
    for (size_t i = 0; i < spool->segment_count; ++i) {
        sj_spool_unlink_segment(spool, spool->segments[i].number);
    }
    sj_spool_ack_log_remove(spool->directory);
    sj_spool_collector_remove(spool->directory);
    sj_spool_secret_remove(spool->directory);
    rmdir(spool->directory); /* Stays if frames were set aside. */
    sj_spool_close(spool);
    return SJ_OK;
}
