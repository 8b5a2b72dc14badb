/* The end of one of NNG's sockets, when NNG does not let go of it too. */
#ifndef SJ_AGENT_UPLINK_SOCKET_CLOSE_H
#define SJ_AGENT_UPLINK_SOCKET_CLOSE_H

#include <nng/nng.h>
#include <stdbool.h>

/* sj_socket_close is nng_close, but waits for NNG 5 s at most. In NNG 1.5.2 a close may wait for
 * ever: a message that comes while its connection is being closed leaves the receive of the next
 * one unended, and the one thread that takes down connections waits for it. Returns false when NNG
 * has not ended the socket: threads of NNG may then use, for ever, what its callbacks were given,
 * which the caller must not free. Not for threads of NNG. */
bool sj_socket_close(nng_socket socket);

#endif
