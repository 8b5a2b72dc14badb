/* Admission: checks each peer before its frames are unpacked or queued. Decides whether a frame
 * goes to the store (sessions) or to the fleet (commands, enrolment). Runs on the edge's thread. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_ADMISSION_H
#define SJ_COLLECTOR_SERVER_INGEST_ADMISSION_H

#include "collector-server/edge/edge.h"
#include "collector-server/ingest/credentials.h"
#include "collector-server/ingest/rate.h"
#include "proto/base/error.h"

/* Callbacks of the ingest's owner, which knows the devices and their tokens. They run on the edge's
 * thread, so they must not block. */
typedef struct sj_ingest_gate {
    void *context;
    bool requires_tokens; /* only devices with a token may send frames to the store */
    /* Checks a peer's credentials. Returns SJ_EPERM to refuse the peer, or SJ_OK and a grant, a
     * number that is not 0. NULL: no device has a token. */
    sj_status (*judge)(void *context, const sj_credentials *shown, int64_t *grant, sj_error *error);
    /* True if a grant is still valid. Called for each frame. */
    bool (*has_grant)(void *context, int64_t grant);
    /* Handles a message with a frame of the fleet (SJ_FRAME_ENROL to FLEET_LAST): takes ownership
     * of its memory and answers it over `edge`, which exists until the ingest stops. Returns
     * SJ_EAGAIN if too many messages wait; the ingest then answers. NULL: there is no fleet. */
    sj_status (*fleet)(void *context, sj_edge *edge, const sj_edge_message *message);
} sj_ingest_gate;

enum {
    SJ_ADMISSION_ADDRESSES = 1024,
    /* wrong tokens per second from one address; above that, the connection is closed */
    SJ_REFUSALS_A_SECOND = 20,
    SJ_ENROLMENTS_A_SECOND = 5, /* from one address */
    SJ_ENROLMENTS_A_SECOND_IN_ALL = 50,
    /* enrolments that one address may send at once after a pause; all addresses together may send 5
     * times as many */
    SJ_ENROLMENTS_AT_ONCE = 20
};

/* Initialise with zeros, except for `gate`. */
typedef struct sj_admission {
    sj_ingest_gate gate;
    sj_rate refusals[SJ_ADMISSION_ADDRESSES];
    sj_rate enrolments[SJ_ADMISSION_ADDRESSES];
    sj_rate all_enrolments;
} sj_admission;

typedef enum sj_admission_verdict {
    SJ_ADMIT_TO_STORE,
    SJ_ADMIT_TO_FLEET,
    SJ_ADMIT_REPLY, /* answer at once, with the status and the error's text */
    /* The peer is not admitted. Answer at once, as for SJ_ADMIT_REPLY. If the status is SJ_ECLOSED,
     * close the connection after that. */
    SJ_ADMIT_REFUSE
} sj_admission_verdict;

/* Decides on a message that contains the whole frame `frame`, or whose body was cut (`frame` is
 * NULL). Writes the status of the answer to `*status`.
 *
 * Binds the connection to the device that the frame names, if the frame shows a valid token. If no
 * tokens are required, a HELLO also binds it without one. Then sets message->sender. `edge` may be
 * NULL for a message that came by inproc://. */
sj_admission_verdict sj_admission_judge(sj_admission *admission, sj_edge *edge,
                                        sj_edge_message *message, const sj_frame_view *frame,
                                        sj_status *status, sj_error *error);

#endif
