#include "agent/daemon/lab_client.h"

#include "agent/uplink/dial.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any answer takes: NNG itself asks again when a connection breaks. */
enum {
    RESEND_MS = 60000,
    RECONNECT_MIN_MS = 500,
    RECONNECT_MAX_MS = 30000,
    ANSWER_BYTES = 1 << 17
};

struct sj_lab_client {
    nng_socket socket;
};

sj_status sj_lab_client_open(const char *url, const char *certificate, sj_lab_client **client,
                             sj_error *error)
{
    sj_lab_client *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    int result = nng_req0_open(&made->socket);
    if (result != 0) {
        free(made);
        return sj_fail(error, SJ_EIO, "cannot open a socket: %s", nng_strerror(result));
    }
    if ((result = nng_socket_set_size(made->socket, NNG_OPT_RECVMAXSZ, ANSWER_BYTES)) == 0 &&
        (result = nng_socket_set_ms(made->socket, NNG_OPT_RECONNMINT, RECONNECT_MIN_MS)) == 0 &&
        (result = nng_socket_set_ms(made->socket, NNG_OPT_RECONNMAXT, RECONNECT_MAX_MS)) == 0 &&
        (result = nng_socket_set_ms(made->socket, NNG_OPT_REQ_RESENDTIME, RESEND_MS)) == 0) {
        result = sj_dial(made->socket, url, certificate);
    }
    if (result != 0) {
        sj_lab_client_close(made);
        return sj_fail(error, SJ_EIO, "cannot dial %s: %s", url, nng_strerror(result));
    }
    *client = made;
    return SJ_OK;
}

void sj_lab_client_stop(sj_lab_client *client)
{
    nng_close(client->socket);
}

void sj_lab_client_close(sj_lab_client *client)
{
    if (client != NULL) {
        nng_close(client->socket);
        free(client);
    }
}

static sj_status read_answer(sj_slice bytes, sj_lab_answer *answer, sj_error *error)
{
    sj_frame_view view;
    const sj_status status = sj_frame_read(bytes, &view);
    if (status != SJ_OK) {
        return sj_fail(error, status, "the lab's answer cannot be read: %s",
                       sj_status_text(status));
    }
    switch (view.type) {
    case SJ_FRAME_ACK:
        answer->ack = sojourn__ack__unpack(NULL, view.header.size, view.header.data);
        break;
    case SJ_FRAME_COMMAND:
        answer->command = sojourn__command__unpack(NULL, view.header.size, view.header.data);
        break;
    case SJ_FRAME_ENROLLED:
        answer->enrolled = sojourn__enrolled__unpack(NULL, view.header.size, view.header.data);
        break;
    case SJ_FRAME_PART:
        answer->payload = malloc(view.payload.size + 1);
        if (answer->payload == NULL) {
            return sj_fail(error, SJ_ENOMEM, "out of memory");
        }
        memcpy(answer->payload, view.payload.data, view.payload.size);
        answer->payload_bytes = view.payload.size;
        answer->part = sojourn__part__unpack(NULL, view.header.size, view.header.data);
        break;
    default:
        break;
    }
    return answer->ack != NULL || answer->command != NULL || answer->enrolled != NULL ||
                   answer->part != NULL
               ? SJ_OK
               : sj_fail(error, SJ_ECORRUPT, "the lab's answer is of an unknown kind");
}

sj_status sj_lab_client_ask(sj_lab_client *client, sj_slice frame, int timeout_ms,
                            sj_lab_answer *answer, sj_error *error)
{
    nng_msg *message = NULL;
    *answer = (sj_lab_answer){0};
    if (nng_socket_set_ms(client->socket, NNG_OPT_SENDTIMEO, timeout_ms) != 0 ||
        nng_socket_set_ms(client->socket, NNG_OPT_RECVTIMEO, timeout_ms) != 0 ||
        nng_msg_alloc(&message, 0) != 0) {
        return sj_fail(error, SJ_ECLOSED, "the connection was closed");
    }
    int result = nng_msg_append(message, frame.data, frame.size);
    if (result == 0) {
        result = nng_sendmsg(client->socket, message, 0);
    }
    if (result != 0) {
        nng_msg_free(message);
    } else {
        result = nng_recvmsg(client->socket, &message, 0);
    }
    if (result != 0) {
        return sj_fail(error, result == NNG_ETIMEDOUT ? SJ_ETIMEDOUT : SJ_ECLOSED,
                       "the lab does not answer: %s", nng_strerror(result));
    }
    const sj_slice bytes = {.data = nng_msg_body(message), .size = nng_msg_len(message)};
    const sj_status status = read_answer(bytes, answer, error);
    nng_msg_free(message);
    return status;
}

void sj_lab_answer_deinit(sj_lab_answer *answer)
{
    sojourn__ack__free_unpacked(answer->ack, NULL);
    sojourn__command__free_unpacked(answer->command, NULL);
    sojourn__enrolled__free_unpacked(answer->enrolled, NULL);
    sojourn__part__free_unpacked(answer->part, NULL);
    free(answer->payload);
    *answer = (sj_lab_answer){0};
}

sj_status sj_lab_client_frame(sj_frame_type type, const ProtobufCMessage *message, uint8_t **frame,
                              size_t *size)
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

sj_status sj_lab_client_retype(uint8_t *frame, size_t size, sj_frame_type type)
{
    sj_frame_view view;
    SJ_TRY(sj_frame_read((sj_slice){.data = frame, .size = size}, &view));
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
