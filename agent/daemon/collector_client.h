/* A connection over which the device asks the collector; the collector never asks. One thread at a
 * time. */
#ifndef SJ_AGENT_DAEMON_LAB_CLIENT_H
#define SJ_AGENT_DAEMON_LAB_CLIENT_H

#include "proto/base/error.h"
#include "proto/wire/frame.h"
#include "proto/wire/sojourn.pb-c.h"

typedef struct sj_server_client sj_server_client;

/* What came back: one of the four is set. */
typedef struct sj_server_answer {
    Sojourn__Ack *ack;
    Sojourn__Command *command;
    Sojourn__Enrolled *enrolled;
    Sojourn__Part *part;
    uint8_t *payload; /* of a part */
    size_t payload_bytes;
} sj_server_answer;

/* sj_server_client_open dials in the background. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_server_client_open(const char *url, const char *certificate,
                                              sj_server_client **client, sj_error *error);

/* sj_server_client_stop wakes a thread that asks: it gets SJ_ECLOSED, now and from then on. */
void sj_server_client_stop(sj_server_client *client);
void sj_server_client_close(sj_server_client *client);

/* sj_server_client_ask sends a frame and waits. SJ_ETIMEDOUT, SJ_ECLOSED, SJ_ECORRUPT. The answer
 * is freed with sj_server_answer_deinit. */
SJ_MUST_CHECK sj_status sj_server_client_ask(sj_server_client *client, sj_slice frame,
                                             int timeout_ms, sj_server_answer *answer,
                                             sj_error *error);
void sj_server_answer_deinit(sj_server_answer *answer);

/* sj_server_client_frame packs a message; `*frame` is allocated. SJ_ENOMEM, SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_server_client_frame(sj_frame_type type, const ProtobufCMessage *message,
                                               uint8_t **frame, size_t *size);

/* sj_server_client_retype gives a whole frame another type, in place. */
SJ_MUST_CHECK sj_status sj_server_client_retype(uint8_t *frame, size_t size, sj_frame_type type);

#endif
