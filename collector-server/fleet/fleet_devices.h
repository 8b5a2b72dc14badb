/* Finds devices by name, id or tag. Changes their tags and quotas. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_FLEET_DEVICES_H
#define SJ_COLLECTOR_SERVER_FLEET_FLEET_DEVICES_H

#include "collector-server/fleet/fleet.h"

#include <jansson.h>

enum { SJ_FLEET_SET_MAX = 4096 };

typedef enum sj_fleet_scope {
    SJ_FLEET_ALL,   /* every enrolled device, including later ones */
    SJ_FLEET_TAG,   /* devices with a tag */
    SJ_FLEET_DEVICE /* one device */
} sj_fleet_scope;

typedef struct sj_fleet_set {
    sj_fleet_scope scope;
    char subject[128]; /* KEY or KEY=VALUE of a tag, or the device_id of one device; else "" */
    size_t count;
    int64_t *devices; /* owned */
} sj_fleet_set;

/* Finds a device by name, device_id or the beginning of its UUID (at least 4 digits). Returns
 * SJ_ENOTFOUND, or SJ_EINVAL if several devices match. */
SJ_MUST_CHECK sj_status sj_fleet_find_device(sj_fleet *fleet, const char *wanted,
                                             int64_t *device_id, sj_error *error);

/* Finds "all", "tag:KEY", "tag:KEY=VALUE", or one device as sj_fleet_find_device does. The first
 * three contain only devices with a valid token, and may be empty. The caller calls
 * sj_fleet_set_deinit.
 * Returns SJ_ELIMIT for more than SJ_FLEET_SET_MAX devices, and SJ_EINVAL for an invalid tag. */
SJ_MUST_CHECK sj_status sj_fleet_find_set(sj_fleet *fleet, const char *wanted, sj_fleet_set *set,
                                          sj_error *error);
void sj_fleet_set_deinit(sj_fleet_set *set);

/* Sets tags on behalf of the collector. `changes` maps keys to texts. A null hides the tag, even if
 * the device sets it. The caller must check `changes` before, by sj_command_kind_check. Returns an
 * error of the database (sj_database_status). */
SJ_MUST_CHECK sj_status sj_fleet_tag(sj_fleet *fleet, int64_t device_id, const json_t *changes,
                                     sj_error *error);

/* Sets a device's daily quota, on behalf of the user `by`. `quota` may have `bytes`, `sessions`,
 * or `unlimited`; the collector's default replaces a missing limit. An empty `quota` removes the
 * device's own quota, so that the default applies. Bytes and sessions counted earlier today still
 * count. Returns SJ_EINVAL if `unlimited` is combined with a limit. */
SJ_MUST_CHECK sj_status sj_fleet_set_quota(sj_fleet *fleet, int64_t device_id, const json_t *quota,
                                           const char *by, sj_error *error);

#endif
