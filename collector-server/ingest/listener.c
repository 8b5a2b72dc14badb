#include "collector-server/ingest/listener.h"

#include "agent/uplink/dial.h"
#include "proto/frame.h"

#include <nng/protocol/reqrep0/req.h>
#include <nng/supplemental/util/platform.h>
#include <stdlib.h>
#include <string.h>

enum { RELISTEN_TRIES = 50, RELISTEN_PAUSE_MS = 5 };

/* begin_listening makes the NNG listener anew. */
static int begin_listening(sj_listener *listener)
{
    int result = nng_listener_create(&listener->listener, listener->socket, listener->url);
    if (result == 0 && listener->tls != NULL) {
        result = nng_listener_set_ptr(listener->listener, NNG_OPT_TLS_CONFIG, listener->tls);
    }
    if (result == 0) {
        result = nng_listener_start(listener->listener, 0);
        if (result != 0) {
            nng_listener_close(listener->listener);
        }
    }
    listener->listening = result == 0;
    return result;
}

sj_status sj_listener_open(sj_listener *listener, nng_socket socket, const char *url,
                           nng_tls_config *tls, const char *certificate, sj_error *error)
{
    const bool is_tls = strncmp(url, "tls+", 4) == 0;
    *listener = (sj_listener){.socket = socket,
                              .url = strdup(url),
                              .tls = is_tls ? tls : NULL,
                              .certificate = certificate};
    if (listener->url == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for a listener");
    }
    if (is_tls && tls == NULL) {
        return sj_fail(error, SJ_EINVAL, "%s needs a certificate", url);
    }
    const int result = begin_listening(listener);
    if (result != 0) {
        return sj_fail(error, SJ_EIO, "cannot listen on %s: %s", url, nng_strerror(result));
    }
    return SJ_OK;
}

bool sj_listener_answers(const sj_listener *listener, int timeout_ms)
{
    uint8_t ping[SJ_FRAME_PREFIX_BYTES];
    size_t size = 0;
    nng_socket probe;
    nng_msg *answer = NULL;
    if (!listener->listening ||
        sj_frame_write(SJ_FRAME_PING, (sj_slice){0}, (sj_slice){0}, ping, sizeof(ping), &size) !=
            SJ_OK ||
        nng_req0_open(&probe) != 0) {
        return false;
    }
    const bool answered = nng_socket_set_ms(probe, NNG_OPT_SENDTIMEO, timeout_ms) == 0 &&
                          nng_socket_set_ms(probe, NNG_OPT_RECVTIMEO, timeout_ms) == 0 &&
                          sj_dial(probe, listener->url, listener->certificate) == 0 &&
                          nng_send(probe, ping, size, 0) == 0 &&
                          nng_recvmsg(probe, &answer, 0) == 0;
    if (answer != NULL) {
        nng_msg_free(answer);
    }
    nng_close(probe);
    return answered;
}

bool sj_listener_recreate(sj_listener *listener)
{
    if (listener->listening) {
        nng_listener_close(listener->listener);
        listener->listening = false;
    }
    for (int i = 0; i < RELISTEN_TRIES && !listener->listening; ++i) {
        if (begin_listening(listener) != 0) {
            nng_msleep(RELISTEN_PAUSE_MS);
        }
    }
    return listener->listening;
}

bool sj_listener_needs_watch(const sj_listener *listener)
{
    return strncmp(listener->url, "inproc:", 7) != 0;
}

void sj_listener_close(sj_listener *listener)
{
    if (listener->listening) {
        nng_listener_close(listener->listener);
    }
    free(listener->url);
    *listener = (sj_listener){0};
}
