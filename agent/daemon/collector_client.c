#include "agent/daemon/collector_client.h"

#include "agent/uplink/dial.h"
#include "agent/uplink/socket_close.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* RESEND_MS is longer than any reply takes. NNG repeats a request by itself if a connection breaks.
 * NNG ends a request after its timeout, and GRACE_MS is how late it may do so. */
enum {
    RESEND_MS = 60000,
    RECONNECT_MIN_MS = 500,
    RECONNECT_MAX_MS = 30000,
    GRACE_MS = 10000,
    REPLY_BYTES = 1 << 17
};

struct sj_server_client {
    nng_socket socket;
    sj_dialing dialing;
    nng_aio *aio; /* The request in progress. */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_done; /* True once `aio` is done. */
    int connections;
    uint64_t connected; /* See sj_dialing_state. */
    nng_pipe pipe;      /* See sj_dialing_state. The mutex protects the members above. */
    uint64_t replies;   /* See sj_dialing_state. Only the asking thread uses it. */
    /* True if NNG did not close its socket or end a request in time. */
    atomic_bool is_stuck;
};

/* Runs on a thread of NNG. So does on_connection. */
static void on_completion(void *argument)
{
    sj_server_client *client = argument;
    pthread_mutex_lock(&client->mutex);
    client->is_done = true;
    pthread_cond_signal(&client->changed);
    pthread_mutex_unlock(&client->mutex);
}

static void on_connection(nng_pipe pipe, nng_pipe_ev event, void *argument)
{
    sj_server_client *client = argument;
    pthread_mutex_lock(&client->mutex);
    client->connections += event == NNG_PIPE_EV_ADD_POST ? 1 : -1;
    client->connected += event == NNG_PIPE_EV_ADD_POST;
    client->pipe = event == NNG_PIPE_EV_ADD_POST ? pipe : client->pipe;
    pthread_cond_signal(&client->changed);
    pthread_mutex_unlock(&client->mutex);
}

static int open_socket(sj_server_client *client, const char *url, const char *certificate)
{
    int result = nng_req0_open(&client->socket);
    if (result == 0) {
        result = nng_aio_alloc(&client->aio, on_completion, client);
    }
    if (result == 0 &&
        (result = nng_socket_set_size(client->socket, NNG_OPT_RECVMAXSZ, REPLY_BYTES)) == 0 &&
        (result = nng_socket_set_ms(client->socket, NNG_OPT_RECONNMINT, RECONNECT_MIN_MS)) == 0 &&
        (result = nng_socket_set_ms(client->socket, NNG_OPT_RECONNMAXT, RECONNECT_MAX_MS)) == 0 &&
        (result = nng_socket_set_ms(client->socket, NNG_OPT_REQ_RESENDTIME, RESEND_MS)) == 0 &&
        (result = nng_pipe_notify(client->socket, NNG_PIPE_EV_ADD_POST, on_connection, client)) ==
            0 &&
        (result = nng_pipe_notify(client->socket, NNG_PIPE_EV_REM_POST, on_connection, client)) ==
            0) {
        result = sj_dialing_start(&client->dialing, client->socket, url, certificate);
    }
    return result;
}

sj_status sj_server_client_open(const char *url, const char *certificate, sj_server_client **client,
                                sj_error *error)
{
    sj_server_client *made = calloc(1, sizeof(*made));
    pthread_condattr_t clock;
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    pthread_mutex_init(&made->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&made->changed, &clock);
    pthread_condattr_destroy(&clock);
    const int result = open_socket(made, url, certificate);
    if (result != 0) {
        sj_server_client_close(made);
        return sj_fail(error, SJ_EIO, "cannot dial %s: %s", url, nng_strerror(result));
    }
    *client = made;
    return SJ_OK;
}

void sj_server_client_stop(sj_server_client *client)
{
    if (client->is_stuck || sj_socket_close(client->socket)) {
        return;
    }
    /* NNG does not end the current request, so its thread has to stop waiting. */
    pthread_mutex_lock(&client->mutex);
    client->is_stuck = true;
    pthread_cond_signal(&client->changed);
    pthread_mutex_unlock(&client->mutex);
}

bool sj_server_client_is_stuck(const sj_server_client *client)
{
    return client->is_stuck;
}

void sj_server_client_close(sj_server_client *client)
{
    if (client == NULL) {
        return;
    }
    sj_server_client_stop(client);
    if (client->is_stuck) {
        return; /* Leaked, because NNG's threads may still use the client. */
    }
    if (client->aio != NULL) {
        nng_aio_stop(client->aio);
        nng_aio_free(client->aio);
    }
    sj_dialing_deinit(&client->dialing);
    pthread_cond_destroy(&client->changed);
    pthread_mutex_destroy(&client->mutex);
    free(client);
}

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Waits until `aio` is done or the client is stuck, and redials meanwhile if necessary. Returns
 * NNG's result. NNG without memory may lose an operation and its timer: then the client is
 * stuck. */
static int await(sj_server_client *client, int timeout_ms)
{
    const int64_t over_ns = monotonic_ns() + (timeout_ms + GRACE_MS) * INT64_C(1000000);
    pthread_mutex_lock(&client->mutex);
    while (!client->is_done) {
        if (client->is_stuck || monotonic_ns() > over_ns) {
            client->is_stuck = true;
            pthread_mutex_unlock(&client->mutex);
            return NNG_EINTERNAL;
        }
        const sj_dialing_state state = {.connections = client->connections,
                                        .connected = client->connected,
                                        .replies = client->replies,
                                        .is_asking = true,
                                        .pipe = client->pipe};
        pthread_mutex_unlock(&client->mutex);
        const int64_t dial_poll_ns = sj_dialing_poll(&client->dialing, &state);
        const int64_t next_poll_ns = dial_poll_ns < over_ns ? dial_poll_ns : over_ns + 1;
        const struct timespec deadline = {.tv_sec = next_poll_ns / 1000000000,
                                          .tv_nsec = next_poll_ns % 1000000000};
        pthread_mutex_lock(&client->mutex);
        if (!client->is_done && !client->is_stuck && client->connections == state.connections &&
            client->connected == state.connected) {
            pthread_cond_timedwait(&client->changed, &client->mutex, &deadline);
        }
    }
    const int result = nng_aio_result(client->aio);
    client->is_done = false;
    pthread_mutex_unlock(&client->mutex);
    return result;
}

static sj_status read_reply(sj_slice bytes, sj_server_reply *reply, sj_error *error)
{
    sj_frame_view view;
    const sj_status status = sj_frame_read(bytes, &view);
    if (status != SJ_OK) {
        return sj_fail(error, status, "the collector's answer cannot be read: %s",
                       sj_status_text(status));
    }
    switch (view.type) {
    case SJ_FRAME_ACK:
        reply->ack = sojourn__ack__unpack(NULL, view.header.size, view.header.data);
        break;
    case SJ_FRAME_COMMAND:
        reply->command = sojourn__command__unpack(NULL, view.header.size, view.header.data);
        break;
    case SJ_FRAME_ENROLLED:
        reply->enrolled = sojourn__enrolled__unpack(NULL, view.header.size, view.header.data);
        break;
    case SJ_FRAME_PART:
        reply->payload = malloc(view.payload.size + 1);
        if (reply->payload == NULL) {
            return sj_fail(error, SJ_ENOMEM, "out of memory");
        }
        memcpy(reply->payload, view.payload.data, view.payload.size);
        reply->payload_bytes = view.payload.size;
        reply->part = sojourn__part__unpack(NULL, view.header.size, view.header.data);
        break;
    default:
        return sj_fail(error, SJ_ECORRUPT, "the collector's answer is of an unknown kind");
    }
    return reply->ack != NULL || reply->command != NULL || reply->enrolled != NULL ||
                   reply->part != NULL
               ? SJ_OK
               : sj_fail(error, SJ_ECORRUPT,
                         "the collector's reply is damaged, or memory is short");
}

sj_status sj_server_client_ask(sj_server_client *client, sj_slice frame, int timeout_ms,
                               sj_server_reply *reply, sj_error *error)
{
    nng_msg *message = NULL;
    *reply = (sj_server_reply){0};
    if (client->is_stuck) {
        return sj_fail(error, SJ_ECLOSED, "the connection to the collector hangs");
    }
    int result = nng_msg_alloc(&message, 0);
    if (result == 0 && (result = nng_msg_append(message, frame.data, frame.size)) != 0) {
        nng_msg_free(message);
    }
    if (result == 0) {
        nng_aio_set_timeout(client->aio, timeout_ms);
        nng_aio_set_msg(client->aio, message);
        nng_send_aio(client->socket, client->aio);
        result = await(client, timeout_ms);
        if (result != 0 && !client->is_stuck) {
            nng_msg_free(nng_aio_get_msg(client->aio));
        }
    }
    if (result == 0) {
        nng_recv_aio(client->socket, client->aio);
        result = await(client, timeout_ms);
        client->replies += result == 0;
    }
    if (result != 0) {
        return sj_fail(error, result == NNG_ETIMEDOUT ? SJ_ETIMEDOUT : SJ_ECLOSED,
                       "the collector does not answer: %s", nng_strerror(result));
    }
    message = nng_aio_get_msg(client->aio);
    const sj_slice bytes = {.data = nng_msg_body(message), .size = nng_msg_len(message)};
    const sj_status status = read_reply(bytes, reply, error);
    nng_msg_free(message);
    if (status != SJ_OK) {
        sj_server_reply_deinit(reply);
    }
    return status;
}

void sj_server_reply_deinit(sj_server_reply *reply)
{
    sojourn__ack__free_unpacked(reply->ack, NULL);
    sojourn__command__free_unpacked(reply->command, NULL);
    sojourn__enrolled__free_unpacked(reply->enrolled, NULL);
    sojourn__part__free_unpacked(reply->part, NULL);
    free(reply->payload);
    *reply = (sj_server_reply){0};
}

sj_status sj_server_client_frame(sj_frame_type type, const ProtobufCMessage *message,
                                 uint8_t **frame, size_t *size)
{
    const size_t header_bytes = protobuf_c_message_get_packed_size(message);
    const size_t capacity = header_bytes + SJ_FRAME_PREFIX_BYTES;
    uint8_t *header = malloc(header_bytes + 1);
    uint8_t *made = malloc(capacity);
    sj_status status = SJ_ENOMEM;
    if (header != NULL && made != NULL) {
        protobuf_c_message_pack(message, header);
        status = sj_frame_write((uint16_t)type, (sj_slice){.data = header, .size = header_bytes},
                                (sj_slice){0}, made, capacity, size);
    }
    free(header);
    if (status != SJ_OK) {
        free(made);
        return status;
    }
    *frame = made;
    return SJ_OK;
}

sj_status sj_server_client_retype(uint8_t *frame, size_t size, sj_frame_type type)
{
    sj_frame_view view;
    SJ_TRY(sj_frame_read((sj_slice){.data = frame, .size = size}, &view));
    if (view.payload.size != 0) {
        return SJ_EINVAL;
    }
    uint8_t *header = malloc(view.header.size + 1);
    if (header == NULL) {
        return SJ_ENOMEM;
    }
    memcpy(header, view.header.data, view.header.size);
    const sj_slice kept = {.data = header, .size = view.header.size};
    const sj_status status =
        sj_frame_write((uint16_t)type, kept, (sj_slice){0}, frame, size, &size);
    free(header);
    return status;
}
