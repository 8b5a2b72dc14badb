/* Changes many sessions at once: pin, unpin, tag, untag, note, unnote, remove. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_SESSION_CHANGES_POST_H
#define SJ_COLLECTOR_SERVER_HTTP_SESSION_CHANGES_POST_H

#include "collector-server/http/route.h"

/* Carries out {"sessions": [ID, ...], "do": KIND, "key": K, "value": V}. A note may have "from_ns"
 * and "to_ns". Returns {"before": [...]}, the previous state of each session. Stops at the first
 * session that is refused, and returns SJ_EINVAL, SJ_ENOTFOUND or SJ_EPERM. Returns SJ_ETIMEDOUT if
 * the client has disconnected. A pinned or recording session cannot be removed, and removal needs
 * the role admin. After an error, no session is changed; but sessions that were removed before the
 * error stay removed. Waits for other writers. */
SJ_MUST_CHECK sj_status sj_session_changes_post(sj_request *request, const json_t *input,
                                                json_t **body, sj_error *error);

#endif
