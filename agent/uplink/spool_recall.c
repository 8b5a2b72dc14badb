/* The walk over the announcements that a spool has given before. */
#include "agent/uplink/spool_state.h"

/* Opens the file of `announced` for a walk, unless the walk has it open. Returns SJ_ENOTFOUND if
 * nothing was kept. */
static sj_status open_recalled(sj_spool *spool, const sj_spool_recall *recall)
{
    if (recall->at != 0 && spool->recalled.file >= 0) {
        return SJ_OK;
    }
    sj_spool_segment_close(&spool->recalled);
    return sj_spool_announced_read(spool->directory, &spool->announced, &spool->recalled);
}

/* Moves a walk to the next byte that was given before. Returns SJ_EAGAIN at the end, or SJ_EIO. */
static sj_status seek_recalled(sj_spool *spool, sj_spool_recall *recall, sj_spool_segment *segment)
{
    if (sj_spool_position_number(recall->at) == 0) {
        const sj_status status = open_recalled(spool, recall);
        if (status == SJ_OK && recall->at < spool->recalled.size) {
            *segment = spool->recalled;
            return SJ_OK;
        }
        if (status != SJ_OK && status != SJ_ENOTFOUND) {
            return status;
        }
        recall->at = sj_spool_position(1, 0);
    }
    sj_spool_segment_close(&spool->recalled);
    for (size_t i = 0; i < spool->segment_count; ++i) {
        const sj_spool_segment *candidate = &spool->segments[i];
        if (candidate->number > sj_spool_position_number(recall->at)) {
            recall->at = sj_spool_position(candidate->number, 0);
        }
        if (candidate->number == sj_spool_position_number(recall->at) &&
            sj_spool_position_offset(recall->at) < candidate->size && recall->at < spool->read_at) {
            *segment = *candidate;
            return SJ_OK;
        }
    }
    return SJ_EAGAIN;
}

static bool is_wanted(const sj_spool_recall *recall, const sj_spool_frame_kind *kind)
{
    return kind->is_announcement && kind->has_session &&
           !(recall->is_brief && (kind->type == SJ_FRAME_MODULE || kind->is_deep_stack));
}

sj_status sj_spool_recall_next(sj_spool *spool, sj_spool_recall *recall, sj_slice *frame)
{
    while (true) {
        sj_spool_segment segment;
        sj_spool_frame_kind kind;
        pthread_mutex_lock(&spool->lock);
        const sj_status found = seek_recalled(spool, recall, &segment);
        pthread_mutex_unlock(&spool->lock);
        SJ_TRY(found);
        const uint64_t offset = sj_spool_position_offset(recall->at);
        SJ_TRY(sj_spool_frame_kind_of(&segment, offset, &kind));
        recall->at = kind.frame_bytes != 0 ? recall->at + kind.frame_bytes
                                           : sj_spool_position(segment.number + 1, 0);
        if (kind.frame_bytes != 0 && is_wanted(recall, &kind)) {
            const sj_status status = sj_spool_load_frame(spool, &segment, offset, frame);
            if (status != SJ_ECORRUPT) {
                return status;
            }
        }
    }
}
