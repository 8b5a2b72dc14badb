/* The enrolment of this device at one or more collectors: address, certificate and token of each,
 * and the device's name there. It is stored in device/collector.json of the state directory, mode
 * 0600. A device is enrolled by an invitation, which is a JSON file of the collector: {"collector":
 * URL, "token": TEXT, "certificate": PEM}. The collectors after the first are objects of the same
 * form in the array "more". */
#ifndef SJ_AGENT_DAEMON_ENROLMENT_H
#define SJ_AGENT_DAEMON_ENROLMENT_H

#include "agent/host/device.h"
#include "agent/recording/session_uplink.h"
#include "agent/uplink/chosen_channel.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct sj_enrolment {
    /* In order of preference. Each has an address and a token. */
    sj_session_collector collectors[SJ_COLLECTORS_MAX];
    size_t count;     /* At least 1. */
    json_t *document; /* Owns the texts above. */
} sj_enrolment;

/* Reads the enrolment. Returns SJ_ENOTFOUND if the device is not enrolled, SJ_ECORRUPT if the file
 * is damaged, SJ_EIO or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_enrolment_load(sj_enrolment *enrolment, sj_error *error);
void sj_enrolment_deinit(sj_enrolment *enrolment);

/* Checks an invitation: an address, a token of 64 hexadecimal digits and, for tls+ addresses, a
 * certificate. Returns SJ_EINVAL; `error` names the fault. */
SJ_MUST_CHECK sj_status sj_invitation_check(const json_t *invitation, sj_error *error);

/* Changes of the device's name and tags. */
typedef struct sj_enrolment_names {
    const char *name; /* NULL: unchanged. A new enrolment begins with the host name. */
    const char *tags[SJ_DEVICE_TAGS]; /* KEY=VALUE sets a tag, KEY= removes it. */
    size_t tag_count;
} sj_enrolment_names;

/* Enrols the device at the collector of an invitation, and stores the reply. `collector` replaces
 * the invitation's address unless it is NULL. If `is_further`, the collector becomes the last of
 * the device's collectors, or replaces the one with its address. Otherwise it becomes the only one.
 * Returns SJ_ELIMIT if the device has SJ_COLLECTORS_MAX collectors already. `hint`
 * (SJ_ERROR_TEXT_BYTES) receives a text of the collector, or "". Blocks for up to 15 s for the
 * connection and up to 15 s for the reply. Returns SJ_EPERM if the collector refuses. */
SJ_MUST_CHECK sj_status sj_enrolment_make(const char *invitation_path, const char *collector,
                                          bool is_further, const sj_enrolment_names *names,
                                          char *hint, sj_error *error);

/* Removes one of several collectors. A session that was sent to it in part continues at another
 * one. Returns SJ_ENOTFOUND if the device is not enrolled there, and SJ_EINVAL if it is the only
 * collector. */
SJ_MUST_CHECK sj_status sj_enrolment_forget(const char *url, sj_error *error);

/* Changes name and tags of an enrolled device. A running daemon reports them to the collector
 * within seconds. Returns SJ_ENOTFOUND if the device is not enrolled, SJ_EINVAL if a name or tag is
 * invalid, and SJ_ELIMIT if there are too many tags. */
SJ_MUST_CHECK sj_status sj_enrolment_rename(const sj_enrolment_names *names, sj_error *error);

/* Reads the device's identity with its given name and tags. Returns an error of sj_device_read or
 * sj_state_file_load. A missing file is not an error. */
SJ_MUST_CHECK sj_status sj_enrolment_device(sj_device *device, sj_error *error);

#endif
