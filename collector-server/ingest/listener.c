#include "collector-server/ingest/listener.h"

#include "agent/uplink/channel.h"
#include "agent/uplink/socket_close.h"
#include "proto/wire/frame.h"

#include <nng/protocol/reqrep0/rep.h>
#include <nng/supplemental/util/platform.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* REPLIES_WAITING is the size of NNG's send buffer. If the buffer stays full for
 * REPLY_TIMEOUT_MS, because NNG's threads get no CPU, answers are lost. Senders then ask again
 * only seconds later. */
enum { REPLY_TIMEOUT_MS = 100, LAST_REPLIES_MS = 20, REPLIES_WAITING = 4 * SJ_CHANNEL_SLOTS };

struct sj_listener {
    sj_edge *edge;
    sj_edge_verdict (*handle)(void *, sj_inbound *);
    void *context;
    nng_socket inproc;
    bool has_inproc;
    nng_aio *receive;
    pthread_t receiver;
    bool receiver_started;
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t changed;
    bool stopping, may_continue, receiver_done;
};

static sj_edge_verdict receive_from_edge(void *context, sj_edge_message *message)
{
    sj_listener *listener = context;
    sj_inbound inbound = {.edge = *message};
    return listener->handle(listener->context, &inbound);
}

/* Offers a message until `handle` accepts it. Returns false if the listener stops. */
static bool offer(sj_listener *listener, nng_msg *message)
{
    sj_inbound inbound = {
        .message = message,
        .edge = {.body = {.data = nng_msg_body(message), .size = nng_msg_len(message)}}};
    while (listener->handle(listener->context, &inbound) == SJ_EDGE_FULL) {
        pthread_mutex_lock(&listener->lock);
        while (!listener->may_continue && !listener->stopping) {
            pthread_cond_wait(&listener->changed, &listener->lock);
        }
        listener->may_continue = false;
        const bool stopping = listener->stopping;
        pthread_mutex_unlock(&listener->lock);
        if (stopping) {
            nng_msg_free(message);
            return false;
        }
    }
    return true;
}

static bool is_stopping(sj_listener *listener)
{
    pthread_mutex_lock(&listener->lock);
    const bool stopping = listener->stopping;
    pthread_mutex_unlock(&listener->lock);
    return stopping;
}

static void *receive_inproc(void *argument)
{
    sj_listener *listener = argument;
    bool may_continue = true;
    while (may_continue && !is_stopping(listener)) {
        nng_recv_aio(listener->inproc, listener->receive);
        nng_aio_wait(listener->receive);
        const int result = nng_aio_result(listener->receive);
        if (result == 0) {
            may_continue = offer(listener, nng_aio_get_msg(listener->receive));
        } else if (result != NNG_ECANCELED) {
            nng_msleep(10); /* out of memory or a similar error: do not spin */
        }
    }
    pthread_mutex_lock(&listener->lock);
    listener->receiver_done = true;
    pthread_mutex_unlock(&listener->lock);
    return NULL;
}

static sj_status start_inproc(sj_listener *listener, const char *const *urls, size_t count,
                              sj_error *error)
{
    int result = nng_rep0_open_raw(&listener->inproc);
    listener->has_inproc = result == 0;
    if (result == 0) {
        result = nng_socket_set_size(listener->inproc, NNG_OPT_RECVMAXSZ, SJ_FRAME_MAX_BYTES);
    }
    if (result == 0) {
        result = nng_socket_set_int(listener->inproc, NNG_OPT_SENDBUF, REPLIES_WAITING);
    }
    if (result == 0) {
        result = nng_socket_set_ms(listener->inproc, NNG_OPT_SENDTIMEO, REPLY_TIMEOUT_MS);
    }
    if (result == 0) {
        result = nng_aio_alloc(&listener->receive, NULL, NULL);
    }
    for (size_t i = 0; i < count && result == 0; i++) {
        if (!sj_endpoint_is_url(urls[i])) {
            result = nng_listen(listener->inproc, urls[i], NULL, 0);
        }
    }
    if (result != 0) {
        return sj_fail(error, SJ_EIO, "cannot open the collector's socket: %s",
                       nng_strerror(result));
    }
    nng_aio_set_timeout(listener->receive, NNG_DURATION_INFINITE);
    if (pthread_create(&listener->receiver, NULL, receive_inproc, listener) != 0) {
        return sj_fail(error, SJ_EIO, "cannot start the ingest's threads");
    }
    pthread_setname_np(listener->receiver, "ingest:receive");
    listener->receiver_started = true;
    return SJ_OK;
}

static sj_status start_all(sj_listener *listener, const sj_listener_options *options,
                           sj_error *error)
{
    const char **urls = calloc(options->url_count + 1, sizeof(*urls));
    sj_edge_options edge = {.urls = urls,
                            .certificate = options->certificate,
                            .key = options->key,
                            .limits = options->limits,
                            .handle = receive_from_edge,
                            .context = listener};
    bool has_inproc = false;
    if (urls == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for listeners");
    }
    for (size_t i = 0; i < options->url_count; i++) {
        if (strncmp(options->urls[i], "inproc://", 9) == 0) {
            has_inproc = true;
        } else {
            urls[edge.url_count++] = options->urls[i];
        }
    }
    sj_status status = SJ_OK;
    if (edge.url_count > 0) {
        status = sj_edge_start(&edge, &listener->edge, error);
    }
    if (status == SJ_OK && has_inproc) {
        status = start_inproc(listener, options->urls, options->url_count, error);
    }
    free(urls);
    return status;
}

sj_status sj_listener_start(const sj_listener_options *options, sj_listener **listener,
                            sj_error *error)
{
    sj_listener *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for listeners");
    }
    made->handle = options->handle;
    made->context = options->context;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->changed, NULL);
    /* Set before messages can arrive, because `handle` may want to answer. */
    *listener = made;
    const sj_status status = start_all(made, options, error);
    if (status != SJ_OK) {
        *listener = NULL;
        sj_listener_stop(made);
    }
    return status;
}

sj_edge *sj_listener_edge(sj_listener *listener)
{
    return listener->edge;
}

void sj_listener_reply(sj_listener *listener, sj_inbound *inbound, sj_slice reply, bool is_last)
{
    if (inbound->message == NULL) {
        sj_edge_reply(listener->edge, &inbound->edge, reply, is_last);
        return;
    }
    nng_msg_clear(inbound->message);
    if (nng_msg_append(inbound->message, reply.data, reply.size) == 0 &&
        nng_sendmsg(listener->inproc, inbound->message, 0) == 0) {
        inbound->message = NULL; /* NNG owns it now */
    }
}

void sj_listener_free_message(sj_inbound *inbound)
{
    if (inbound->message != NULL) {
        nng_msg_free(inbound->message);
    }
    free(inbound->edge.memory);
    inbound->message = NULL;
    inbound->edge.memory = NULL;
    inbound->edge.body = (sj_slice){0};
}

void sj_listener_flush(sj_listener *listener)
{
    if (listener->edge != NULL) {
        sj_edge_flush(listener->edge);
    }
}

void sj_listener_resume(sj_listener *listener)
{
    pthread_mutex_lock(&listener->lock);
    listener->may_continue = true;
    pthread_cond_signal(&listener->changed);
    pthread_mutex_unlock(&listener->lock);
    if (listener->edge != NULL) {
        sj_edge_resume(listener->edge);
    }
}

void sj_listener_pause(sj_listener *listener)
{
    bool done = !listener->receiver_started;
    pthread_mutex_lock(&listener->lock);
    listener->stopping = true;
    pthread_cond_signal(&listener->changed);
    pthread_mutex_unlock(&listener->lock);
    /* a cancel is lost if the thread has not started to receive yet, so repeat it */
    while (!done) {
        nng_aio_cancel(listener->receive);
        nng_msleep(1);
        pthread_mutex_lock(&listener->lock);
        done = listener->receiver_done;
        pthread_mutex_unlock(&listener->lock);
    }
    if (listener->receiver_started) {
        pthread_join(listener->receiver, NULL);
        listener->receiver_started = false;
    }
}

void sj_listener_stop(sj_listener *listener)
{
    if (listener == NULL) {
        return;
    }
    sj_listener_pause(listener);
    sj_edge_stop(listener->edge);
    if (listener->has_inproc) {
        nng_msleep(LAST_REPLIES_MS); /* gives NNG time to send the last replies */
        if (!sj_socket_close(listener->inproc)) {
            return; /* NNG's threads may use the listener for ever */
        }
    }
    if (listener->receive != NULL) {
        nng_aio_free(listener->receive);
    }
    pthread_cond_destroy(&listener->changed);
    pthread_mutex_destroy(&listener->lock);
    free(listener);
}
