/* Finds the runtime of an app of the catalogue from its files, without starting the app. */
#ifndef SJ_AGENT_DAEMON_APP_RUNTIME_H
#define SJ_AGENT_DAEMON_APP_RUNTIME_H

#include "proto/base/error.h"

#include <jansson.h>

/* Returns "mono", "java", "objc" or "native", or "" if the app's program is missing. It decides by
 * the launcher that the command or its script names, and by the libraries that the program loads. A
 * file that begins with MZ is Mono's. The text is static. Blocks while it reads files. Thread-safe.
 */
const char *sj_app_runtime_find(const json_t *app);

/* Lists what recording the app needs: its program and, for a Mono program, Mono's profiler
 * interface. Each is {"need", "ok", "said"}. The caller releases the list. Returns SJ_EINVAL if the
 * program cannot be recorded; `error` says why, and the list is written nevertheless. A missing
 * profiler interface is listed but is not an error. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_app_runtime_needs(const json_t *app, json_t **needs, sj_error *error);

#endif
