/* Dials a collector: plain, or TLS with a pinned certificate. */
#ifndef SJ_AGENT_UPLINK_DIAL_H
#define SJ_AGENT_UPLINK_DIAL_H

#include <nng/nng.h>
#include <stdbool.h>
#include <stdint.h>

/* Dials `url` in the background, forever. `certificate` is the collector's certificate (PEM), which
 * tls+tcp addresses need. Only this certificate is trusted, so its host name is not checked.
 * Returns an NNG error code. */
int sj_dial(nng_socket socket, const char *url, const char *certificate);

/* A dialer that is replaced if it does not get a working connection. In NNG 1.5.2, a TLS connection
 * may stay forever if the peer ends it right after its handshake, as a killed collector does.
 * Nothing is sent over it, and it is not redialled. The kernel knows that it is over, so the kernel
 * is asked. */
typedef struct sj_dialing {
    nng_socket socket;
    nng_dialer dialer;
    char *url, *certificate;
    unsigned attempts; /* Replacements since there was a connection. */
    unsigned silences; /* Replacements of connections since there was a reply. */
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

/* Compares the state with the previous one. Redials if there has been no connection for too long,
 * or no reply over one. That ends existing connections. It redials soon if the connection is over
 * and NNG has not noticed. NNG then repeats the current questions. Returns when to call it again
 * (CLOCK_MONOTONIC, ns), or INT64_MAX to wait for a change. Not thread-safe; do not call it on
 * NNG's threads. */
int64_t sj_dialing_poll(sj_dialing *dialing, const sj_dialing_state *state);

#endif
