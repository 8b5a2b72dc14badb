/* Design notes
 *
 * A step takes in what the channel has brought and sends what may be sent. One thread makes the
 * steps, its own or, without threads, its owner's.
 *
 * Order: frames go out in spool order, but may overtake each other when they are re-sent. What
 * others refer to therefore waits for its acknowledgement first: HELLO before all, SESSION before
 * the rest of the metadata, metadata before blocks, blocks before the end, so that what is missing
 * then has been refused.
 *
 * A frame that the collector cannot take now (disk full, database busy) is not acknowledged; when
 * nothing is in flight any more the spool is rewound and, after a pause, one frame probes. A frame
 * that can never be stored is put aside.
 *
 * The collector may have lost what it acknowledged: its log was cut, or an older copy of its
 * database took its place. A frame that refers to something unknown has all announcements of the
 * spool sent again before it, and is then tried a few times. A collector that has been started
 * anew gets the brief announcements at once: a block whose thread is unknown is stored, not
 * refused. A walk over announcements that was interrupted goes on at the oldest one that was not
 * answered. Frames of the spool wait until all announcements are answered. */
#include "agent/uplink/uplink.h"

#include "agent/uplink/clock_offset.h"
#include "agent/uplink/moment.h"

#include "proto/wire/sojourn.pb-c.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
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
    RECALL_FRAMES = 1024 /* to be acknowledged before frames are announced again to one collector */
};

typedef enum frame_rank {
    RANK_HELLO,
    RANK_SESSION,
    RANK_METADATA,
    RANK_BLOCK,
    RANK_END,
    RANK_CLOCK, /* not of the spool, and nothing waits for it */
    RANKS
} frame_rank;

/* A frame that is under way. */
typedef struct slot {
    bool is_busy;
    frame_rank rank;
    uint64_t position;  /* in the spool; meaningless for HELLO, clocks and recalled frames */
    int64_t sent_ns;    /* BOOTTIME */
    bool is_recalled;   /* an announcement that is sent once more */
    uint64_t recall_at; /* the frame's place in `announced` */
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
    pthread_cond_t changed; /* a step was made */
    bool stopping;
    bool waits;           /* for sj_uplink_release */
    bool hello_wanted;    /* a connection was made */
    atomic_bool notified; /* a step is to be made; without the lock */
    bool idle;            /* the spool was empty at the last look and nothing was in flight */
    bool rewind;
    uint32_t window;
    unsigned pause_ms;         /* 0: none; grows while the collector gives no credit */
    struct timespec resume;    /* monotonic; end of the pause */
    uint64_t unknown_position; /* frame that referred to something unknown */
    unsigned unknown_tries;
    bool unknown_is_final;  /* the frame before was refused because it did, and none was taken since
                             */
    sj_spool_recall recall; /* the walk over announcements that is wanted or under way */
    bool recall_wanted;     /* it begins when nothing is in flight */
    bool is_recalling;
    unsigned recalled_in_flight;
    bool was_recalled;    /* at the collector of now, when so many frames were acknowledged: */
    uint64_t recalled_at; /* in status.acknowledged_frames */
    uint64_t incarnation; /* the collector's; 0: not known */
    bool held_is_recalled;
    uint64_t held_recall_at;
    bool held_back; /* `held` is the next frame, waiting for its rank */
    sj_slice held;
    uint64_t held_position;
    unsigned in_flight[RANKS];
    sj_uplink_status status;
    Sojourn__Hello *about; /* the HELLO, unpacked: who the device is */
    sj_clock_offsets clocks;
    sj_clock_offset clock; /* to be reported */
    bool clock_wanted;
    slot slots[MAX_WINDOW];
};

static frame_rank rank_of(sj_slice frame)
{
    sj_reader reader = sj_reader_of(frame.data, frame.size);
    sj_reader_take(&reader, 6);
    switch (sj_read_u16(&reader)) {
    case SJ_FRAME_SESSION:
        return RANK_SESSION;
    case SJ_FRAME_BLOCK:
    case SJ_FRAME_THREAD: /* may come after the blocks of its streams */
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

static const char no_room[] = "frames were refused, and the disk of the spool has no room to "
                              "account for them";

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

/* pause_once: of frames that were under way together each says the same. */
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

/* A frame that cannot be accounted for is sent again: the disk may have room then. */
static void reject(sj_uplink *uplink, uint64_t position, const char *why)
{
    const sj_status status = sj_spool_reject(uplink->spool, position, why);
    if (status == SJ_OK) {
        uplink->status.rejected_frames++;
    } else if (status == SJ_EFULL) {
        set_message(uplink, no_room);
        uplink->status.state = SJ_UPLINK_WAITING;
        uplink->status.resent_frames++;
        uplink->rewind = true;
    }
}

/* Counts how often a frame referred to something unknown. Those that follow one that was refused
 * for that go out one by one, so that nothing they could refer to is under way. */
static bool is_unknown_for_good(sj_uplink *uplink, const slot *done)
{
    const bool same = uplink->unknown_position == done->position;
    uplink->unknown_tries = same ? uplink->unknown_tries + 1 : 1;
    uplink->unknown_position = done->position;
    uplink->unknown_is_final = uplink->unknown_tries > UNKNOWN_REFERENCE_TRIES ||
                               (uplink->unknown_is_final && count_in_flight(uplink) == 0);
    return uplink->unknown_is_final;
}

/* Has all announcements sent again, once nothing is in flight. A walk that includes modules is not
 * replaced by a brief one: it starts again. */
static void want_recall(sj_uplink *uplink, bool is_brief)
{
    const bool is_pending =
        uplink->recall_wanted || uplink->is_recalling || uplink->recalled_in_flight != 0;
    const bool is_whole = !is_brief || (is_pending && !uplink->recall.is_brief);
    uplink->recall = (sj_spool_recall){.is_brief = !is_whole};
    uplink->recall_wanted = true;
    uplink->rewind = true;
}

/* Has the walk go on at the announcement in `done`, once nothing is in flight. */
static void resume_recall(sj_uplink *uplink, const slot *done)
{
    if (done->recall_at < uplink->recall.at) {
        uplink->recall.at = done->recall_at;
    }
    uplink->recall_wanted = true;
    uplink->rewind = true;
}

/* Asks for a walk over all announcements, unless the last one is so recent that the frame refers to
 * something that none of them has. */
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

/* Sets the state after a refusal that another answer may follow. */
static void note_refusal(sj_uplink *uplink, sj_status status)
{
    if (status == SJ_EPERM || status == SJ_EVERSION) {
        uplink->status.state = SJ_UPLINK_REFUSED;
    } else if (uplink->status.state != SJ_UPLINK_REFUSED) {
        uplink->status.state = SJ_UPLINK_WAITING;
    }
}

/* Reads the verdict on an announcement that was sent once more. One that is refused for good, or
 * that this collector cannot read, is left out: frames that need it are refused in turn, and
 * counted. */
static void take_recalled_verdict(sj_uplink *uplink, const slot *done, const Sojourn__Ack *ack)
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

/* Rejects a frame that refers to something unknown, and says if that may be for lack of room. */
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

/* Sends the next frame alone and without a pause. */
static void probe_at_once(sj_uplink *uplink)
{
    uplink->pause_ms = PAUSE_MIN_MS;
    uplink->resume = sj_moment_after_ms(0);
}

/* Takes in what the collector says about one frame of the spool. */
static void take_verdict(sj_uplink *uplink, const slot *done, const Sojourn__Ack *ack)
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

static void take_hello_verdict(sj_uplink *uplink, const Sojourn__Ack *ack)
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

/* Offsets come with every answer; one that the collector did not get is made up for by a later one.
 */
static void take_times(sj_uplink *uplink, const slot *done, int64_t received_ns,
                       const Sojourn__Ack *ack)
{
    const sj_clock_exchange exchange = {.sent_ns = done->sent_ns,
                                        .collector_received_ns = (int64_t)ack->received_realtime_ns,
                                        .collector_sent_ns = (int64_t)ack->sent_realtime_ns,
                                        .received_ns = received_ns};
    if (sj_clock_offsets_take(&uplink->clocks, &exchange, &uplink->clock)) {
        uplink->clock_wanted = uplink->about->boot_id[0] != '\0';
    }
}

/* A collector that was started since may have an older database: it gets announcements once more.
 */
static void note_incarnation(sj_uplink *uplink, const Sojourn__Ack *ack)
{
    if (ack->incarnation != 0 && ack->incarnation != uplink->incarnation) {
        uplink->incarnation = ack->incarnation;
        uplink->was_recalled = false;
        want_recall(uplink, true);
    }
}

static void take_ack(sj_uplink *uplink, const slot *done, int64_t received_ns,
                     const Sojourn__Ack *ack)
{
    take_times(uplink, done, received_ns, ack);
    if (done->rank == RANK_CLOCK) {
        return; /* a collector that knows no such frame does without */
    }
    uplink->window = ack->window < uplink->window_max ? ack->window : uplink->window_max;
    if (done->rank == RANK_HELLO) {
        take_hello_verdict(uplink, ack);
    } else if (done->is_recalled) {
        take_recalled_verdict(uplink, done, ack);
    } else {
        take_verdict(uplink, done, ack);
    }
    if (uplink->window == 0 && uplink->status.state != SJ_UPLINK_REFUSED) {
        uplink->status.state = SJ_UPLINK_WAITING;
    }
    if (uplink->window == 0 || uplink->rewind) {
        pause_once(uplink);
    }
    note_incarnation(uplink, ack);
}

/* The answer could not be had or read: the frame will be sent again. */
static void take_failure(sj_uplink *uplink, const slot *done, const char *why)
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

static void take_answer(sj_uplink *uplink, const slot *done, const sj_channel_event *event)
{
    sj_frame_view view;
    const sj_status status = sj_frame_read(event->answer, &view);
    Sojourn__Ack *ack = NULL;
    if (status == SJ_OK && view.type == SJ_FRAME_ACK) {
        ack = sojourn__ack__unpack(NULL, view.header.size, view.header.data);
    }
    if (ack != NULL) {
        take_ack(uplink, done, event->received_ns, ack);
        sojourn__ack__free_unpacked(ack, NULL);
    } else if (status == SJ_EVERSION) {
        uplink->status.state = SJ_UPLINK_REFUSED;
        set_message(uplink, "the collector speaks another major version");
    } else {
        take_failure(uplink, done, "the collector's answer cannot be read");
    }
}

static void take_event(sj_uplink *uplink, const sj_channel_event *event)
{
    if (event->type == SJ_CHANNEL_CONNECTED) {
        uplink->hello_wanted = true; /* each new connection begins with it */
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
    if (event->type == SJ_CHANNEL_ANSWERED) {
        take_answer(uplink, done, event);
    } else {
        take_failure(uplink, done, event->why);
    }
}

static void take_events(sj_uplink *uplink)
{
    sj_channel_event event;
    while (uplink->kind->take(uplink->channel, &event)) {
        take_event(uplink, &event);
    }
    if (uplink->rewind && count_in_flight(uplink) == 0) {
        uplink->rewind = false;
        uplink->held_back = false;
        uplink->is_recalling = uplink->is_recalling || uplink->recall_wanted;
        uplink->recall_wanted = false;
        sj_spool_rewind(uplink->spool);
    }
}

/* Gets the next announcement that is to be sent again into `held`. SJ_EAGAIN: that was all. */
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

/* Gets the next frame of the spool into `held`. SJ_EAGAIN: there is none now. */
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

/* Gets the next frame into `held`; false when there is none now. */
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
        set_message(uplink, status == SJ_EFULL ? no_room : "cannot read the spool");
        uplink->rewind = true; /* a frame was given, and is not sent */
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
        (void)!send_clock(uplink, idle); /* another one comes */
    }
    while (!uplink->waits && !uplink->rewind && !uplink->hello_wanted &&
           uplink->status.state != SJ_UPLINK_CONNECTING &&
           uplink->status.state != SJ_UPLINK_REFUSED) {
        /* while paused credit is probed with one frame */
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

/* step with the lock held. */
static void step(sj_uplink *uplink)
{
    sj_spool_counters counters;
    atomic_store(&uplink->notified, false);
    take_events(uplink);
    send_what_may(uplink);
    sj_spool_get_counters(uplink->spool, &counters);
    uplink->idle = counters.pending_bytes == 0 && count_in_flight(uplink) == 0;
    pthread_cond_broadcast(&uplink->changed);
}

/* end_of_pause is until when a step would do nothing without an event; NULL: forever. */
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

/* wake lets a step be made; called with the lock held, which it gives back. */
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

/* wait_for_step waits for the thread to make one, or makes it; false at the deadline. */
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
