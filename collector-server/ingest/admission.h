/* Admission: who may come in, and what is not for the store. Nothing is unpacked or queued for
 * anybody before it was judged here. In the edge's thread. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_ADMISSION_H
#define SJ_COLLECTOR_SERVER_INGEST_ADMISSION_H

#include "collector-server/edge/edge.h"
#include "collector-server/ingest/credentials.h"
#include "collector-server/ingest/rate.h"
#include "proto/base/error.h"

/* What the owner of the ingest decides. Called in the edge's thread: no call may block. */
typedef struct sj_ingest_gate {
    void *context;
    bool requires_tokens; /* frames for the store are taken from devices with a token only */
    /* judges what a peer shows; SJ_EPERM refuses it, with SJ_OK it gives a grant, not 0. NULL:
     * nobody has a token. */
    sj_status (*judge)(void *context, const sj_credentials *shown, int64_t *grant, sj_error *error);
    /* returns whether a grant is still valid; asked for each frame. */
    bool (*has_grant)(void *context, int64_t grant);
    /* takes over a message (its memory) whose frame is one of the fleet (SJ_FRAME_ENROL to
     * FLEET_LAST) and has it answered over `edge`, which stays until the ingest stops. SJ_EAGAIN:
     * too many wait; it is answered by the ingest. NULL: there is no fleet. */
    sj_status (*fleet)(void *context, sj_edge *edge, const sj_edge_message *message);
} sj_ingest_gate;

enum {
    SJ_ADMISSION_ADDRESSES = 1024,
    SJ_REFUSALS_A_SECOND = 20,  /* of tokens, from one address; beyond: hung up on */
    SJ_ENROLMENTS_A_SECOND = 5, /* from one address */
    SJ_ENROLMENTS_A_SECOND_IN_ALL = 50,
    SJ_ENROLMENTS_AT_ONCE = 20 /* from one address, after a pause; in all 5 times as many */
};

/* Zeroed but for `gate` is the start. */
typedef struct sj_admission {
    sj_ingest_gate gate;
    sj_rate refusals[SJ_ADMISSION_ADDRESSES];
    sj_rate enrolments[SJ_ADMISSION_ADDRESSES];
    sj_rate all_enrolments;
} sj_admission;

typedef enum sj_admission_verdict {
    SJ_ADMIT_TO_STORE,
    SJ_ADMIT_TO_FLEET,
    SJ_ADMIT_ANSWER, /* with the status and the error's text, at once */
    SJ_ADMIT_REFUSE  /* the same, to one who may not come in; SJ_ECLOSED: hang up instead */
} sj_admission_verdict;

/* sj_admission_judge decides on a message with a whole frame in it, or one that was cut (`frame` is
 * NULL), and binds its connection to the sender who shows a valid token or, where no tokens are
 * asked, says HELLO. `message->sender` is the sender afterwards. `edge` may be NULL for messages
 * that did not come over it. */
sj_admission_verdict sj_admission_judge(sj_admission *admission, sj_edge *edge,
                                        sj_edge_message *message, const sj_frame_view *frame,
                                        sj_status *status, sj_error *error);

#endif
