/* Design notes
 *
 * A step handles the channel's events, then sends frames. One thread runs the steps: the uplink's
 * own thread or, without threads, the owner's.
 *
 * Frames are sent in the order of the spool, but resent frames may overtake each other. So a frame
 * waits until no frame of an earlier kind is in flight. The kinds are HELLO, SESSION, other
 * metadata, blocks and threads, and the end of the session. Frames of a session that are missing
 * when its end arrives were refused.
 *
 * If the collector cannot accept a frame now (disk full, database busy), it does not acknowledge
 * the frame. Once nothing is in flight, the spool is rewound. After a pause, one frame probes the
 * collector. A frame that the collector can never store is set aside.
 *
 * The collector may have lost acknowledged frames: its log was cut, or an older copy of its
 * database was restored. If it refuses a frame for an unknown reference, a walk sends all
 * announcements of the spool again. The frame is then tried a few times.
 *
 * A new or restarted collector causes a brief walk, once nothing is in flight. This walk does not
 * wait for a refusal, because the collector would store a block whose thread is unknown. An
 * interrupted walk resumes at the oldest announcement that failed. Frames of the spool wait until
 * all recalled announcements have an answer. */
#include "agent/uplink/uplink.h"

#include "agent/uplink/clock_offset.h"
#include "agent/uplink/moment.h"

#include "proto/wire/ack_status.h"
#include "proto/wire/sojourn.pb-c.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAX_WINDOW = SJ_CHANNEL_SLOTS,
    DEFAULT_WINDOW = 8,
    DEFAULT_RESEND_MS = 10000,
    PAUSE_MIN_MS = 200,
    PAUSE_MAX_MS = 10000,
    UNKNOWN_REFERENCE_TRIES = 3,
    /* Minimum of frames acknowledged between two whole walks for the same collector. */
    RECALL_FRAMES = 1024
};

typedef enum frame_rank {
    RANK_HELLO,
    RANK_SESSION,
    RANK_METADATA,
    RANK_BLOCK,
    RANK_END,
    RANK_CLOCK, /* Clock offsets, which are not in the spool. */
    RANKS
} frame_rank;

/* A frame in flight, or an idle slot. */
typedef struct slot {
    bool is_busy;
    frame_rank rank;
    uint64_t position;  /* Spool position, for frames of the spool only. */
    int64_t sent_ns;    /* CLOCK_BOOTTIME. */
    bool is_recalled;   /* True for an announcement that is sent again. */
    uint64_t recall_at; /* Position of a recalled frame in the walk. */
} slot;

struct sj_uplink {
    sj_spool *spool;
    uint8_t *hello;
    size_t hello_bytes;
    uint32_t window_max;
    const sj_channel_kind *kind;
    sj_channel *channel;
    bool threadless;
    pthread_t thread;
    bool thread_started;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* Signalled after each step. */
    bool stopping;
    bool waits;           /* True until sj_uplink_release: no frames of the spool are sent. */
    bool hello_wanted;    /* HELLO must be sent before other frames. */
    atomic_bool notified; /* A step was requested. Used without the lock. */
    bool idle;            /* At the latest step, the spool was empty and nothing was in flight. */
    bool rewind;
    uint32_t window;
    unsigned pause_ms;         /* Doubles with each pause. 0: none since a frame was accepted. */
    struct timespec resume;    /* Monotonic end of the pause. */
    uint64_t unknown_position; /* Latest frame that referred to something unknown. */
    unsigned unknown_tries;
    /* True if the latest frame with an unknown reference was rejected for good, and no frame was
     * accepted since. */
    bool unknown_is_final;
    sj_spool_recall recall; /* The walk over announcements that is requested or running. */
    bool recall_wanted;     /* The walk starts or resumes once nothing is in flight. */
    bool is_recalling;
    unsigned recalled_in_flight;
    bool was_recalled;    /* A whole walk was requested for this incarnation of the collector. */
    uint64_t recalled_at; /* Value of status.acknowledged_frames at that request. */
    uint64_t incarnation; /* The collector's incarnation. 0: unknown. */
    bool held_is_recalled;
    uint64_t held_recall_at;
    bool held_back; /* `held` is the next frame to send. */
    sj_slice held;
    uint64_t held_position;
    unsigned in_flight[RANKS];
    sj_uplink_status status;
    Sojourn__Hello *about; /* The unpacked HELLO. It identifies the device. */
    sj_clock_offsets clocks;
    sj_clock_offset clock; /* The next offset to report. */
    bool clock_wanted;
    slot slots[MAX_WINDOW];
};

static frame_rank rank_of(sj_slice frame)
{
    sj_reader reader = sj_reader_of(frame.data, frame.size);
    sj_read_bytes(&reader, 6);
    switch (sj_read_u16(&reader)) {
    case SJ_FRAME_SESSION:
        return RANK_SESSION;
    case SJ_FRAME_BLOCK:
    case SJ_FRAME_THREAD: /* The blocks of a thread may be sent before its THREAD frame. */
        return RANK_BLOCK;
    case SJ_FRAME_SESSION_END:
        return RANK_END;
    default:
        return RANK_METADATA;
    }
}

static unsigned count_in_flight(const sj_uplink *uplink)
{
    unsigned count = 0;
    for (unsigned rank = 0; rank < RANKS; ++rank) {
        count += uplink->in_flight[rank];
    }
    return count;
}

static bool may_send(const sj_uplink *uplink, frame_rank rank)
{
    for (unsigned lower = 0; lower < rank; ++lower) {
        if (uplink->in_flight[lower] != 0) {
            return false;
        }
    }
    return true;
}

static slot *find_idle_slot(sj_uplink *uplink)
{
    for (uint32_t i = 0; i < uplink->window_max; ++i) {
        if (!uplink->slots[i].is_busy) {
            return &uplink->slots[i];
        }
    }
    return NULL;
}

static sj_status send_frame(sj_uplink *uplink, slot *idle, sj_slice frame, frame_rank rank,
                            uint64_t position)
{
    const int64_t sent_ns = sj_boottime_ns();
    SJ_TRY(uplink->kind->ask(uplink->channel, (uint32_t)(idle - uplink->slots), frame));
    *idle = (slot){.is_busy = true, .rank = rank, .position = position, .sent_ns = sent_ns};
    uplink->in_flight[rank]++;
    return SJ_OK;
}

static const char no_space[] = "frames were refused, and the disk of the spool has no space to "
                               "count them";

static void set_message(sj_uplink *uplink, const char *text)
{
    snprintf(uplink->status.message, sizeof(uplink->status.message), "%s", text);
}

static void begin_pause(sj_uplink *uplink)
{
    unsigned next = uplink->pause_ms * 2;
    if (next < PAUSE_MIN_MS) {
        next = PAUSE_MIN_MS;
    }
    uplink->pause_ms = next > PAUSE_MAX_MS ? PAUSE_MAX_MS : next;
    uplink->resume = sj_moment_after_ms(uplink->pause_ms);
}

/* Begins a pause unless one is running. Frames that were in flight together usually fail for the
 * same reason, so they cause one pause. */
static void pause_once(sj_uplink *uplink)
{
    if (uplink->pause_ms == 0 || sj_moment_has_passed(&uplink->resume)) {
        begin_pause(uplink);
    }
}

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
        set_message(uplink, no_space);
        uplink->status.state = SJ_UPLINK_WAITING;
        uplink->status.resent_frames++;
        uplink->rewind = true;
    }
}

/* Counts how often a frame referred to something unknown. Returns true if the frame is to be
 * rejected for good. After a refusal, frames are sent one by one, so that no frame they refer to is
 * in flight. */
static bool is_unknown_for_good(sj_uplink *uplink, const slot *done)
{
    const bool same = uplink->unknown_position == done->position;
    uplink->unknown_tries = same ? uplink->unknown_tries + 1 : 1;
    uplink->unknown_position = done->position;
    uplink->unknown_is_final = uplink->unknown_tries > UNKNOWN_REFERENCE_TRIES ||
                               (uplink->unknown_is_final && count_in_flight(uplink) == 0);
    return uplink->unknown_is_final;
}

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

/* Resumes the walk at the announcement in `done`, once nothing is in flight. */
static void resume_recall(sj_uplink *uplink, const slot *done)
{
    if (done->recall_at < uplink->recall.at) {
        uplink->recall.at = done->recall_at;
    }
    uplink->recall_wanted = true;
    uplink->rewind = true;
}

/* Requests a whole walk, unless a walk is requested already. Returns false if the latest whole walk
 * was recent: then the frame refers to something that was never announced. */
static bool want_whole_recall(sj_uplink *uplink)
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
static void handle_recalled_verdict(sj_uplink *uplink, const slot *done, const Sojourn__Ack *ack)
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
    set_message(uplink, ack->message);
    if (!is_final_rejection(status) && status != SJ_ENOTFOUND && status != SJ_EVERSION) {
        note_refusal(uplink, status);
        resume_recall(uplink, done);
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
                 "%.150s (the spool could not keep at least %llu descriptions for the collector)",
                 why, (unsigned long long)counters.unkept_frames);
    }
    set_message(uplink, text);
    reject(uplink, position, text);
}

/* Ends the pause. The next frame is sent alone. */
static void probe_at_once(sj_uplink *uplink)
{
    uplink->pause_ms = PAUSE_MIN_MS;
    uplink->resume = sj_moment_after_ms(0);
}

/* Handles the collector's answer to one frame of the spool. */
static void handle_verdict(sj_uplink *uplink, const slot *done, const Sojourn__Ack *ack)
{
    const sj_status status = (sj_status)ack->status;
    if (status == SJ_OK) {
        uplink->pause_ms = 0;
        uplink->unknown_is_final = false;
        uplink->status.state = SJ_UPLINK_SENDING;
        if (sj_spool_acknowledge(uplink->spool, done->position) != SJ_OK) {
            set_message(uplink, "cannot write the spool's ledger; frames may be sent again");
        }
        uplink->status.acknowledged_frames++;
        return;
    }
    set_message(uplink, ack->message);
    if (is_final_rejection(status)) {
        reject(uplink, done->position, ack->message);
        return;
    }
    if (status == SJ_EVERSION) {
        set_message(uplink, "the collector is older than this recorder and cannot read its blocks; "
                            "update the collector, and they are sent");
    }
    if (status != SJ_ENOTFOUND) {
        note_refusal(uplink, status);
    } else if (!want_whole_recall(uplink) && is_unknown_for_good(uplink, done)) {
        reject_unknown(uplink, done->position, ack->message);
        probe_at_once(uplink);
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
    set_message(uplink, ack->message);
    if (ack->status == SJ_EPERM || ack->status == SJ_EVERSION) {
        uplink->status.state = SJ_UPLINK_REFUSED;
    } else {
        uplink->status.state = SJ_UPLINK_WAITING;
        uplink->hello_wanted = true;
        begin_pause(uplink);
    }
}

/* Adds the times of one exchange to the clock offsets, and requests a clock frame if there is an
 * offset to report. A lost offset is not sent again, because a later exchange replaces it. */
static void note_times(sj_uplink *uplink, const slot *done, int64_t received_ns,
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

/* Requests a brief walk: the database of a new or restarted collector may be an older copy. */
static void note_incarnation(sj_uplink *uplink, const Sojourn__Ack *ack)
{
    if (ack->incarnation != 0 && ack->incarnation != uplink->incarnation) {
        uplink->incarnation = ack->incarnation;
        uplink->was_recalled = false;
        want_recall(uplink, true);
    }
}

static void handle_ack(sj_uplink *uplink, const slot *done, int64_t received_ns,
                       const Sojourn__Ack *ack)
{
    note_times(uplink, done, received_ns, ack);
    if (done->rank == RANK_CLOCK) {
        return; /* A collector that cannot read clock frames does not need them. */
    }
    uplink->window = ack->window < uplink->window_max ? ack->window : uplink->window_max;
    uplink->status.is_over_quota = (sj_status)ack->status == SJ_EQUOTA;
    if (done->rank == RANK_HELLO) {
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
        pause_once(uplink);
    }
    note_incarnation(uplink, ack);
}

/* Handles a missing or unreadable answer. Sends the frame later again, but not a clock offset. */
static void handle_failure(sj_uplink *uplink, const slot *done, const char *why)
{
    set_message(uplink, why);
    if (done->rank == RANK_HELLO) {
        uplink->hello_wanted = true;
    } else if (done->is_recalled) {
        resume_recall(uplink, done);
    } else if (done->rank != RANK_CLOCK) {
        uplink->rewind = true;
        uplink->status.resent_frames++;
    }
    pause_once(uplink);
}

static void handle_reply(sj_uplink *uplink, const slot *done, const sj_channel_event *event)
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
        set_message(uplink, "the collector speaks another major version");
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
    slot *done = &uplink->slots[event->slot];
    done->is_busy = false;
    uplink->in_flight[done->rank]--;
    uplink->recalled_in_flight -= done->is_recalled;
    if (event->type == SJ_CHANNEL_REPLIED) {
        handle_reply(uplink, done, event);
    } else {
        handle_failure(uplink, done, event->why);
    }
}

static void handle_events(sj_uplink *uplink)
{
    sj_channel_event event;
    while (uplink->kind->next_event(uplink->channel, &event)) {
        handle_event(uplink, &event);
    }
    if (uplink->rewind && count_in_flight(uplink) == 0) {
        uplink->rewind = false;
        uplink->held_back = false;
        uplink->is_recalling = uplink->is_recalling || uplink->recall_wanted;
        uplink->recall_wanted = false;
        sj_spool_rewind(uplink->spool);
    }
}

/* Reads the next announcement of the walk into `held`. Returns SJ_EAGAIN at the end of the walk. */
static sj_status hold_recalled(sj_uplink *uplink)
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

/* Reads the next sound frame of the spool into `held`. Returns SJ_EAGAIN if it has none. */
static sj_status hold_pending(sj_uplink *uplink)
{
    sj_status status = SJ_ECORRUPT;
    while (status == SJ_ECORRUPT) {
        status = sj_spool_next(uplink->spool, &uplink->held, &uplink->held_position);
    }
    uplink->held_back = status == SJ_OK;
    uplink->held_is_recalled = false;
    return status;
}

/* Reads the next announcement or frame into `held`, unless `held` is set already. Returns false if
 * none is available or the spool cannot be read. */
static bool hold_next(sj_uplink *uplink)
{
    sj_status status = uplink->held_back ? SJ_OK : SJ_EAGAIN;
    if (!uplink->held_back && uplink->is_recalling) {
        status = hold_recalled(uplink);
    }
    if (status == SJ_EAGAIN && uplink->recalled_in_flight == 0) {
        status = hold_pending(uplink);
    }
    if (status != SJ_OK && status != SJ_EAGAIN) {
        set_message(uplink, status == SJ_EFULL ? no_space : "cannot read the spool");
        uplink->rewind = true; /* The spool has moved past a frame that is not sent. */
        begin_pause(uplink);
    }
    return status == SJ_OK;
}

static sj_status send_clock(sj_uplink *uplink, slot *idle)
{
    uint8_t header[256];
    uint8_t frame[sizeof(header) + SJ_FRAME_PREFIX_BYTES];
    size_t size = 0;
    Sojourn__DeviceClock clock = SOJOURN__DEVICE_CLOCK__INIT;
    clock.device_id = uplink->about->device_id;
    clock.boot_id = uplink->about->boot_id;
    clock.boottime_ns = (uint64_t)uplink->clock.boottime_ns;
    clock.offset_ns = uplink->clock.offset_ns;
    clock.uncertainty_ns = (uint64_t)uplink->clock.uncertainty_ns;
    if (sojourn__device_clock__get_packed_size(&clock) > sizeof(header)) {
        return SJ_ELIMIT;
    }
    const sj_slice packed = {.data = header, .size = sojourn__device_clock__pack(&clock, header)};
    SJ_TRY(
        sj_frame_write(SJ_FRAME_DEVICE_CLOCK, packed, (sj_slice){0}, frame, sizeof(frame), &size));
    return send_frame(uplink, idle, (sj_slice){.data = frame, .size = size}, RANK_CLOCK, 0);
}

static void send_what_may(sj_uplink *uplink)
{
    if (uplink->pause_ms != 0 && !sj_moment_has_passed(&uplink->resume)) {
        return;
    }
    slot *idle = find_idle_slot(uplink);
    if (uplink->hello_wanted && idle != NULL && uplink->in_flight[RANK_HELLO] == 0) {
        uplink->hello_wanted = false;
        const sj_slice hello = {.data = uplink->hello, .size = uplink->hello_bytes};
        if (send_frame(uplink, idle, hello, RANK_HELLO, 0) != SJ_OK) {
            uplink->hello_wanted = true;
            begin_pause(uplink);
        }
        return;
    }
    if (uplink->clock_wanted && idle != NULL && uplink->status.state == SJ_UPLINK_SENDING) {
        uplink->clock_wanted = false;
        (void)!send_clock(uplink, idle); /* A later exchange replaces a lost offset. */
    }
    while (!uplink->waits && !uplink->rewind && !uplink->hello_wanted &&
           uplink->status.state != SJ_UPLINK_CONNECTING &&
           uplink->status.state != SJ_UPLINK_REFUSED) {
        /* After a pause, or without credit, one frame probes the collector. */
        const uint32_t window = uplink->pause_ms != 0 || uplink->window == 0 ? 1 : uplink->window;
        idle = find_idle_slot(uplink);
        if (idle == NULL || count_in_flight(uplink) >= window || !hold_next(uplink)) {
            return;
        }
        const frame_rank rank = rank_of(uplink->held);
        if (!may_send(uplink, rank)) {
            return;
        }
        if (send_frame(uplink, idle, uplink->held, rank, uplink->held_position) != SJ_OK) {
            begin_pause(uplink);
            return;
        }
        idle->is_recalled = uplink->held_is_recalled;
        idle->recall_at = uplink->held_recall_at;
        uplink->recalled_in_flight += idle->is_recalled;
        uplink->held_back = false;
    }
}

/* Handles the events of the channel and sends frames. The caller holds the lock. */
static void step(sj_uplink *uplink)
{
    sj_spool_counters counters;
    atomic_store(&uplink->notified, false);
    handle_events(uplink);
    send_what_may(uplink);
    sj_spool_get_counters(uplink->spool, &counters);
    uplink->idle = counters.pending_bytes == 0 && count_in_flight(uplink) == 0;
    pthread_cond_broadcast(&uplink->changed);
}

/* Returns the end of the running pause, or NULL if only events and wake-ups need a step. */
static const struct timespec *end_of_pause(const sj_uplink *uplink)
{
    return uplink->pause_ms != 0 && !sj_moment_has_passed(&uplink->resume) ? &uplink->resume : NULL;
}

static void *run(void *argument)
{
    sj_uplink *uplink = argument;
    pthread_mutex_lock(&uplink->lock);
    while (!uplink->stopping) {
        step(uplink);
        pthread_mutex_unlock(&uplink->lock);
        uplink->kind->wait(uplink->channel, end_of_pause(uplink));
        pthread_mutex_lock(&uplink->lock);
    }
    pthread_mutex_unlock(&uplink->lock);
    return NULL;
}

void sj_uplink_step(sj_uplink *uplink)
{
    pthread_mutex_lock(&uplink->lock);
    step(uplink);
    pthread_mutex_unlock(&uplink->lock);
}

static void free_uplink(sj_uplink *uplink)
{
    if (uplink->channel != NULL) {
        uplink->kind->close(uplink->channel);
    }
    pthread_cond_destroy(&uplink->changed);
    pthread_mutex_destroy(&uplink->lock);
    sojourn__hello__free_unpacked(uplink->about, NULL);
    free(uplink->hello);
    free(uplink);
}

static sj_status connect_uplink(sj_uplink *uplink, const sj_uplink_options *options,
                                sj_error *error)
{
    const sj_channel_options channel = {.url = options->url,
                                        .certificate = options->certificate,
                                        .context = options->channel_context,
                                        .slots = uplink->window_max,
                                        .resend_ms = options->resend_ms != 0 ? options->resend_ms
                                                                             : DEFAULT_RESEND_MS};
    SJ_TRY(uplink->kind->open(&channel, &uplink->channel, error));
    if (!uplink->threadless && pthread_create(&uplink->thread, NULL, run, uplink) != 0) {
        return sj_fail(error, SJ_EIO, "cannot start the uplink's thread");
    }
    uplink->thread_started = !uplink->threadless;
    return SJ_OK;
}

sj_status sj_uplink_start(sj_spool *spool, const sj_uplink_options *options, sj_uplink **uplink,
                          sj_error *error)
{
    sj_frame_view hello;
    if (options->url == NULL || options->channel == NULL ||
        sj_frame_read(options->hello, &hello) != SJ_OK || hello.type != SJ_FRAME_HELLO) {
        return sj_fail(error, SJ_EINVAL, "the uplink needs an address and a HELLO frame");
    }
    sj_uplink *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->hello = malloc(options->hello.size)) == NULL ||
        (made->about = sojourn__hello__unpack(NULL, hello.header.size, hello.header.data)) ==
            NULL) {
        free(made != NULL ? made->hello : NULL);
        free(made);
        return sj_fail(error, SJ_ENOMEM, "no memory for the uplink");
    }
    memcpy(made->hello, options->hello.data, options->hello.size);
    made->hello_bytes = options->hello.size;
    made->spool = spool;
    made->window_max = options->window == 0           ? DEFAULT_WINDOW
                       : options->window > MAX_WINDOW ? MAX_WINDOW
                                                      : options->window;
    made->window = 1;
    made->waits = options->waits;
    made->kind = options->channel;
    made->threadless = options->threadless;
    pthread_mutex_init(&made->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&made->changed, &clock);
    pthread_condattr_destroy(&clock);
    sj_spool_rewind(spool);
    const sj_status status = connect_uplink(made, options, error);
    if (status != SJ_OK) {
        free_uplink(made);
        return status;
    }
    *uplink = made;
    return SJ_OK;
}

void sj_uplink_get_status(sj_uplink *uplink, sj_uplink_status *status)
{
    pthread_mutex_lock(&uplink->lock);
    *status = uplink->status;
    pthread_mutex_unlock(&uplink->lock);
}

/* Makes the sender run a step. The caller holds the lock; wake releases it. */
static void wake(sj_uplink *uplink)
{
    uplink->idle = false;
    pthread_mutex_unlock(&uplink->lock);
    uplink->kind->wake(uplink->channel);
}

void sj_uplink_release(sj_uplink *uplink)
{
    pthread_mutex_lock(&uplink->lock);
    uplink->waits = false;
    wake(uplink);
}

void sj_uplink_wake(sj_uplink *uplink)
{
    if (!atomic_exchange(&uplink->notified, true)) {
        uplink->kind->wake(uplink->channel);
    }
}

/* Waits until the thread has run a step. Without a thread, runs a step and waits for the next
 * event. Returns false if `deadline` has passed. */
static bool wait_for_step(sj_uplink *uplink, const struct timespec *deadline)
{
    if (!uplink->threadless) {
        return (deadline == NULL
                    ? pthread_cond_wait(&uplink->changed, &uplink->lock)
                    : pthread_cond_timedwait(&uplink->changed, &uplink->lock, deadline)) == 0;
    }
    if (deadline != NULL && sj_moment_has_passed(deadline)) {
        return false;
    }
    step(uplink);
    if (!uplink->idle && uplink->status.state != SJ_UPLINK_REFUSED) {
        const struct timespec *pause = end_of_pause(uplink);
        const bool pause_first =
            pause != NULL && (deadline == NULL || sj_moment_is_before(pause, deadline));
        uplink->kind->wait(uplink->channel, pause_first ? pause : deadline);
    }
    return true;
}

sj_status sj_uplink_drain(sj_uplink *uplink, int64_t timeout_ms)
{
    struct timespec deadline;
    deadline = sj_moment_after_ms(timeout_ms < 0 ? 0 : timeout_ms);
    sj_status status = SJ_OK;
    pthread_mutex_lock(&uplink->lock);
    wake(uplink);
    pthread_mutex_lock(&uplink->lock);
    while (!uplink->idle && status == SJ_OK) {
        if (uplink->status.state == SJ_UPLINK_REFUSED) {
            status = SJ_EPERM;
        } else if (!wait_for_step(uplink, timeout_ms < 0 ? NULL : &deadline)) {
            status = uplink->idle ? SJ_OK : SJ_ETIMEDOUT;
        }
    }
    pthread_mutex_unlock(&uplink->lock);
    return status;
}

void sj_uplink_stop(sj_uplink *uplink)
{
    if (uplink == NULL) {
        return;
    }
    pthread_mutex_lock(&uplink->lock);
    uplink->stopping = true;
    pthread_mutex_unlock(&uplink->lock);
    if (uplink->thread_started) {
        uplink->kind->wake(uplink->channel);
        pthread_join(uplink->thread, NULL);
    }
    free_uplink(uplink);
}
