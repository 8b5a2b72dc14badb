/* Changes of many sessions at once: pin, unpin, tag, untag, remove. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_SESSION_CHANGES_POST_H
#define SJ_COLLECTOR_SERVER_HTTP_SESSION_CHANGES_POST_H

#include "collector-server/http/route.h"

/* sj_session_changes_post takes {"sessions": [ID, ...], "do": KIND, "key": K, "value": V} and gives
 * {"before": [...]}, how each was. SJ_EINVAL, SJ_ENOTFOUND, SJ_EPERM (pinned, or recorded: not
 * removed) at the first session that is refused; those before it stay changed. Blocks on other
 * writers. */
SJ_MUST_CHECK sj_status sj_session_changes_post(sj_request *request, const json_t *input,
                                                json_t **body, sj_error *error);

#endif
