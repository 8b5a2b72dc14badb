/* Design notes
 *
 * NNG's threads only note that a question has ended, and wake the waiting thread. A slot is one REQ
 * context with one asynchronous operation: send, then (from the completion of the send) receive. A
 * running operation is never cancelled while the channel is open: NNG 1.5.2 can crash if a receive
 * is cancelled while its send is queued. REQ itself repeats a question after `resend_ms`, or if the
 * connection breaks, to the next peer that replies. The socket is closed only when no context is in
 * use. Otherwise the call that uses a context would destroy the context after it has released the
 * socket. That call would lock a freed mutex, and NNG would end the process ("panic:
 * pthread_mutex_lock: Invalid argument").
 *
 * If NNG does not close the socket (socket_close.h), the whole channel is leaked, because NNG's
 * threads may still use it. */
#include "agent/uplink/nng_channel.h"

#include "agent/uplink/dial.h"
#include "agent/uplink/socket_close.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <pthread.h>
#include <stdlib.h>

enum { RECONNECT_MIN_MS = 100, RECONNECT_MAX_MS = 5000 };

typedef enum slot_state { SLOT_IDLE, SLOT_BUSY, SLOT_DONE } slot_state;

typedef struct slot {
    sj_channel *channel;
    nng_ctx context;
    nng_aio *aio;
    bool receiving;
    slot_state state;
    int64_t received_ns;
    int result; /* Result of NNG, once DONE. */
    nng_msg *reply;
} slot;

struct sj_channel {
    nng_socket socket;
    sj_dialing dialing;
    uint32_t slot_count;
    nng_msg *last_reply;   /* The reply that was returned last. */
    pthread_mutex_t mutex; /* Protects all members below. */
    pthread_cond_t changed;
    bool woken;
    bool is_closing;
    unsigned using_contexts; /* Threads of NNG that are in a call with a context. */
    int connections;
    uint64_t connected, replies; /* See sj_dialing_state. */
    nng_pipe pipe;
    bool is_connected_unreported;
    bool is_disconnected_unreported;
    slot slots[SJ_CHANNEL_SLOTS];
};

static int64_t boottime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Waits for the reply. Returns false if the channel is being closed. */
static bool receive(slot *sent)
{
    sj_channel *channel = sent->channel; /* The slot may have its next question before we return. */
    pthread_mutex_lock(&channel->mutex);
    const bool may_use = !channel->is_closing;
    channel->using_contexts += may_use;
    sent->receiving = may_use;
    pthread_mutex_unlock(&channel->mutex);
    if (!may_use) {
        return false;
    }
    nng_ctx_recv(sent->context, sent->aio);
    pthread_mutex_lock(&channel->mutex);
    channel->using_contexts--;
    if (channel->is_closing) {
        pthread_cond_signal(&channel->changed);
    }
    pthread_mutex_unlock(&channel->mutex);
    return true;
}

static void leave_contexts(sj_channel *channel)
{
    pthread_mutex_lock(&channel->mutex);
    channel->is_closing = true;
    while (channel->using_contexts != 0) {
        pthread_cond_wait(&channel->changed, &channel->mutex);
    }
    pthread_mutex_unlock(&channel->mutex);
}

/* Runs on a thread of NNG. */
static void on_completion(void *argument)
{
    slot *done = argument;
    const int64_t received_ns = boottime_ns();
    int result = nng_aio_result(done->aio);
    if (result != 0 && !done->receiving) { /* NNG did not accept the message. */
        nng_msg_free(nng_aio_get_msg(done->aio));
        nng_aio_set_msg(done->aio, NULL);
    } else if (!done->receiving) {
        if (receive(done)) {
            return;
        }
        result = NNG_ECLOSED;
    }
    sj_channel *channel = done->channel;
    pthread_mutex_lock(&channel->mutex);
    done->reply = result == 0 ? nng_aio_get_msg(done->aio) : NULL;
    done->result = result;
    done->received_ns = received_ns;
    done->state = SLOT_DONE;
    channel->replies += result == 0;
    pthread_cond_signal(&channel->changed);
    pthread_mutex_unlock(&channel->mutex);
}

/* Runs on a thread of NNG. So does on_disconnection. */
static void on_connection(nng_pipe pipe, nng_pipe_ev event, void *argument)
{
    (void)event;
    sj_channel *channel = argument;
    pthread_mutex_lock(&channel->mutex);
    channel->connections++;
    channel->connected++;
    channel->pipe = pipe;
    channel->is_connected_unreported = true;
    pthread_cond_signal(&channel->changed);
    pthread_mutex_unlock(&channel->mutex);
}

static void on_disconnection(nng_pipe pipe, nng_pipe_ev event, void *argument)
{
    (void)pipe;
    (void)event;
    sj_channel *channel = argument;
    pthread_mutex_lock(&channel->mutex);
    channel->connections--;
    if (channel->connections == 0) {
        channel->is_disconnected_unreported = true;
    }
    pthread_cond_signal(&channel->changed);
    pthread_mutex_unlock(&channel->mutex);
}

static int open_socket(sj_channel *channel, const sj_channel_options *options)
{
    int result = nng_req0_open(&channel->socket);
    if (result != 0) {
        return result;
    }
    if ((result = nng_socket_set_size(channel->socket, NNG_OPT_RECVMAXSZ,
                                      SJ_CHANNEL_REPLY_BYTES)) != 0 ||
        (result = nng_socket_set_ms(channel->socket, NNG_OPT_RECONNMINT, RECONNECT_MIN_MS)) != 0 ||
        (result = nng_socket_set_ms(channel->socket, NNG_OPT_RECONNMAXT, RECONNECT_MAX_MS)) != 0 ||
        (result = nng_pipe_notify(channel->socket, NNG_PIPE_EV_ADD_POST, on_connection, channel)) !=
            0 ||
        (result = nng_pipe_notify(channel->socket, NNG_PIPE_EV_REM_POST, on_disconnection,
                                  channel)) != 0) {
        return result;
    }
    for (uint32_t i = 0; i < channel->slot_count; ++i) {
        slot *made = &channel->slots[i];
        made->channel = channel;
        if ((result = nng_ctx_open(&made->context, channel->socket)) != 0 ||
            (result = nng_ctx_set_ms(made->context, NNG_OPT_REQ_RESENDTIME,
                                     (nng_duration)options->resend_ms)) != 0 ||
            (result = nng_aio_alloc(&made->aio, on_completion, made)) != 0) {
            return result;
        }
        nng_aio_set_timeout(made->aio, NNG_DURATION_INFINITE);
    }
    return sj_dialing_start(&channel->dialing, channel->socket, options->url, options->certificate);
}

static void close_channel(sj_channel *channel)
{
    leave_contexts(channel);
    if (!sj_socket_close(channel->socket)) {
        return;
    }
    sj_dialing_deinit(&channel->dialing);
    for (uint32_t i = 0; i < channel->slot_count; ++i) {
        slot *used = &channel->slots[i];
        if (used->aio != NULL) {
            nng_aio_stop(used->aio);
            nng_aio_free(used->aio);
        }
        if (used->reply != NULL) {
            nng_msg_free(used->reply);
        }
    }
    if (channel->last_reply != NULL) {
        nng_msg_free(channel->last_reply);
    }
    pthread_cond_destroy(&channel->changed);
    pthread_mutex_destroy(&channel->mutex);
    free(channel);
}

static sj_status open_channel(const sj_channel_options *options, sj_channel **channel,
                              sj_error *error)
{
    sj_channel *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    made->slot_count = options->slots < SJ_CHANNEL_SLOTS ? options->slots : SJ_CHANNEL_SLOTS;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&made->changed, &clock);
    pthread_condattr_destroy(&clock);
    const int result = open_socket(made, options);
    if (result != 0) {
        sj_fail(error, SJ_EIO, "cannot dial %s: %s", options->url, nng_strerror(result));
        close_channel(made);
        return SJ_EIO;
    }
    *channel = made;
    return SJ_OK;
}

static sj_status ask(sj_channel *channel, uint32_t number, sj_slice question)
{
    slot *idle = &channel->slots[number];
    nng_msg *message = NULL;
    if (nng_msg_alloc(&message, 0) != 0) {
        return SJ_ENOMEM;
    }
    if (nng_msg_append(message, question.data, question.size) != 0) {
        nng_msg_free(message);
        return SJ_ENOMEM;
    }
    pthread_mutex_lock(&channel->mutex);
    idle->state = SLOT_BUSY;
    idle->receiving = false;
    /* Unlocked because a completion may run within the call. */
    pthread_mutex_unlock(&channel->mutex);
    nng_aio_set_msg(idle->aio, message);
    nng_ctx_send(idle->context, idle->aio);
    return SJ_OK;
}

static void report_done(sj_channel *channel, slot *done, sj_channel_event *event)
{
    *event =
        (sj_channel_event){.type = SJ_CHANNEL_FAILED, .slot = (uint32_t)(done - channel->slots)};
    if (done->reply != NULL) {
        channel->last_reply = done->reply;
        event->type = SJ_CHANNEL_REPLIED;
        event->received_ns = done->received_ns;
        event->reply = (sj_slice){.data = nng_msg_body(channel->last_reply),
                                  .size = nng_msg_len(channel->last_reply)};
    } else {
        event->why = nng_strerror(done->result);
    }
    done->reply = NULL;
    done->state = SLOT_IDLE;
}

static bool next_event(sj_channel *channel, sj_channel_event *event)
{
    bool found = true;
    if (channel->last_reply != NULL) {
        nng_msg_free(channel->last_reply);
        channel->last_reply = NULL;
    }
    pthread_mutex_lock(&channel->mutex);
    slot *done = channel->slots;
    if (channel->is_disconnected_unreported) {
        channel->is_disconnected_unreported = false;
        *event = (sj_channel_event){.type = SJ_CHANNEL_DISCONNECTED};
    } else if (channel->is_connected_unreported) {
        channel->is_connected_unreported = false;
        *event = (sj_channel_event){.type = SJ_CHANNEL_CONNECTED};
    } else {
        while (done < channel->slots + channel->slot_count && done->state != SLOT_DONE) {
            done++;
        }
        found = done < channel->slots + channel->slot_count;
        if (found) {
            report_done(channel, done, event);
        }
    }
    pthread_mutex_unlock(&channel->mutex);
    return found;
}

static bool has_news(const sj_channel *channel)
{
    bool found =
        channel->woken || channel->is_connected_unreported || channel->is_disconnected_unreported;
    for (uint32_t i = 0; i < channel->slot_count && !found; ++i) {
        found = channel->slots[i].state == SLOT_DONE;
    }
    return found;
}

/* Waits for an event until `until_ns`. Returns false if there was none. */
static bool wait_until(sj_channel *channel, int64_t until_ns)
{
    const struct timespec until = {.tv_sec = until_ns / 1000000000,
                                   .tv_nsec = until_ns % 1000000000};
    int result = 0;
    pthread_mutex_lock(&channel->mutex);
    bool found = has_news(channel);
    while (result == 0 && !found) {
        result = until_ns != INT64_MAX
                     ? pthread_cond_timedwait(&channel->changed, &channel->mutex, &until)
                     : pthread_cond_wait(&channel->changed, &channel->mutex);
        found = has_news(channel);
    }
    channel->woken = false;
    pthread_mutex_unlock(&channel->mutex);
    return found;
}

static sj_dialing_state get_state(sj_channel *channel)
{
    pthread_mutex_lock(&channel->mutex);
    sj_dialing_state state = {.connections = channel->connections,
                              .connected = channel->connected,
                              .replies = channel->replies,
                              .pipe = channel->pipe};
    for (uint32_t i = 0; i < channel->slot_count && !state.is_asking; ++i) {
        state.is_asking = channel->slots[i].state == SLOT_BUSY;
    }
    pthread_mutex_unlock(&channel->mutex);
    return state;
}

static void wait_for_news(sj_channel *channel, const struct timespec *until)
{
    const int64_t end_ns =
        until != NULL ? (int64_t)until->tv_sec * 1000000000 + until->tv_nsec : INT64_MAX;
    bool is_over = false;
    while (!is_over) {
        const sj_dialing_state state = get_state(channel);
        const int64_t poll_ns = sj_dialing_poll(&channel->dialing, &state);
        is_over = wait_until(channel, poll_ns < end_ns ? poll_ns : end_ns) || end_ns <= poll_ns;
    }
}

static void wake(sj_channel *channel)
{
    pthread_mutex_lock(&channel->mutex);
    channel->woken = true;
    pthread_cond_signal(&channel->changed);
    pthread_mutex_unlock(&channel->mutex);
}

const sj_channel_kind sj_channel_nng = {.open = open_channel,
                                        .ask = ask,
                                        .next_event = next_event,
                                        .wait = wait_for_news,
                                        .wake = wake,
                                        .close = close_channel};
