/* Dialling a lab: plain or TLS with a pinned certificate. */
#ifndef SJ_AGENT_UPLINK_DIAL_H
#define SJ_AGENT_UPLINK_DIAL_H

#include <nng/nng.h>

/* sj_dial dials `url` in the background and for ever. `certificate` is the lab's certificate (PEM,
 * the whole of what is trusted) and is needed for tls+tcp addresses; its host name is not looked
 * at, because nothing but this very certificate is accepted. Returns an NNG error code. */
int sj_dial(nng_socket socket, const char *url, const char *certificate);

#endif
