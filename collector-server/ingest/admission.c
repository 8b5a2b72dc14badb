#include "collector-server/ingest/admission.h"

#include <gnutls/crypto.h>
#include <time.h>

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static sj_admission_verdict refuse(sj_status *status, sj_error *error, sj_status why,
                                   const char *text)
{
    *status = sj_fail(error, why, "%s", text);
    return SJ_ADMIT_REFUSE;
}

/* Binds the connection to the device of the credentials. */
static sj_status bind_sender(sj_edge *edge, sj_edge_message *message, const sj_credentials *shown,
                             int64_t grant, sj_error *error)
{
    sj_sender sender = {.is_peer = true, .has_token = grant != 0, .grant = grant};
    memcpy(sender.device, shown->device_id.data, sizeof(sender.device));
    if (shown->session_secret.size != 0 &&
        gnutls_hash_fast(GNUTLS_DIG_SHA256, shown->session_secret.data, shown->session_secret.size,
                         sender.secret) != GNUTLS_E_SUCCESS) {
        return sj_fail(error, SJ_EAGAIN, "the collector is short of memory");
    }
    const sj_status status = sj_edge_bind(edge, message->connection, &sender);
    if (status != SJ_OK) {
        return sj_fail(error, SJ_EAGAIN, "the device has too many connections");
    }
    message->sender = sender;
    message->is_stranger = false;
    return SJ_OK;
}

/* Checks a token. Tokens are still checked if the address has shown too many wrong ones, because a
 * valid device may have the same address. But then a wrong token returns SJ_ECLOSED, which closes
 * the connection. */
static sj_status judge_token(sj_admission *admission, const sj_edge_message *message,
                             const sj_credentials *shown, int64_t *grant, sj_error *error)
{
    sj_rate *refusals = &admission->refusals[message->bucket % SJ_ADMISSION_ADDRESSES];
    const sj_status status =
        admission->gate.judge != NULL
            ? admission->gate.judge(admission->gate.context, shown, grant, error)
            : sj_fail(error, SJ_EPERM, "this collector knows no tokens");
    return status != SJ_EPERM ||
                   sj_rate_spend(refusals, now_ms(), SJ_REFUSALS_A_SECOND, SJ_REFUSALS_A_SECOND)
               ? status
               : sj_fail(error, SJ_ECLOSED, "too many wrong tokens came from this address");
}

/* Handles HELLO. An enrolled device may show its token, perhaps another collector's, even if this
 * collector does not require tokens. Then a wrong token counts as no token. */
static sj_admission_verdict judge_hello(sj_admission *admission, sj_edge *edge,
                                        sj_edge_message *message, const sj_credentials *shown,
                                        sj_status *status, sj_error *error)
{
    int64_t grant = 0;
    if (admission->gate.requires_tokens) {
        *status = judge_token(admission, message, shown, &grant, error);
    } else if (shown->token.size != 0 && admission->gate.judge != NULL) {
        sj_error ignored;
        if (admission->gate.judge(admission->gate.context, shown, &grant, &ignored) != SJ_OK) {
            grant = 0;
        }
    }
    if (*status == SJ_OK) {
        *status = bind_sender(edge, message, shown, grant, error);
    }
    return *status == SJ_OK ? SJ_ADMIT_TO_STORE : SJ_ADMIT_REFUSE;
}

static sj_admission_verdict judge_enrolment(sj_admission *admission, const sj_edge_message *message,
                                            sj_status *status, sj_error *error)
{
    const int64_t now = now_ms();
    sj_rate *own = &admission->enrolments[message->bucket % SJ_ADMISSION_ADDRESSES];
    if (!sj_rate_spend(own, now, SJ_ENROLMENTS_A_SECOND, SJ_ENROLMENTS_AT_ONCE) ||
        !sj_rate_spend(&admission->all_enrolments, now, SJ_ENROLMENTS_A_SECOND_IN_ALL,
                       5 * SJ_ENROLMENTS_AT_ONCE)) {
        return refuse(status, error, SJ_EAGAIN, "too many devices enrol at present; try again");
    }
    return SJ_ADMIT_TO_FLEET;
}

/* Handles frames that contain credentials. */
static sj_admission_verdict judge_shown(sj_admission *admission, sj_edge *edge,
                                        sj_edge_message *message, const sj_frame_view *frame,
                                        sj_status *status, sj_error *error)
{
    sj_credentials shown;
    int64_t grant = 0;
    const bool is_hello = frame->type == SJ_FRAME_HELLO;
    if (!is_hello && admission->gate.fleet == NULL) {
        *status = sj_fail(error, SJ_EUNSUPPORTED, "this collector has no fleet");
        return SJ_ADMIT_REPLY;
    }
    *status = sj_credentials_read(frame, &shown);
    if (*status != SJ_OK || (message->is_stranger && frame->payload.size != 0)) {
        return refuse(status, error, *status == SJ_EUNSUPPORTED ? SJ_EUNSUPPORTED : SJ_ECORRUPT,
                      "the frame cannot be read");
    }
    if (is_hello) {
        return judge_hello(admission, edge, message, &shown, status, error);
    }
    if (frame->type == SJ_FRAME_ENROL) {
        return judge_enrolment(admission, message, status, error);
    }
    *status = judge_token(admission, message, &shown, &grant, error);
    if (*status == SJ_OK && message->sender.grant != grant) {
        *status = bind_sender(edge, message, &shown, grant, error);
    }
    return *status == SJ_OK ? SJ_ADMIT_TO_FLEET : SJ_ADMIT_REFUSE;
}

sj_admission_verdict sj_admission_judge(sj_admission *admission, sj_edge *edge,
                                        sj_edge_message *message, const sj_frame_view *frame,
                                        sj_status *status, sj_error *error)
{
    *status = SJ_OK;
    if (frame != NULL && frame->type == SJ_FRAME_PING) {
        return SJ_ADMIT_REPLY;
    }
    if (!message->sender.is_peer) {
        *status = frame->type < SJ_FRAME_ENROL ? SJ_OK : SJ_EUNSUPPORTED;
        return *status == SJ_OK ? SJ_ADMIT_TO_STORE : SJ_ADMIT_REPLY;
    }
    if (frame != NULL && (frame->type == SJ_FRAME_HELLO ||
                          (frame->type >= SJ_FRAME_ENROL && frame->type <= SJ_FRAME_FLEET_LAST))) {
        return judge_shown(admission, edge, message, frame, status, error);
    }
    if (message->is_stranger) {
        /* The refusal is not final: NNG may send again over a new connection before the uplink
         * has sent HELLO on it. */
        return refuse(status, error, SJ_EAGAIN, "say hello first");
    }
    const int64_t grant = message->sender.grant;
    if (grant != 0 && !admission->gate.has_grant(admission->gate.context, grant)) {
        sj_edge_unbind(edge, message->connection);
        return refuse(status, error, SJ_EPERM, "the device's token was revoked or renewed");
    }
    if (grant == 0 && admission->gate.requires_tokens) {
        return refuse(status, error, SJ_EAGAIN, "say hello first");
    }
    return SJ_ADMIT_TO_STORE;
}
