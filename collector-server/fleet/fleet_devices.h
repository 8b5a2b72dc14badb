/* Devices as people name them, and their tags. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_FLEET_DEVICES_H
#define SJ_COLLECTOR_SERVER_FLEET_FLEET_DEVICES_H

#include "collector-server/fleet/fleet.h"

#include <jansson.h>

enum { SJ_FLEET_SET_MAX = 4096 };

typedef enum sj_fleet_scope {
    SJ_FLEET_ALL,   /* every enrolled device, now and later */
    SJ_FLEET_TAG,   /* those with a tag */
    SJ_FLEET_DEVICE /* one */
} sj_fleet_scope;

typedef struct sj_fleet_set {
    sj_fleet_scope scope;
    char subject[128]; /* KEY or KEY=VALUE; the device_id */
    size_t count;
    int64_t *devices; /* owned */
} sj_fleet_set;

/* sj_fleet_find_device finds by name, device_id or the beginning of the UUID (4 digits at least).
 * SJ_ENOTFOUND; SJ_EINVAL: more than one has it. */
SJ_MUST_CHECK sj_status sj_fleet_find_device(sj_fleet *fleet, const char *wanted,
                                             int64_t *device_id, sj_error *error);

/* sj_fleet_find_set finds "all", "tag:KEY", "tag:KEY=VALUE", or one device as sj_fleet_find_device
 * does. The first two may be empty and hold devices with a valid token only. SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_fleet_find_set(sj_fleet *fleet, const char *wanted, sj_fleet_set *set,
                                          sj_error *error);
void sj_fleet_set_deinit(sj_fleet_set *set);

/* sj_fleet_tag changes tags in the collector's name: `changes` maps keys to texts, or to null,
 * which hides a tag of the device too. Checked by sj_command_kind_check. */
SJ_MUST_CHECK sj_status sj_fleet_tag(sj_fleet *fleet, int64_t device_id, const json_t *changes,
                                     sj_error *error);

#endif
