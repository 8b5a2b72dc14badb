#include "agent/uplink/dial.h"

#include "agent/uplink/tcp_state.h"

#include <netinet/in.h>
#include <nng/supplemental/tls/tls.h>
#include <nng/supplemental/util/platform.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* SILENCE_MS exceeds the 20 s after which the collector replies to a poll without commands. Both
 * times double with each replacement, up to a limit: patience until there is a connection, silence
 * until there is a reply. Otherwise a fleet would repeat all questions every half a minute to a
 * collector that is too busy to reply. */
enum { PATIENCE_MS = 3000, PATIENCE_DOUBLINGS = 4, SILENCE_MS = 25000, SILENCE_DOUBLINGS = 2 };

/* Intervals of asking the kernel about a TLS connection. New ones are checked more often until they
 * bring a reply, because NNG loses track of those. OVER_MS is the time that NNG gets to notice
 * the end by itself. */
enum { NEW_POLL_MS = 500, POLL_MS = 5000, OVER_MS = 400 };

/* The name in certificates that `sojournd` makes for itself. */
static const char collector_name[] = "sojourn-collector";

static int set_trust(nng_dialer dialer, const char *certificate)
{
    nng_tls_config *trust = NULL;
    int result = nng_tls_config_alloc(&trust, NNG_TLS_MODE_CLIENT);
    if (result != 0) {
        return result;
    }
    if ((result = nng_tls_config_auth_mode(trust, NNG_TLS_AUTH_MODE_REQUIRED)) == 0 &&
        (result = nng_tls_config_server_name(trust, collector_name)) == 0 &&
        (result = nng_tls_config_ca_chain(trust, certificate, NULL)) == 0) {
        result = nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, trust);
    }
    nng_tls_config_free(trust);
    return result;
}

static bool is_tls(const char *url)
{
    return strncmp(url, "tls+", 4) == 0;
}

static int dial(nng_socket socket, const char *url, const char *certificate, nng_dialer *dialer)
{
    if (is_tls(url) && certificate == NULL) {
        return NNG_ECRYPTO;
    }
    int result = nng_dialer_create(dialer, socket, url);
    if (result == 0 && is_tls(url)) {
        result = set_trust(*dialer, certificate);
    }
    return result == 0 ? nng_dialer_start(*dialer, NNG_FLAG_NONBLOCK) : result;
}

int sj_dial(nng_socket socket, const char *url, const char *certificate)
{
    nng_dialer dialer;
    return dial(socket, url, certificate, &dialer);
}

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Returns the time of the next replacement. The waits grow and are jittered, so that a fleet does
 * not reconnect all at once. */
static int64_t next_ns(const sj_dialing *dialing, bool is_connected, int64_t now)
{
    const unsigned in_vain = is_connected ? dialing->silences : dialing->attempts;
    const unsigned most = is_connected ? SILENCE_DOUBLINGS : PATIENCE_DOUBLINGS;
    const unsigned doublings = in_vain < most ? in_vain : most;
    const int64_t wait_ms = (int64_t)(is_connected ? SILENCE_MS : PATIENCE_MS) << doublings;
    return now + (wait_ms + nng_random() % PATIENCE_MS) * 1000000;
}

int sj_dialing_start(sj_dialing *dialing, nng_socket socket, const char *url,
                     const char *certificate)
{
    *dialing = (sj_dialing){.socket = socket, .url = strdup(url)};
    dialing->certificate = certificate != NULL ? strdup(certificate) : NULL;
    if (dialing->url == NULL || (certificate != NULL && dialing->certificate == NULL)) {
        return NNG_ENOMEM;
    }
    return dial(socket, url, certificate, &dialing->dialer);
}

void sj_dialing_deinit(sj_dialing *dialing)
{
    free(dialing->url);
    free(dialing->certificate);
    *dialing = (sj_dialing){0};
}

/* Asks the kernel if the peer has ended the connection. */
static bool is_over(nng_pipe pipe)
{
    nng_sockaddr own;
    if (nng_pipe_get_addr(pipe, NNG_OPT_LOCADDR, &own) != 0) {
        return false;
    }
    if (own.s_family == NNG_AF_INET) {
        const struct sockaddr_in local = {.sin_family = AF_INET,
                                          .sin_port = own.s_in.sa_port,
                                          .sin_addr.s_addr = own.s_in.sa_addr};
        return sj_tcp_is_over((const struct sockaddr *)&local);
    }
    struct sockaddr_in6 local = {.sin6_family = AF_INET6, .sin6_port = own.s_in6.sa_port};
    memcpy(&local.sin6_addr, own.s_in6.sa_addr, sizeof(local.sin6_addr));
    return own.s_family == NNG_AF_INET6 && sj_tcp_is_over((const struct sockaddr *)&local);
}

/* Notes since when the connection has been over. Returns true if NNG has had enough time to
 * notice. */
static bool check_connection(sj_dialing *dialing, const sj_dialing_state *state, int64_t now)
{
    if (!is_tls(dialing->url) || !is_over(state->pipe)) {
        dialing->over_ns = 0;
        return false;
    }
    dialing->over_ns = dialing->over_ns == 0 ? now : dialing->over_ns;
    return now - dialing->over_ns >= OVER_MS * INT64_C(1000000);
}

static void dial_anew(sj_dialing *dialing)
{
    /* Errors are ignored: the next poll tries again, and a closed socket has no dialer. */
    (void)!nng_dialer_close(dialing->dialer);
    (void)!dial(dialing->socket, dialing->url, dialing->certificate, &dialing->dialer);
    dialing->over_ns = 0;
}

/* Restarts the waits if something has changed. */
static void note_changes(sj_dialing *dialing, const sj_dialing_state *state)
{
    const bool is_connected = state->connections > 0;
    const bool is_new = dialing->connected != state->connected;
    const bool is_answered = dialing->replies != state->replies;
    if (is_new || is_answered || dialing->was_connected != is_connected) {
        dialing->attempts = is_new || is_answered ? 0 : dialing->attempts;
        dialing->silences = is_answered ? 0 : dialing->silences;
        dialing->is_answered = is_answered || (dialing->is_answered && !is_new);
        dialing->connected = state->connected;
        dialing->replies = state->replies;
        dialing->was_connected = is_connected;
        dialing->again_ns = 0;
        dialing->over_ns = 0;
    }
}

int64_t sj_dialing_poll(sj_dialing *dialing, const sj_dialing_state *state)
{
    const int64_t now = monotonic_ns();
    const bool is_connected = state->connections > 0;
    note_changes(dialing, state);
    if (is_connected && !state->is_asking) {
        dialing->again_ns = 0;
        return INT64_MAX;
    }
    if (is_connected && check_connection(dialing, state, now)) {
        dial_anew(dialing);
        dialing->again_ns = next_ns(dialing, false, now);
    } else if (dialing->again_ns == 0) {
        dialing->again_ns = next_ns(dialing, is_connected, now);
    } else if (now >= dialing->again_ns) {
        dial_anew(dialing);
        dialing->silences += is_connected;
        dialing->attempts += !is_connected;
        dialing->again_ns = next_ns(dialing, is_connected, now);
    }
    if (!is_connected || !is_tls(dialing->url)) {
        return dialing->again_ns;
    }
    const bool is_settled = dialing->is_answered && dialing->over_ns == 0;
    const int64_t next_poll_ns = now + (is_settled ? POLL_MS : NEW_POLL_MS) * INT64_C(1000000);
    return next_poll_ns < dialing->again_ns ? next_poll_ns : dialing->again_ns;
}
