/* Reads the frames of a spool in order, and skips damaged ones. */
#include "agent/uplink/spool_state.h"

#include <stdlib.h>

enum { BUFFER_KEEP_BYTES = 1 << 20 /* A larger buffer is freed when it is reused. */ };

/* Moves read_at to the next byte that exists. Returns false if there is none. */
static bool seek_readable(sj_spool *spool, sj_spool_segment *segment)
{
    for (size_t i = 0; i < spool->segment_count; ++i) {
        const sj_spool_segment *candidate = &spool->segments[i];
        if (candidate->number < sj_spool_position_number(spool->read_at)) {
            continue;
        }
        if (candidate->number > sj_spool_position_number(spool->read_at)) {
            spool->read_at = sj_spool_position(candidate->number, 0);
        }
        if (sj_spool_position_offset(spool->read_at) < candidate->size) {
            *segment = *candidate;
            return true;
        }
    }
    return false;
}

static sj_status reserve_buffer(sj_spool *spool, size_t size, uint8_t **bytes)
{
    frame_buffer *buffer = &spool->buffers[spool->next_buffer];
    if (buffer->capacity < size ||
        (buffer->capacity > BUFFER_KEEP_BYTES && size <= BUFFER_KEEP_BYTES)) {
        free(buffer->bytes);
        buffer->bytes = malloc(size);
        buffer->capacity = buffer->bytes != NULL ? size : 0;
        if (buffer->bytes == NULL) {
            return SJ_ENOMEM;
        }
    }
    spool->next_buffer = (spool->next_buffer + 1) % SJ_SPOOL_BUFFERS;
    *bytes = buffer->bytes;
    return SJ_OK;
}

sj_status sj_spool_load_frame(sj_spool *spool, const sj_spool_segment *segment, uint64_t offset,
                              sj_slice *frame)
{
    uint8_t prefix[SJ_FRAME_PREFIX_BYTES];
    if (segment->size - offset < sizeof(prefix)) {
        return SJ_ECORRUPT;
    }
    SJ_TRY(sj_spool_segment_read(segment, offset, prefix, sizeof(prefix)));
    const size_t length = sj_spool_frame_length(prefix);
    if (length == 0 || length > segment->size - offset) {
        return SJ_ECORRUPT;
    }
    uint8_t *bytes = NULL;
    SJ_TRY(reserve_buffer(spool, length, &bytes));
    SJ_TRY(sj_spool_segment_read(segment, offset, bytes, length));
    *frame = (sj_slice){.data = bytes, .size = length};
    sj_frame_view view;
    const sj_status status = sj_frame_read(*frame, &view);
    /* The collector decides about a frame of another major version. */
    return status == SJ_OK || status == SJ_EVERSION ? SJ_OK : SJ_ECORRUPT;
}

/* Skips damaged bytes up to the next sound frame or the end of the segment, and sets them aside.
 * Returns SJ_ECORRUPT if it skipped them. */
static sj_status skip_damage(sj_spool *spool, const sj_spool_segment *segment, uint64_t offset)
{
    const size_t size = (size_t)(segment->size - offset);
    uint8_t *bytes = malloc(size);
    if (bytes == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = sj_spool_segment_read(segment, offset, bytes, size);
    if (status == SJ_EIO) {
        free(bytes);
        return status;
    }
    /* A file that has become shorter has no frames left. */
    size_t length = size;
    if (status == SJ_OK) {
        length = 1 + sj_spool_find_frame((sj_slice){.data = bytes + 1, .size = size - 1});
    }
    const uint64_t position = sj_spool_position(segment->number, offset);
    pthread_mutex_lock(&spool->lock);
    status = sj_spool_aside_add(spool->directory, &spool->aside, position,
                                (sj_slice){.data = bytes, .size = length}, NULL)
                 ? sj_spool_note_given(spool, position, length, true)
                 : SJ_EFULL;
    if (status == SJ_OK) {
        spool->counters.corrupt_frames++;
        spool->counters.pending_bytes -= length;
        spool->counters.pending_frames -= spool->counters.pending_frames > 0;
        status = sj_spool_settle(spool);
    }
    pthread_mutex_unlock(&spool->lock);
    free(bytes);
    return status == SJ_OK ? SJ_ECORRUPT : status;
}

/* Chooses the next frame: one given before and not acknowledged, or one never given. */
static sj_status choose_next(sj_spool *spool, sj_spool_segment *segment, uint64_t *position,
                             bool *again)
{
    while (spool->cursor < spool->given_count && spool->given[spool->cursor].acknowledged) {
        spool->cursor++;
    }
    *again = spool->cursor < spool->given_count;
    if (*again) {
        *position = spool->given[spool->cursor++].position;
        const sj_spool_segment *found =
            sj_spool_find_segment(spool, sj_spool_position_number(*position));
        if (found == NULL) {
            return SJ_EIO;
        }
        *segment = *found;
        return SJ_OK;
    }
    if (!seek_readable(spool, segment)) {
        return SJ_EAGAIN;
    }
    *position = spool->read_at;
    return SJ_OK;
}

sj_status sj_spool_next(sj_spool *spool, sj_slice *frame, uint64_t *position)
{
    sj_spool_segment segment;
    bool again = false;
    pthread_mutex_lock(&spool->lock);
    sj_status status = choose_next(spool, &segment, position, &again);
    pthread_mutex_unlock(&spool->lock);
    if (status != SJ_OK) {
        return status;
    }
    status = sj_spool_load_frame(spool, &segment, sj_spool_position_offset(*position), frame);
    if (again && status == SJ_ECORRUPT) { /* It was damaged after it was first given. */
        SJ_TRY(sj_spool_reject(spool, *position, NULL));
    }
    if (again) {
        return status;
    }
    if (status == SJ_ECORRUPT) {
        return skip_damage(spool, &segment, sj_spool_position_offset(*position));
    }
    if (status == SJ_OK) {
        pthread_mutex_lock(&spool->lock);
        status = sj_spool_note_given(spool, *position, frame->size, false);
        pthread_mutex_unlock(&spool->lock);
    }
    return status;
}

void sj_spool_rewind(sj_spool *spool)
{
    pthread_mutex_lock(&spool->lock);
    spool->cursor = 0;
    pthread_mutex_unlock(&spool->lock);
}
