/* Dialling a collector: plain or TLS with a pinned certificate. */
#ifndef SJ_AGENT_UPLINK_DIAL_H
#define SJ_AGENT_UPLINK_DIAL_H

#include <nng/nng.h>
#include <stdbool.h>
#include <stdint.h>

/* sj_dial dials `url` in the background and forever. `certificate` is the collector's certificate
 * (PEM, the whole of what is trusted) and is needed for tls+tcp addresses; its host name is not
 * looked at, because nothing but this very certificate is accepted. Returns an NNG error code. */
int sj_dial(nng_socket socket, const char *url, const char *certificate);

/* A dialer that is replaced when it gets nowhere. In NNG 1.5.2 a TLS connection that the peer ends
 * right after its handshake, as a collector does that is killed, may stay forever: nothing is sent
 * over it, and it is not dialled again. The kernel knows that it is over, and is asked. */
typedef struct sj_dialing {
    nng_socket socket;
    nng_dialer dialer;
    char *url, *certificate;
    unsigned attempts;  /* replacements since there was a connection */
    unsigned silences;  /* replacements of connections since there was an answer */
    uint64_t connected; /* at the last look, like the next two */
    uint64_t answers;
    bool was_connected;
    bool is_answered; /* over the present connection */
    int64_t again_ns; /* when it will be replaced; 0: to be found out */
    int64_t over_ns;  /* since when the kernel says that the connection is over; 0: it does not */
} sj_dialing;

typedef struct sj_dialing_state {
    int connections;
    uint64_t connected; /* times that a connection was made */
    uint64_t answers;   /* that have come */
    bool is_asking;     /* an answer is waited for */
    nng_pipe pipe;      /* the connection made last; its id may be that of none */
} sj_dialing_state;

/* sj_dialing_start is sj_dial with a dialer that is kept. Returns an NNG error code; release with
 * sj_dialing_deinit, on failure too, once the socket is closed. */
int sj_dialing_start(sj_dialing *dialing, nng_socket socket, const char *url,
                     const char *certificate);
void sj_dialing_deinit(sj_dialing *dialing);

/* sj_dialing_look takes the present state, and dials anew, ending what there is of connections,
 * when there has been none, or no answer over one, for too long, and soon when the connection is
 * over without NNG having noticed: what is being asked is asked again then. Returns when it wants
 * to be notified again (CLOCK_MONOTONIC, ns; INT64_MAX: when something changed). One thread at a
 * time, none of NNG's. */
int64_t sj_dialing_look(sj_dialing *dialing, const sj_dialing_state *state);

#endif
