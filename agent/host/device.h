/* Who this device is, as reported to the collector. */
#ifndef SJ_AGENT_HOST_DEVICE_H
#define SJ_AGENT_HOST_DEVICE_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"
#include "proto/base/ids.h"

#include <stddef.h>

enum { SJ_DEVICE_TAGS = 32, SJ_DEVICE_TAG_BYTES = 128 };

typedef struct sj_device {
    uint8_t id[SJ_DEVICE_ID_BYTES]; /* random, made once and kept in the state directory */
    char name[128];                 /* host name */
    char model[128];                /* of the hardware, as its firmware says; "": it does not */
    char os[128];
    char build[128]; /* of the system software: kernel, and the image's build id */
    char machine[32];
    char boot_id[64];
    char tags[SJ_DEVICE_TAGS][SJ_DEVICE_TAG_BYTES]; /* key=value */
    size_t tag_count;
} sj_device;

/* sj_device_read finds out who this device is; makes its id the first time. It has no tags. SJ_EIO.
 */
SJ_MUST_CHECK sj_status sj_device_read(sj_device *device, sj_error *error);

/* sj_device_hello builds the HELLO frame; `*frame` is allocated, the caller frees it. `token` may
 * be NULL, and `secret`, that of the session which follows (agent/uplink/spool_secret.h), empty.
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_device_hello(const sj_device *device, const char *token, sj_slice secret,
                                        uint8_t **frame, size_t *size_bytes);

#endif
