/* Closes a socket of NNG, even if NNG never finishes the close. */
#ifndef SJ_AGENT_UPLINK_SOCKET_CLOSE_H
#define SJ_AGENT_UPLINK_SOCKET_CLOSE_H

#include <nng/nng.h>
#include <stdbool.h>

/* Closes a socket like nng_close, but waits at most 2 s. In NNG 1.5.2 a close may wait forever if a
 * message arrives while its connection is being closed (see socket_close.c). Returns false if NNG
 * has not closed the socket within this time. NNG's threads may then still call the socket's
 * callbacks, so the caller must never free the callbacks' arguments. Do not call it on NNG's
 * threads. */
bool sj_socket_close(nng_socket socket);

#endif
