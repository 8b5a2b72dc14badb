/* Requests to live recordings of this user. They have control sockets (agent/abi/link.h) in the
 * runtime root. */
#ifndef SJ_AGENT_LINK_LINK_REQUESTS_H
#define SJ_AGENT_LINK_LINK_REQUESTS_H

#include "agent/abi/link.h"
#include "agent/host/directories.h"

enum { SJ_LINK_PEERS_MAX = 64 };

typedef struct sj_link_peers {
    size_t count;
    char sessions[SJ_LINK_PEERS_MAX][SJ_SESSION_TEXT_BYTES];
} sj_link_peers;

/* Lists the recordings whose session id begins with `prefix` ("": all) and whose control socket
 * accepts connections. Stops at SJ_LINK_PEERS_MAX. An empty list is not an error. */
SJ_MUST_CHECK sj_status sj_link_peer_find(const char *prefix, sj_link_peers *list, sj_error *error);

/* Sends one packet to the control socket of `session` and waits for the reply, at most
 * SJ_LINK_TIMEOUT_MS. Writes the text of the reply to `reply`, which may be NULL with capacity 0.
 *
 * Returns SJ_ENOTFOUND if the session is not (or no longer) being recorded. Returns SJ_EPERM if the
 * request is refused; `error` says why. Returns SJ_ELIMIT if `text` does not fit a packet. Also
 * returns SJ_EIO. */
SJ_MUST_CHECK sj_status sj_link_request(const char *session, sj_link_type type, const void *payload,
                                        size_t payload_bytes, const char *text, char *reply,
                                        size_t capacity, sj_error *error);

#endif
