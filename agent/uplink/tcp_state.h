/* Asks the kernel if a TCP connection of this process is open. */
#ifndef SJ_AGENT_UPLINK_TCP_STATE_H
#define SJ_AGENT_UPLINK_TCP_STATE_H

#include <stdbool.h>
#include <sys/socket.h>

/* True if this process has a TCP socket bound to `local` whose connection is broken or was ended by
 * the peer. Returns false if the connection is open, or if no such socket exists. Searches all
 * descriptors; does not block. */
bool sj_tcp_is_over(const struct sockaddr *local);

#endif
