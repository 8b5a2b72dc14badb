/* The collector may have lost acknowledged frames: its log was cut, or an older copy of its
 * database was restored. If it refuses a frame for an unknown reference, a walk sends all
 * announcements of the spool again. The frame is then tried a few times.
 *
 * A new or restarted collector causes a brief walk, once nothing is in flight. This walk does not
 * wait for a refusal, because the collector would store a block whose thread is unknown. An
 * interrupted walk resumes at the oldest announcement that failed. Frames of the spool wait until
 * all recalled announcements have an answer. */
#include "agent/uplink/uplink_state.h"

/* Minimum of frames acknowledged between two whole walks for the same collector. */
enum { RECALL_FRAMES = 1024 };

/* Requests a walk that sends announcements again, once nothing is in flight. A brief walk skips
 * modules and deep stacks. If a whole walk is pending, a brief request restarts the whole walk. */
static void want_recall(sj_uplink *uplink, bool is_brief)
{
    const bool is_pending =
        uplink->recall_wanted || uplink->is_recalling || uplink->recalled_in_flight != 0;
    const bool is_whole = !is_brief || (is_pending && !uplink->recall.is_brief);
    uplink->recall = (sj_spool_recall){.is_brief = !is_whole};
    uplink->recall_wanted = true;
    uplink->rewind = true;
}

void sj_uplink_resume_recall(sj_uplink *uplink, const sj_uplink_slot *done)
{
    if (done->recall_at < uplink->recall.at) {
        uplink->recall.at = done->recall_at;
    }
    uplink->recall_wanted = true;
    uplink->rewind = true;
}

bool sj_uplink_want_whole_recall(sj_uplink *uplink)
{
    if (uplink->recall_wanted) {
        return true;
    }
    if (uplink->was_recalled &&
        uplink->status.acknowledged_frames < uplink->recalled_at + RECALL_FRAMES) {
        return false;
    }
    uplink->was_recalled = true;
    uplink->recalled_at = uplink->status.acknowledged_frames;
    want_recall(uplink, false);
    return true;
}

void sj_uplink_note_incarnation(sj_uplink *uplink, const Sojourn__Ack *ack)
{
    if (ack->incarnation != 0 && ack->incarnation != uplink->incarnation) {
        uplink->incarnation = ack->incarnation;
        uplink->was_recalled = false;
        want_recall(uplink, true);
    }
}

sj_status sj_uplink_hold_recalled(sj_uplink *uplink)
{
    const uint64_t at = uplink->recall.at;
    const sj_status status = sj_spool_recall_next(uplink->spool, &uplink->recall, &uplink->held);
    uplink->is_recalling = status != SJ_EAGAIN;
    uplink->held_back = uplink->held_is_recalled = status == SJ_OK;
    uplink->held_recall_at = at;
    if (status != SJ_OK && status != SJ_EAGAIN) {
        uplink->recall.at = at;
    }
    return status;
}
