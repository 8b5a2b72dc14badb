/* A connection over which the device sends requests to the collector. The collector sends only
 * replies. Not thread-safe. */
#ifndef SJ_AGENT_DAEMON_LAB_CLIENT_H
#define SJ_AGENT_DAEMON_LAB_CLIENT_H

#include "proto/base/error.h"
#include "proto/wire/frame.h"
#include "proto/wire/sojourn.pb-c.h"

#include <stdbool.h>

typedef struct sj_server_client sj_server_client;

/* The reply. One of the four messages is set. */
typedef struct sj_server_reply {
    Sojourn__Ack *ack;
    Sojourn__Command *command;
    Sojourn__Enrolled *enrolled;
    Sojourn__Part *part;
    uint8_t *payload; /* The bytes of `part`. */
    size_t payload_bytes;
} sj_server_reply;

/* Dials in the background. Returns SJ_EIO if it cannot dial, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_server_client_open(const char *url, const char *certificate,
                                              sj_server_client **client, sj_error *error);

/* Wakes a thread that waits for a reply. All requests return SJ_ECLOSED from now on. Any thread may
 * call it. sj_server_client_close also frees the client, unless it is stuck. */
void sj_server_client_stop(sj_server_client *client);
void sj_server_client_close(sj_server_client *client);

/* True if NNG did not end a request or the socket in time. All later requests fail. Any thread may
 * call it. */
bool sj_server_client_is_stuck(const sj_server_client *client);

/* Sends a frame and waits for the reply, which the caller frees with sj_server_reply_deinit. Waits
 * at most `timeout_ms` to send, and as long again for the reply. Returns SJ_ETIMEDOUT, SJ_ECLOSED,
 * SJ_ENOMEM, or SJ_ECORRUPT if the reply cannot be read. */
SJ_MUST_CHECK sj_status sj_server_client_ask(sj_server_client *client, sj_slice frame,
                                             int timeout_ms, sj_server_reply *reply,
                                             sj_error *error);
void sj_server_reply_deinit(sj_server_reply *reply);

/* Packs a message into `*frame`, which the caller frees. Returns SJ_ENOMEM or SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_server_client_frame(sj_frame_type type, const ProtobufCMessage *message,
                                               uint8_t **frame, size_t *size);

/* Changes the type of a complete frame without a payload, in place. Returns SJ_EINVAL if the frame
 * has a payload, SJ_ENOMEM, or an error of sj_frame_read. */
SJ_MUST_CHECK sj_status sj_server_client_retype(uint8_t *frame, size_t size, sj_frame_type type);

#endif
