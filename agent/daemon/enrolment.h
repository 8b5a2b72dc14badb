/* What ties this device to a collector: address, certificate and token, and what the device is
 * called there, kept in the state directory (device/collector.json, mode 0600). The invitation that
 * makes it is a JSON file of the collector: {"collector": URL, "token": TEXT, "certificate": PEM}.
 */
#ifndef SJ_AGENT_DAEMON_ENROLMENT_H
#define SJ_AGENT_DAEMON_ENROLMENT_H

#include "agent/host/device.h"

#include <jansson.h>
#include <stddef.h>

typedef struct sj_enrolment {
    char *collector;   /* URL */
    char *token;       /* of this device */
    char *certificate; /* PEM; NULL: the address needs none */
} sj_enrolment;

/* sj_enrolment_load reads it. SJ_ENOTFOUND: the device is not enrolled. */
SJ_MUST_CHECK sj_status sj_enrolment_load(sj_enrolment *enrolment, sj_error *error);
void sj_enrolment_deinit(sj_enrolment *enrolment);

/* sj_invitation_check checks an invitation that was read: an address, a token of 64 hexadecimal
 * digits and, for tls+ addresses, a certificate. SJ_EINVAL names what is wrong. */
SJ_MUST_CHECK sj_status sj_invitation_check(const json_t *invitation, sj_error *error);

/* What the device is called: its name and tags. */
typedef struct sj_enrolment_names {
    const char *name;                 /* NULL: not changed; at first the host name */
    const char *tags[SJ_DEVICE_TAGS]; /* KEY=VALUE sets a tag, KEY= takes it away */
    size_t tag_count;
} sj_enrolment_names;

/* sj_enrolment_make takes an invitation to the collector and keeps what it answers. `collector`
 * overrides the invitation's address when it is not NULL. `hint` (SJ_ERROR_TEXT_BYTES) gets what
 * the collector has to say, or "". Blocking up to 15 s. SJ_EPERM: the collector refuses. */
SJ_MUST_CHECK sj_status sj_enrolment_make(const char *invitation_path, const char *collector,
                                          const sj_enrolment_names *names, char *hint,
                                          sj_error *error);

/* sj_enrolment_rename changes name and tags of an enrolled device; a daemon that runs reports to
 * the collector within seconds. SJ_ENOTFOUND: it is not enrolled; SJ_EINVAL: no such name or tag
 * can be. */
SJ_MUST_CHECK sj_status sj_enrolment_rename(const sj_enrolment_names *names, sj_error *error);

/* sj_enrolment_device reads who this device is, with the name and tags that it was given. */
SJ_MUST_CHECK sj_status sj_enrolment_device(sj_device *device, sj_error *error);

#endif
