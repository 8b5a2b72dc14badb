/* The frames that the reader was given, until they are acknowledged.
 *
 * Acknowledgements out of order wait in `given` until the earlier ones have arrived. After a crash
 * those frames are sent again, and the collector recognises them.
 *
 * Order of a deletion: write the watermark, sync the ledger, unlink. In another order, a crash
 * would leave a ledger that points into a deleted file. If the file of the watermark has become
 * shorter than the watermark (power loss), a new segment begins. New frames in the short file would
 * count as acknowledged. */
#include "agent/uplink/spool_state.h"

#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

/* Deletes segments that are wholly below the watermark; see above for the order. */
static void release_segments(sj_spool *spool)
{
    const uint64_t watermark = spool->ledger.watermark;
    size_t done = 0;
    while (done + 1 < spool->segment_count) {
        const sj_spool_segment *segment = &spool->segments[done];
        if (sj_spool_position(segment->number, segment->size) > watermark) {
            break;
        }
        done++;
    }
    if (done == 0 || sj_spool_ack_log_sync(&spool->ledger) != SJ_OK) {
        return;
    }
    for (size_t i = 0; i < done; ++i) {
        sj_spool_retire_segment(spool, &spool->segments[i]);
    }
    spool->segment_count -= done;
    memmove(spool->segments, spool->segments + done,
            spool->segment_count * sizeof(*spool->segments));
}

sj_status sj_spool_settle(sj_spool *spool)
{
    size_t done = 0;
    while (done < spool->given_count && spool->given[done].acknowledged) {
        done++;
    }
    if (done == 0) {
        return SJ_OK;
    }
    const given_frame last = spool->given[done - 1];
    spool->given_count -= done;
    spool->cursor = spool->cursor > done ? spool->cursor - done : 0;
    memmove(spool->given, spool->given + done, spool->given_count * sizeof(*spool->given));
    if (spool->counters.pending_bytes == 0) {
        spool->counters.pending_frames = 0; /* Damage makes the count at open an estimate. */
    }
    SJ_TRY(sj_spool_ack_log_advance(&spool->ledger, last.position + last.length));
    release_segments(spool);
    return SJ_OK;
}

sj_status sj_spool_note_given(sj_spool *spool, uint64_t position, size_t length, bool acknowledged)
{
    SJ_TRY(sj_array_reserve(&spool->given, &spool->given_capacity, spool->given_count, 1,
                            sizeof(*spool->given)));
    spool->given[spool->given_count++] = (given_frame){
        .position = position, .length = (uint32_t)length, .acknowledged = acknowledged};
    spool->cursor = spool->given_count;
    spool->read_at = position + length;
    return SJ_OK;
}

static given_frame *find_given(sj_spool *spool, uint64_t position)
{
    for (size_t i = 0; i < spool->given_count; ++i) {
        if (spool->given[i].position == position) {
            return &spool->given[i];
        }
    }
    return NULL;
}

static sj_status acknowledge_locked(sj_spool *spool, uint64_t position)
{
    given_frame *given = find_given(spool, position);
    if (given == NULL || given->acknowledged) {
        return position < spool->ledger.watermark || given != NULL ? SJ_OK : SJ_EINVAL;
    }
    given->acknowledged = true;
    spool->counters.acknowledged_frames++;
    spool->counters.pending_bytes -= given->length;
    spool->counters.pending_frames -= spool->counters.pending_frames > 0;
    return sj_spool_settle(spool);
}

sj_status sj_spool_acknowledge(sj_spool *spool, uint64_t position)
{
    pthread_mutex_lock(&spool->lock);
    const sj_status status = acknowledge_locked(spool, position);
    pthread_mutex_unlock(&spool->lock);
    return status;
}

sj_status sj_spool_reject(sj_spool *spool, uint64_t position, const char *why)
{
    pthread_mutex_lock(&spool->lock);
    const given_frame *given = find_given(spool, position);
    const sj_spool_segment *segment =
        sj_spool_find_segment(spool, sj_spool_position_number(position));
    if (given == NULL || segment == NULL || given->acknowledged) {
        pthread_mutex_unlock(&spool->lock);
        return SJ_EINVAL;
    }
    const uint32_t length = given->length;
    uint8_t *bytes = malloc(length);
    const bool is_read =
        bytes != NULL &&
        sj_spool_segment_read(segment, sj_spool_position_offset(position), bytes, length) == SJ_OK;
    const sj_slice kept = {.data = is_read ? bytes : NULL, .size = length};
    sj_status status = SJ_EFULL;
    if (sj_spool_aside_add(spool->directory, &spool->aside, position, kept, why)) {
        status = acknowledge_locked(spool, position);
        spool->counters.acknowledged_frames--;
        spool->counters.rejected_frames++;
    }
    free(bytes);
    pthread_mutex_unlock(&spool->lock);
    return status;
}
