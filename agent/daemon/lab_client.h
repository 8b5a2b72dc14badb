/* A connection over which the device asks the lab; the lab never asks. One thread at a time. */
#ifndef SJ_AGENT_DAEMON_LAB_CLIENT_H
#define SJ_AGENT_DAEMON_LAB_CLIENT_H

#include "agent/control/error.h"
#include "proto/frame.h"
#include "proto/sojourn.pb-c.h"

typedef struct sj_lab_client sj_lab_client;

/* What came back: one of the four is set. */
typedef struct sj_lab_answer {
    Sojourn__Ack *ack;
    Sojourn__Command *command;
    Sojourn__Enrolled *enrolled;
    Sojourn__Part *part;
    uint8_t *payload; /* of a part */
    size_t payload_bytes;
} sj_lab_answer;

/* sj_lab_client_open dials in the background. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_lab_client_open(const char *url, const char *certificate,
                                           sj_lab_client **client, sj_error *error);

/* sj_lab_client_stop wakes a thread that asks: it gets SJ_ECLOSED, now and from then on. */
void sj_lab_client_stop(sj_lab_client *client);
void sj_lab_client_close(sj_lab_client *client);

/* sj_lab_client_ask sends a frame and waits. SJ_ETIMEDOUT, SJ_ECLOSED, SJ_ECORRUPT. The answer is
 * freed with sj_lab_answer_deinit. */
SJ_MUST_CHECK sj_status sj_lab_client_ask(sj_lab_client *client, sj_slice frame, int timeout_ms,
                                          sj_lab_answer *answer, sj_error *error);
void sj_lab_answer_deinit(sj_lab_answer *answer);

/* sj_lab_client_frame packs a message; `*frame` is allocated. SJ_ENOMEM, SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_lab_client_frame(sj_frame_type type, const ProtobufCMessage *message,
                                            uint8_t **frame, size_t *size);

/* sj_lab_client_retype gives a whole frame another type, in place. */
SJ_MUST_CHECK sj_status sj_lab_client_retype(uint8_t *frame, size_t size, sj_frame_type type);

#endif
