/* If the collector cannot accept a frame now (disk full, database busy), it does not acknowledge
 * the frame. Once nothing is in flight, the spool is rewound. After a pause, one frame probes the
 * collector. A frame that the collector can never store is set aside. */
#include "agent/uplink/uplink_state.h"
#include "proto/base/units.h"

#include <stdio.h>

/* How often a frame with an unknown reference is tried. */
enum { UNKNOWN_REFERENCE_TRIES = 3 };

static bool is_final_rejection(sj_status status)
{
    return status == SJ_ECORRUPT || status == SJ_EINVAL || status == SJ_ELIMIT ||
           status == SJ_EEXIST || status == SJ_EUNSUPPORTED;
}

/* Sets a frame of the spool aside for good. If the disk has no space to note the rejection, the
 * frame is sent again later. */
static void reject(sj_uplink *uplink, uint64_t position, const char *why)
{
    const sj_status status = sj_spool_reject(uplink->spool, position, why);
    if (status == SJ_OK) {
        uplink->status.rejected_frames++;
    } else if (status == SJ_EFULL) {
        sj_uplink_set_message(uplink, SJ_UPLINK_NO_SPACE);
        uplink->status.state = SJ_UPLINK_WAITING;
        uplink->status.resent_frames++;
        uplink->rewind = true;
    }
}

/* Counts how often a frame referred to something unknown. Returns true if the frame is to be
 * rejected for good. After a refusal, frames are sent one by one, so that no frame they refer to is
 * in flight. */
static bool is_unknown_for_good(sj_uplink *uplink, const sj_uplink_slot *done)
{
    const bool same = uplink->unknown_position == done->position;
    uplink->unknown_tries = same ? uplink->unknown_tries + 1 : 1;
    uplink->unknown_position = done->position;
    uplink->unknown_is_final = uplink->unknown_tries > UNKNOWN_REFERENCE_TRIES ||
                               (uplink->unknown_is_final && sj_uplink_count_in_flight(uplink) == 0);
    return uplink->unknown_is_final;
}

/* Sets the state after a refusal that is not final. */
static void note_refusal(sj_uplink *uplink, sj_status status)
{
    if (status == SJ_EPERM || status == SJ_EVERSION) {
        uplink->status.state = SJ_UPLINK_REFUSED;
    } else if (uplink->status.state != SJ_UPLINK_REFUSED) {
        uplink->status.state = SJ_UPLINK_WAITING;
    }
}

/* Handles the answer to a recalled announcement. An announcement is skipped if it is refused for
 * good, refers to something unknown, or cannot be read by this collector. Frames that need a
 * skipped announcement are refused in turn, and counted. After any other refusal, the walk resumes
 * at the announcement. */
static void handle_recalled_verdict(sj_uplink *uplink, const sj_uplink_slot *done,
                                    const Sojourn__Ack *ack)
{
    const sj_status status = (sj_status)ack->status;
    if (status == SJ_OK) {
        uplink->pause_ms = 0;
        if (uplink->status.state == SJ_UPLINK_WAITING) {
            uplink->status.state = SJ_UPLINK_SENDING;
        }
        uplink->status.announced_frames++;
        return;
    }
    sj_uplink_set_message(uplink, ack->message);
    if (!is_final_rejection(status) && status != SJ_ENOTFOUND && status != SJ_EVERSION) {
        note_refusal(uplink, status);
        sj_uplink_resume_recall(uplink, done);
    }
}

/* Rejects a frame that refers to something unknown. The reason names lost announcements, if any. */
static void reject_unknown(sj_uplink *uplink, uint64_t position, const char *why)
{
    char text[sizeof(uplink->status.message)];
    sj_spool_counters counters;
    sj_spool_get_counters(uplink->spool, &counters);
    snprintf(text, sizeof(text), "%.150s", why);
    if (counters.unkept_frames != 0) {
        snprintf(text, sizeof(text),
                 "%.150s (the spool could not keep at least %s for the collector)", why,
                 SJ_COUNTED(counters.unkept_frames, "description"));
    }
    sj_uplink_set_message(uplink, text);
    reject(uplink, position, text);
}

/* Handles the collector's answer to one frame of the spool. */
static void handle_verdict(sj_uplink *uplink, const sj_uplink_slot *done, const Sojourn__Ack *ack)
{
    const sj_status status = (sj_status)ack->status;
    if (status == SJ_OK) {
        uplink->pause_ms = 0;
        uplink->unknown_is_final = false;
        uplink->status.state = SJ_UPLINK_SENDING;
        if (sj_spool_acknowledge(uplink->spool, done->position) != SJ_OK) {
            sj_uplink_set_message(uplink,
                                  "cannot write the spool's ledger; frames may be sent again");
        }
        uplink->status.acknowledged_frames++;
        return;
    }
    sj_uplink_set_message(uplink, ack->message);
    if (is_final_rejection(status)) {
        reject(uplink, done->position, ack->message);
        return;
    }
    if (status == SJ_EVERSION) {
        sj_uplink_set_message(
            uplink, "the collector is older than this recorder and cannot read its blocks; "
                    "update the collector, and they are sent");
    }
    if (status != SJ_ENOTFOUND) {
        note_refusal(uplink, status);
    } else if (!sj_uplink_want_whole_recall(uplink) && is_unknown_for_good(uplink, done)) {
        reject_unknown(uplink, done->position, ack->message);
        sj_uplink_probe_at_once(uplink);
        return;
    }
    uplink->status.resent_frames++;
    uplink->rewind = true;
}

static void handle_hello_verdict(sj_uplink *uplink, const Sojourn__Ack *ack)
{
    if (ack->status == SJ_OK) {
        uplink->status.state = ack->window == 0 ? SJ_UPLINK_WAITING : SJ_UPLINK_SENDING;
        uplink->status.message[0] = '\0';
        return;
    }
    sj_uplink_set_message(uplink, ack->message);
    if (ack->status == SJ_EPERM || ack->status == SJ_EVERSION) {
        uplink->status.state = SJ_UPLINK_REFUSED;
    } else {
        uplink->status.state = SJ_UPLINK_WAITING;
        uplink->hello_wanted = true;
        sj_uplink_begin_pause(uplink);
    }
}

/* Adds the times of one exchange to the clock offsets, and requests a clock frame if there is an
 * offset to report. A lost offset is not sent again, because a later exchange replaces it. */
static void note_times(sj_uplink *uplink, const sj_uplink_slot *done, int64_t received_ns,
                       const Sojourn__Ack *ack)
{
    const sj_clock_exchange exchange = {.sent_ns = done->sent_ns,
                                        .collector_received_ns = (int64_t)ack->received_realtime_ns,
                                        .collector_sent_ns = (int64_t)ack->sent_realtime_ns,
                                        .received_ns = received_ns};
    if (sj_clock_offsets_add(&uplink->clocks, &exchange, &uplink->clock)) {
        uplink->clock_wanted = uplink->about->boot_id[0] != '\0';
    }
}

static void handle_ack(sj_uplink *uplink, const sj_uplink_slot *done, int64_t received_ns,
                       const Sojourn__Ack *ack)
{
    note_times(uplink, done, received_ns, ack);
    if (done->rank == SJ_RANK_CLOCK) {
        return; /* A collector that cannot read clock frames does not need them. */
    }
    uplink->window = ack->window < uplink->window_max ? ack->window : uplink->window_max;
    uplink->status.is_over_quota = (sj_status)ack->status == SJ_EQUOTA;
    if (done->rank == SJ_RANK_HELLO) {
        handle_hello_verdict(uplink, ack);
    } else if (done->is_recalled) {
        handle_recalled_verdict(uplink, done, ack);
    } else {
        handle_verdict(uplink, done, ack);
    }
    if (uplink->window == 0 && uplink->status.state != SJ_UPLINK_REFUSED) {
        uplink->status.state = SJ_UPLINK_WAITING;
    }
    if (uplink->window == 0 || uplink->rewind) {
        sj_uplink_pause_once(uplink);
    }
    sj_uplink_note_incarnation(uplink, ack);
}

/* Handles a missing or unreadable answer. Sends the frame later again, but not a clock offset. */
static void handle_failure(sj_uplink *uplink, const sj_uplink_slot *done, const char *why)
{
    sj_uplink_set_message(uplink, why);
    if (done->rank == SJ_RANK_HELLO) {
        uplink->hello_wanted = true;
    } else if (done->is_recalled) {
        sj_uplink_resume_recall(uplink, done);
    } else if (done->rank != SJ_RANK_CLOCK) {
        uplink->rewind = true;
        uplink->status.resent_frames++;
    }
    sj_uplink_pause_once(uplink);
}

static void handle_reply(sj_uplink *uplink, const sj_uplink_slot *done,
                         const sj_channel_event *event)
{
    sj_frame_view view;
    const sj_status status = sj_frame_read(event->reply, &view);
    Sojourn__Ack *ack = NULL;
    if (status == SJ_OK && view.type == SJ_FRAME_ACK) {
        ack = sojourn__ack__unpack(NULL, view.header.size, view.header.data);
    }
    if (ack != NULL) {
        handle_ack(uplink, done, event->received_ns, ack);
        sojourn__ack__free_unpacked(ack, NULL);
    } else if (status == SJ_EVERSION) {
        uplink->status.state = SJ_UPLINK_REFUSED;
        sj_uplink_set_message(uplink, "the collector speaks another major version");
    } else {
        handle_failure(uplink, done, "the collector's answer cannot be read");
    }
}

static void handle_event(sj_uplink *uplink, const sj_channel_event *event)
{
    if (event->type == SJ_CHANNEL_CONNECTED) {
        uplink->hello_wanted = true; /* Each connection begins with HELLO. */
        return;
    }
    if (event->type == SJ_CHANNEL_DISCONNECTED) {
        if (uplink->status.state != SJ_UPLINK_REFUSED) {
            uplink->status.state = SJ_UPLINK_CONNECTING;
        }
        return;
    }
    sj_uplink_slot *done = &uplink->slots[event->slot];
    done->is_busy = false;
    uplink->in_flight[done->rank]--;
    uplink->recalled_in_flight -= done->is_recalled;
    if (event->type == SJ_CHANNEL_REPLIED) {
        handle_reply(uplink, done, event);
    } else {
        handle_failure(uplink, done, event->why);
    }
}

void sj_uplink_handle_events(sj_uplink *uplink)
{
    sj_channel_event event;
    while (uplink->kind->next_event(uplink->channel, &event)) {
        handle_event(uplink, &event);
    }
    if (uplink->rewind && sj_uplink_count_in_flight(uplink) == 0) {
        uplink->rewind = false;
        uplink->held_back = false;
        uplink->is_recalling = uplink->is_recalling || uplink->recall_wanted;
        uplink->recall_wanted = false;
        sj_spool_rewind(uplink->spool);
    }
}
