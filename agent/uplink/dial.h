/* Dials a collector: plain, or TLS with a pinned certificate. */
#ifndef SJ_AGENT_UPLINK_DIAL_H
#define SJ_AGENT_UPLINK_DIAL_H

#include <nng/nng.h>
#include <stdbool.h>
#include <stdint.h>

/* Connects to `url` in the background, and reconnects forever. `certificate` is the collector's
 * certificate (PEM), which tls+tcp addresses need. Only this certificate is trusted, so its host
 * name is not checked. Returns an NNG error code. */
int sj_dial(nng_socket socket, const char *url, const char *certificate);

/* A dialer that is replaced if it does not get a working connection. In NNG 1.5.2, a TLS connection
 * may stay open forever if the peer ends it right after the handshake, as a killed collector does.
 * NNG then sends nothing over this connection and does not redial. The kernel knows that the
 * connection has ended (tcp_state.h). */
typedef struct sj_dialing {
    nng_socket socket;
    nng_dialer dialer;
    char *url, *certificate;
    unsigned attempts; /* Number of replacements since the last connection. */
    unsigned silences; /* Number of replaced connections since the last reply. */
    /* Counts and state at the latest poll. */
    uint64_t connected;
    uint64_t replies;
    bool was_connected;
    bool is_answered; /* True if the present connection brought a reply. */
    int64_t again_ns; /* Time of the next replacement. 0: not decided yet. */
    /* Since when the kernel has reported that the connection is over. 0: it is open. */
    int64_t over_ns;
} sj_dialing;

typedef struct sj_dialing_state {
    int connections;
    uint64_t connected; /* Number of connections so far. */
    uint64_t replies;   /* Number of replies so far. */
    bool is_asking;     /* True if a reply is expected. */
    nng_pipe pipe;      /* The latest connection. It may have ended. */
} sj_dialing_state;

/* Dials like sj_dial, but keeps the dialer. Returns an NNG error code. The caller releases it with
 * sj_dialing_deinit once the socket is closed, also after an error. */
int sj_dialing_start(sj_dialing *dialing, nng_socket socket, const char *url,
                     const char *certificate);
void sj_dialing_deinit(sj_dialing *dialing);

/* Redials if the socket has had no connection for too long, or if an expected reply has not come
 * over its connection for too long. Also redials soon if the connection has ended and NNG has not
 * noticed. Redialling closes existing connections, and NNG then repeats the current questions.
 * Returns the time of the next call (CLOCK_MONOTONIC, ns), or INT64_MAX: call it again when `state`
 * changes. Not thread-safe. Do not call it on NNG's threads. */
int64_t sj_dialing_poll(sj_dialing *dialing, const sj_dialing_state *state);

#endif
