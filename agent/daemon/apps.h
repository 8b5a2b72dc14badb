/* The catalogue of apps: device/apps.json in the state directory, read anew each time.
 *
 *   {"apps": [{"name": "shop", "command": ["/opt/shop/shop", "--kiosk"], "directory": "/opt/shop",
 *              "environment": {"LANG": "C"}, "prepare": [["/usr/bin/rm", "-f", "/tmp/cart"]],
 *              "policy": "jank"}]}
 *
 * Before the app is started each step of "prepare" has to end with status 0. "policy" is a document
 * or the name of a shipped one; policies of the collector come before it.
 */
#ifndef SJ_AGENT_DAEMON_APPS_H
#define SJ_AGENT_DAEMON_APPS_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stdbool.h>

/* sj_apps_load gives the array of apps, checked; an empty one when there is no file. The caller
 * releases it. SJ_ECORRUPT names line and field. */
SJ_MUST_CHECK sj_status sj_apps_load(json_t **apps, sj_error *error);

/* sj_apps_check_catalogue checks a whole catalogue: known keys only, names given once. SJ_ECORRUPT.
 */
SJ_MUST_CHECK sj_status sj_apps_check_catalogue(const json_t *catalogue, sj_error *error);

/* sj_apps_check checks one app, or the arguments of a launch that have the same fields. */
SJ_MUST_CHECK sj_status sj_apps_check(const json_t *app, sj_error *error);

#endif
