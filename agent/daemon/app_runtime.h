/* What an app of the catalogue runs on, found from its files without starting it. */
#ifndef SJ_AGENT_DAEMON_APP_RUNTIME_H
#define SJ_AGENT_DAEMON_APP_RUNTIME_H

#include "proto/base/error.h"

#include <jansson.h>

/* sj_app_runtime_find returns "mono", "java", "objc", "native", or "" when its program is not
 * there: by the launcher that its command or its script names, and by the libraries that its
 * program loads. Static. Blocking: reads files. Any thread. */
const char *sj_app_runtime_find(const json_t *app);

/* sj_app_runtime_needs lists what recording needs of the app's files, each {"need", "ok", "said"};
 * the caller releases it. SJ_EINVAL: something is missing, as `error` says; the list is there
 * nevertheless. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_app_runtime_needs(const json_t *app, json_t **needs, sj_error *error);

#endif
