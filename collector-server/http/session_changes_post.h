/* Changes many sessions at once: pin, unpin, tag, untag, note, unnote, remove. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_SESSION_CHANGES_POST_H
#define SJ_COLLECTOR_SERVER_HTTP_SESSION_CHANGES_POST_H

#include "collector-server/http/route.h"

/* Carries out {"sessions": [ID, ...], "do": KIND, "key": K, "value": V}; a note may have
 * "from_ns" and "to_ns". Returns {"before": [...]}, the previous state of each session. Stops at
 * the first session that is refused, and returns SJ_EINVAL, SJ_ENOTFOUND or SJ_EPERM (to remove
 * a pinned or recording session, or without the role admin). Then no session is changed, except
 * that sessions removed before it stay removed. Waits for other writers. */
SJ_MUST_CHECK sj_status sj_session_changes_post(sj_request *request, const json_t *input,
                                                json_t **body, sj_error *error);

#endif
