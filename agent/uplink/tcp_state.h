/* Whether the kernel still holds a TCP connection of this process to be open. */
#ifndef SJ_AGENT_UPLINK_TCP_STATE_H
#define SJ_AGENT_UPLINK_TCP_STATE_H

#include <stdbool.h>
#include <sys/socket.h>

/* sj_tcp_is_over returns whether this process has a TCP socket bound to `local` whose peer has
 * ended it, or that was broken; false when it is open and when there is no such socket. Looks
 * through all descriptors; does not block. */
bool sj_tcp_is_over(const struct sockaddr *local);

#endif
