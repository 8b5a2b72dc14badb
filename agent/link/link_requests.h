/* Live recordings of this user, as another process sees them: their control sockets
 * (agent/abi/link.h) in the runtime root. */
#ifndef SJ_AGENT_LINK_LINK_REQUESTS_H
#define SJ_AGENT_LINK_LINK_REQUESTS_H

#include "agent/abi/link.h"
#include "agent/host/directories.h"

enum { SJ_LINK_PEERS_MAX = 64 };

typedef struct sj_link_peers {
    size_t count;
    char sessions[SJ_LINK_PEERS_MAX][SJ_SESSION_TEXT_BYTES];
} sj_link_peers;

/* sj_link_peer_find lists the recordings whose session id begins with `prefix` ("" all) and whose
 * control socket answers; those beyond SJ_LINK_PEERS_MAX are left out. Never fails for want of any.
 */
SJ_MUST_CHECK sj_status sj_link_peer_find(const char *prefix, sj_link_peers *list, sj_error *error);

/* sj_link_request sends one packet to the control socket of `session` and waits for the answer, at
 * most SJ_LINK_TIMEOUT_MS. `answer` takes the text that comes with it; NULL with 0: nothing does.
 * SJ_ENOTFOUND: it is not being recorded (any more); SJ_EPERM: refused, `error` says why;
 * SJ_ELIMIT `text` does not fit a packet; SJ_EIO. */
SJ_MUST_CHECK sj_status sj_link_request(const char *session, sj_link_type type, const void *payload,
                                        size_t payload_bytes, const char *text, char *answer,
                                        size_t capacity, sj_error *error);

#endif
