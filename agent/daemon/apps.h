/* The catalogue of apps: device/apps.json in the state directory. It is read again at each use.
 *
 *   {"apps": [{"name": "shop", "command": ["/opt/shop/shop", "--kiosk"], "directory": "/opt/shop",
 *              "environment": {"LANG": "C"}, "prepare": [["/usr/bin/rm", "-f", "/tmp/cart"]],
 *              "policy": "jank"}]}
 *
 * Each step of "prepare" has to end with status 0 before the app is started. "policy" is a document
 * or the name of a shipped policy. Policies of the collector take precedence over it. */
#ifndef SJ_AGENT_DAEMON_APPS_H
#define SJ_AGENT_DAEMON_APPS_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stdbool.h>

/* Reads and checks the array of apps. It is empty if there is no file. The caller releases it.
 * Returns SJ_ECORRUPT if the file is wrong; `error` names line and field. Returns other errors of
 * sj_state_file_load, except SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_apps_load(json_t **apps, sj_error *error);

/* Checks a whole catalogue: only known keys, and each name once. Returns SJ_ECORRUPT if it is
 * wrong. */
SJ_MUST_CHECK sj_status sj_apps_check_catalogue(const json_t *catalogue, sj_error *error);

/* Checks one app, or the arguments of a launch, which have the same fields. Returns SJ_EINVAL if it
 * is wrong. */
SJ_MUST_CHECK sj_status sj_apps_check(const json_t *app, sj_error *error);

#endif
