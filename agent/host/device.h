/* Identity of this device, as reported to the collector. */
#ifndef SJ_AGENT_HOST_DEVICE_H
#define SJ_AGENT_HOST_DEVICE_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"
#include "proto/base/ids.h"

#include <stddef.h>

enum { SJ_DEVICE_TAGS = 32, SJ_DEVICE_TAG_BYTES = 128 };

typedef struct sj_device {
    uint8_t id[SJ_DEVICE_ID_BYTES]; /* random, generated once and kept in the state directory */
    char name[128];                 /* host name */
    char model[128];                /* model of the hardware, from its firmware; "" if not known */
    char os[128];
    char build[128]; /* kernel name and release, then BUILD_ID of /etc/os-release if it has one */
    char machine[32];
    char boot_id[64];
    char tags[SJ_DEVICE_TAGS][SJ_DEVICE_TAG_BYTES]; /* key=value */
    size_t tag_count;
} sj_device;

/* Reads the identity of this device. Generates its id the first time. Sets `tag_count` to 0.
 * Returns SJ_EIO, or an error of sj_state_directory. */
SJ_MUST_CHECK sj_status sj_device_read(sj_device *device, sj_error *error);

/* Builds the HELLO frame; the caller frees `*frame`. `token` may be NULL. `secret` belongs to the
 * session whose frames follow (agent/uplink/spool_secret.h); it may be empty. Returns SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_device_hello(const sj_device *device, const char *token, sj_slice secret,
                                        uint8_t **frame, size_t *size_bytes);

#endif
