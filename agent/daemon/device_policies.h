/* The policies that each collector has set for this device, in the state directory. The file of the
 * first collector is device/policies.json. The file of each further collector is
 * device/policies-NUMBER.json. A collector's policies apply to recordings that this collector
 * starts. Format of a file: {"digest": TEXT, "rules": [{"rule": N, "app": NAME or "", "policy":
 * DOCUMENT}, ...]}. The first rule that matches wins. */
#ifndef SJ_AGENT_DAEMON_DEVICE_POLICIES_H
#define SJ_AGENT_DAEMON_DEVICE_POLICIES_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_POLICIES_DIGEST_BYTES = 65 };

/* Checks the object and each document. Returns SJ_EINVAL; `error` names the rule. */
SJ_MUST_CHECK sj_status sj_device_policies_check(const json_t *policies, sj_error *error);

/* Returns the number of a collector's policies: 0 for the first collector of the device, else a
 * number that is computed from its address. */
uint32_t sj_device_policies_number(size_t place, const char *url);

/* Checks and stores the object. It applies to recordings that start afterwards. Returns SJ_EINVAL
 * or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_device_policies_keep(uint32_t number, const json_t *policies,
                                                sj_error *error);

/* Writes the digest of the stored policies. It is "" if there are none, and "?" if the file cannot
 * be read. */
void sj_device_policies_digest(uint32_t number, char digest[SJ_POLICIES_DIGEST_BYTES]);

/* Finds the policy document for an app of the catalogue (NULL: a program outside the catalogue).
 * The caller releases it. Writes NULL if no rule matches. Returns SJ_ECORRUPT or SJ_EINVAL if the
 * file is damaged. */
SJ_MUST_CHECK sj_status sj_device_policies_find(uint32_t number, const char *app, json_t **policy,
                                                sj_error *error);

#endif
