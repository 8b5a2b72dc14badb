/* Design notes
 *
 * One thread decides; NNG's threads only note that a request has ended and wake it. A slot is one
 * REQ context with one asynchronous operation: send, then (from the completion of the send)
 * receive. Nothing in flight is ever cancelled while the uplink runs, because NNG 1.5.2 can crash
 * when a receive is cancelled whose send is still queued; REQ itself re-sends after `resend_ms` or
 * when the connection breaks, to whoever answers next.
 *
 * Order: frames go out in spool order, but may overtake each other when they are re-sent. What
 * others refer to therefore waits for its acknowledgement first: HELLO before all, SESSION before
 * the rest of the metadata, metadata before blocks.
 *
 * A frame that the collector cannot take now (disk full, database busy) is not acknowledged; when
 * nothing is in flight any more the spool is rewound and, after a pause, one frame probes. A frame
 * that refers to something unknown is tried so again a few times. A frame that can never be stored
 * is put aside. */
#include "agent/uplink/uplink.h"

#include "agent/uplink/clock_offset.h"
#include "agent/uplink/dial.h"

#include "proto/sojourn.pb-c.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAX_WINDOW = 64,
    DEFAULT_WINDOW = 8,
    DEFAULT_RESEND_MS = 10000,
    RECONNECT_MIN_MS = 100,
    RECONNECT_MAX_MS = 5000,
    ACK_MAX_BYTES = 64 * 1024,
    PAUSE_MIN_MS = 200,
    PAUSE_MAX_MS = 10000,
    UNKNOWN_REFERENCE_TRIES = 3
};

typedef enum frame_rank {
    RANK_HELLO,
    RANK_SESSION,
    RANK_METADATA,
    RANK_BLOCK,
    RANK_CLOCK, /* not of the spool, and nothing waits for it */
    RANKS
} frame_rank;
typedef enum slot_state { SLOT_IDLE, SLOT_BUSY, SLOT_DONE } slot_state;

typedef struct slot {
    struct sj_uplink *uplink;
    nng_ctx context;
    nng_aio *aio;
    bool opened;
    bool receiving;
    slot_state state;
    frame_rank rank;
    uint64_t position; /* in the spool; meaningless for HELLO and clocks */
    int64_t sent_ns;   /* BOOTTIME */
    int64_t received_ns;
    int result; /* of NNG, once DONE */
    nng_msg *answer;
} slot;

struct sj_uplink {
    sj_spool *spool;
    uint8_t *hello;
    size_t hello_bytes;
    uint32_t window_max;
    nng_socket socket;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* something to do, or done */
    bool stopping;
    bool woken;
    bool waits;        /* for sj_uplink_release */
    bool hello_wanted; /* a connection was made */
    int connections;
    bool idle; /* the spool was empty at the last look and nothing was in flight */
    bool rewind;
    uint32_t window;
    unsigned pause_ms;         /* 0: none; grows while the collector gives no credit */
    struct timespec resume;    /* monotonic; end of the pause */
    uint64_t unknown_position; /* frame that referred to something unknown */
    unsigned unknown_tries;
    bool held_back; /* `held` is the next frame, waiting for its rank */
    sj_slice held;
    uint64_t held_position;
    unsigned in_flight[RANKS];
    sj_uplink_status status;
    Sojourn__Hello *about; /* the HELLO, unpacked: who the device is */
    sj_clock_offsets clocks;
    sj_clock_offset clock; /* to be told */
    bool clock_wanted;
    slot slots[MAX_WINDOW];
};

static void add_ms(struct timespec *time, int64_t ms)
{
    clock_gettime(CLOCK_MONOTONIC, time);
    time->tv_sec += ms / 1000;
    time->tv_nsec += ms % 1000 * 1000000;
    if (time->tv_nsec >= 1000000000) {
        time->tv_sec++;
        time->tv_nsec -= 1000000000;
    }
}

static bool has_passed(const struct timespec *time)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > time->tv_sec ||
           (now.tv_sec == time->tv_sec && now.tv_nsec >= time->tv_nsec);
}

static int64_t boottime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Runs on a thread of NNG. */
static void on_completion(void *argument)
{
    slot *done = argument;
    const int64_t received_ns = boottime_ns();
    int result = nng_aio_result(done->aio);
    if (result == 0 && !done->receiving) {
        done->receiving = true;
        nng_ctx_recv(done->context, done->aio);
        return;
    }
    if (!done->receiving) { /* the message was not taken */
        nng_msg_free(nng_aio_get_msg(done->aio));
        nng_aio_set_msg(done->aio, NULL);
    }
    sj_uplink *uplink = done->uplink;
    pthread_mutex_lock(&uplink->lock);
    done->answer = result == 0 ? nng_aio_get_msg(done->aio) : NULL;
    done->result = result;
    done->received_ns = received_ns;
    done->state = SLOT_DONE;
    pthread_cond_broadcast(&uplink->changed);
    pthread_mutex_unlock(&uplink->lock);
}

/* Runs on a thread of NNG: each new connection begins with HELLO. */
static void on_connection(nng_pipe pipe, nng_pipe_ev event, void *argument)
{
    (void)pipe;
    (void)event;
    sj_uplink *uplink = argument;
    pthread_mutex_lock(&uplink->lock);
    uplink->hello_wanted = true;
    uplink->connections++;
    pthread_cond_broadcast(&uplink->changed);
    pthread_mutex_unlock(&uplink->lock);
}

static void on_disconnection(nng_pipe pipe, nng_pipe_ev event, void *argument)
{
    (void)pipe;
    (void)event;
    sj_uplink *uplink = argument;
    pthread_mutex_lock(&uplink->lock);
    uplink->connections--;
    if (uplink->connections == 0 && uplink->status.state != SJ_UPLINK_REFUSED) {
        uplink->status.state = SJ_UPLINK_CONNECTING;
    }
    pthread_mutex_unlock(&uplink->lock);
}

static frame_rank rank_of(sj_slice frame)
{
    sj_reader reader = sj_reader_of(frame.data, frame.size);
    sj_reader_take(&reader, 6);
    switch (sj_read_u16(&reader)) {
    case SJ_FRAME_SESSION:
        return RANK_SESSION;
    case SJ_FRAME_BLOCK:
    case SJ_FRAME_SESSION_END:
        return RANK_BLOCK;
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
        if (uplink->slots[i].state == SLOT_IDLE) {
            return &uplink->slots[i];
        }
    }
    return NULL;
}

static sj_status send_frame(sj_uplink *uplink, slot *idle, sj_slice frame, frame_rank rank,
                            uint64_t position)
{
    nng_msg *message = NULL;
    if (nng_msg_alloc(&message, 0) != 0) {
        return SJ_ENOMEM;
    }
    if (nng_msg_append(message, frame.data, frame.size) != 0) {
        nng_msg_free(message);
        return SJ_ENOMEM;
    }
    idle->state = SLOT_BUSY;
    idle->receiving = false;
    idle->rank = rank;
    idle->position = position;
    idle->sent_ns = boottime_ns();
    uplink->in_flight[rank]++;
    nng_aio_set_msg(idle->aio, message);
    pthread_mutex_unlock(&uplink->lock); /* a completion may run within the call */
    nng_ctx_send(idle->context, idle->aio);
    pthread_mutex_lock(&uplink->lock);
    return SJ_OK;
}

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
    add_ms(&uplink->resume, uplink->pause_ms);
}

static bool is_final_rejection(sj_status status)
{
    return status == SJ_ECORRUPT || status == SJ_EINVAL || status == SJ_ELIMIT ||
           status == SJ_EEXIST || status == SJ_EUNSUPPORTED;
}

static void reject(sj_uplink *uplink, uint64_t position)
{
    if (sj_spool_reject(uplink->spool, position) == SJ_OK) {
        uplink->status.rejected_frames++;
    }
}

/* Takes in what the collector says about one frame of the spool. */
static void take_verdict(sj_uplink *uplink, const slot *done, const Sojourn__Ack *ack)
{
    const sj_status status = (sj_status)ack->status;
    if (status == SJ_OK) {
        uplink->pause_ms = 0;
        uplink->status.state = SJ_UPLINK_SENDING;
        if (sj_spool_acknowledge(uplink->spool, done->position) != SJ_OK) {
            set_message(uplink, "cannot write the spool's ledger; frames may be sent again");
        }
        uplink->status.acknowledged_frames++;
        return;
    }
    set_message(uplink, ack->message);
    if (is_final_rejection(status)) {
        reject(uplink, done->position);
        return;
    }
    if (status == SJ_EPERM || status == SJ_EVERSION) {
        uplink->status.state = SJ_UPLINK_REFUSED;
    } else if (status == SJ_ENOTFOUND) {
        const bool same = uplink->unknown_position == done->position;
        uplink->unknown_tries = same ? uplink->unknown_tries + 1 : 1;
        uplink->unknown_position = done->position;
        if (uplink->unknown_tries > UNKNOWN_REFERENCE_TRIES) {
            uplink->unknown_tries = 0;
            reject(uplink, done->position);
            return;
        }
    } else if (uplink->status.state != SJ_UPLINK_REFUSED) {
        uplink->status.state = SJ_UPLINK_WAITING;
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

/* Offsets come with every answer; one that the lab did not get is made up for by a later one. */
static void take_times(sj_uplink *uplink, const slot *done, const Sojourn__Ack *ack)
{
    const sj_clock_exchange exchange = {.sent_ns = done->sent_ns,
                                        .lab_received_ns = (int64_t)ack->received_realtime_ns,
                                        .lab_sent_ns = (int64_t)ack->sent_realtime_ns,
                                        .received_ns = done->received_ns};
    if (sj_clock_offsets_take(&uplink->clocks, &exchange, &uplink->clock)) {
        uplink->clock_wanted = uplink->about->boot_id[0] != '\0';
    }
}

static void take_ack(sj_uplink *uplink, const slot *done, const Sojourn__Ack *ack)
{
    take_times(uplink, done, ack);
    if (done->rank == RANK_CLOCK) {
        return; /* a lab that knows no such frame does without */
    }
    uplink->window = ack->window < uplink->window_max ? ack->window : uplink->window_max;
    if (done->rank == RANK_HELLO) {
        take_hello_verdict(uplink, ack);
    } else {
        take_verdict(uplink, done, ack);
    }
    if (uplink->window == 0 && uplink->status.state != SJ_UPLINK_REFUSED) {
        uplink->status.state = SJ_UPLINK_WAITING;
    }
    if ((uplink->window == 0 || uplink->rewind) &&
        (uplink->pause_ms == 0 || has_passed(&uplink->resume))) {
        begin_pause(uplink);
    }
}

/* The answer could not be had or read: the frame will be sent again. */
static void take_failure(sj_uplink *uplink, const slot *done, const char *why)
{
    set_message(uplink, why);
    if (done->rank == RANK_HELLO) {
        uplink->hello_wanted = true;
    } else if (done->rank != RANK_CLOCK) {
        uplink->rewind = true;
        uplink->status.resent_frames++;
    }
    begin_pause(uplink);
}

static void take_answer(sj_uplink *uplink, slot *done)
{
    nng_msg *message = done->answer;
    done->answer = NULL;
    done->state = SLOT_IDLE;
    uplink->in_flight[done->rank]--;
    if (message == NULL) {
        take_failure(uplink, done, nng_strerror(done->result));
        return;
    }
    sj_frame_view view;
    const sj_slice bytes = {.data = nng_msg_body(message), .size = nng_msg_len(message)};
    const sj_status status = sj_frame_read(bytes, &view);
    Sojourn__Ack *ack = NULL;
    if (status == SJ_OK && view.type == SJ_FRAME_ACK) {
        ack = sojourn__ack__unpack(NULL, view.header.size, view.header.data);
    }
    if (ack != NULL) {
        take_ack(uplink, done, ack);
        sojourn__ack__free_unpacked(ack, NULL);
    } else if (status == SJ_EVERSION) {
        uplink->status.state = SJ_UPLINK_REFUSED;
        set_message(uplink, "the collector speaks another major version");
    } else {
        take_failure(uplink, done, "the collector's answer cannot be read");
    }
    nng_msg_free(message);
}

static void collect_answers(sj_uplink *uplink)
{
    for (uint32_t i = 0; i < uplink->window_max; ++i) {
        if (uplink->slots[i].state == SLOT_DONE) {
            take_answer(uplink, &uplink->slots[i]);
        }
    }
    if (uplink->rewind && count_in_flight(uplink) == 0) {
        uplink->rewind = false;
        uplink->held_back = false;
        sj_spool_rewind(uplink->spool);
    }
}

/* Gets the next frame of the spool into `held`; false when there is none now. */
static bool hold_next(sj_uplink *uplink)
{
    while (!uplink->held_back) {
        const sj_status status =
            sj_spool_next(uplink->spool, &uplink->held, &uplink->held_position);
        if (status == SJ_ECORRUPT) {
            continue;
        }
        if (status != SJ_OK) {
            if (status != SJ_EAGAIN) {
                set_message(uplink, "cannot read the spool");
                begin_pause(uplink);
            }
            return false;
        }
        uplink->held_back = true;
    }
    return true;
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
    if (uplink->pause_ms != 0 && !has_passed(&uplink->resume)) {
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
        uplink->held_back = false;
    }
}

static void wait_for_change(sj_uplink *uplink)
{
    for (uint32_t i = 0; i < uplink->window_max; ++i) {
        if (uplink->slots[i].state == SLOT_DONE) {
            return;
        }
    }
    if (uplink->stopping || uplink->woken) {
        return;
    }
    if (uplink->pause_ms != 0 && !has_passed(&uplink->resume)) {
        pthread_cond_timedwait(&uplink->changed, &uplink->lock, &uplink->resume);
    } else {
        pthread_cond_wait(&uplink->changed, &uplink->lock);
    }
}

static void *run(void *argument)
{
    sj_uplink *uplink = argument;
    pthread_mutex_lock(&uplink->lock);
    while (!uplink->stopping) {
        uplink->woken = false;
        collect_answers(uplink);
        send_what_may(uplink);
        sj_spool_counters counters;
        sj_spool_get_counters(uplink->spool, &counters);
        uplink->idle = counters.pending_bytes == 0 && count_in_flight(uplink) == 0;
        pthread_cond_broadcast(&uplink->changed);
        wait_for_change(uplink);
    }
    pthread_mutex_unlock(&uplink->lock);
    return NULL;
}

static int open_socket(sj_uplink *uplink, const sj_uplink_options *options)
{
    const uint32_t resend_ms = options->resend_ms != 0 ? options->resend_ms : DEFAULT_RESEND_MS;
    int result = nng_req0_open(&uplink->socket);
    if (result != 0) {
        return result;
    }
    if ((result = nng_socket_set_size(uplink->socket, NNG_OPT_RECVMAXSZ, ACK_MAX_BYTES)) != 0 ||
        (result = nng_socket_set_ms(uplink->socket, NNG_OPT_RECONNMINT, RECONNECT_MIN_MS)) != 0 ||
        (result = nng_socket_set_ms(uplink->socket, NNG_OPT_RECONNMAXT, RECONNECT_MAX_MS)) != 0 ||
        (result = nng_pipe_notify(uplink->socket, NNG_PIPE_EV_ADD_POST, on_connection, uplink)) !=
            0 ||
        (result = nng_pipe_notify(uplink->socket, NNG_PIPE_EV_REM_POST, on_disconnection,
                                  uplink)) != 0) {
        return result;
    }
    for (uint32_t i = 0; i < uplink->window_max; ++i) {
        slot *made = &uplink->slots[i];
        made->uplink = uplink;
        if ((result = nng_ctx_open(&made->context, uplink->socket)) != 0 ||
            (result = nng_ctx_set_ms(made->context, NNG_OPT_REQ_RESENDTIME,
                                     (nng_duration)resend_ms)) != 0 ||
            (result = nng_aio_alloc(&made->aio, on_completion, made)) != 0) {
            return result;
        }
        nng_aio_set_timeout(made->aio, NNG_DURATION_INFINITE);
    }
    return sj_dial(uplink->socket, options->url, options->certificate);
}

static void free_uplink(sj_uplink *uplink)
{
    nng_close(uplink->socket);
    for (uint32_t i = 0; i < uplink->window_max; ++i) {
        slot *used = &uplink->slots[i];
        if (used->aio != NULL) {
            nng_aio_stop(used->aio);
            nng_aio_free(used->aio);
        }
        if (used->answer != NULL) {
            nng_msg_free(used->answer);
        }
    }
    pthread_cond_destroy(&uplink->changed);
    pthread_mutex_destroy(&uplink->lock);
    sojourn__hello__free_unpacked(uplink->about, NULL);
    free(uplink->hello);
    free(uplink);
}

sj_status sj_uplink_start(sj_spool *spool, const sj_uplink_options *options, sj_uplink **uplink,
                          sj_error *error)
{
    sj_frame_view hello;
    if (options->url == NULL || sj_frame_read(options->hello, &hello) != SJ_OK ||
        hello.type != SJ_FRAME_HELLO) {
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
    pthread_mutex_init(&made->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&made->changed, &clock);
    pthread_condattr_destroy(&clock);
    sj_spool_rewind(spool);
    const int result = open_socket(made, options);
    if (result != 0) {
        sj_fail(error, SJ_EIO, "cannot dial %s: %s", options->url, nng_strerror(result));
        free_uplink(made);
        return SJ_EIO;
    }
    if (pthread_create(&made->thread, NULL, run, made) != 0) {
        free_uplink(made);
        return sj_fail(error, SJ_EIO, "cannot start the uplink's thread");
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

void sj_uplink_release(sj_uplink *uplink)
{
    pthread_mutex_lock(&uplink->lock);
    uplink->waits = false;
    uplink->woken = true;
    uplink->idle = false;
    pthread_cond_broadcast(&uplink->changed);
    pthread_mutex_unlock(&uplink->lock);
}

void sj_uplink_wake(sj_uplink *uplink)
{
    pthread_mutex_lock(&uplink->lock);
    uplink->woken = true;
    uplink->idle = false;
    pthread_cond_broadcast(&uplink->changed);
    pthread_mutex_unlock(&uplink->lock);
}

sj_status sj_uplink_drain(sj_uplink *uplink, int64_t timeout_ms)
{
    struct timespec deadline;
    add_ms(&deadline, timeout_ms < 0 ? 0 : timeout_ms);
    sj_status status = SJ_OK;
    pthread_mutex_lock(&uplink->lock);
    uplink->woken = true;
    uplink->idle = false;
    pthread_cond_broadcast(&uplink->changed);
    while (!uplink->idle && status == SJ_OK) {
        if (uplink->status.state == SJ_UPLINK_REFUSED) {
            status = SJ_EPERM;
        } else if (timeout_ms < 0) {
            pthread_cond_wait(&uplink->changed, &uplink->lock);
        } else if (pthread_cond_timedwait(&uplink->changed, &uplink->lock, &deadline) != 0) {
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
    pthread_cond_broadcast(&uplink->changed);
    pthread_mutex_unlock(&uplink->lock);
    pthread_join(uplink->thread, NULL);
    free_uplink(uplink);
}
