/* The policies that the collector has set for this device: device/policies.json in the state
 * directory. {"digest": TEXT, "rules": [{"rule": N, "app": NAME or "", "policy": DOCUMENT}, ...]}.
 * The first rule that matches wins. */
#ifndef SJ_AGENT_DAEMON_DEVICE_POLICIES_H
#define SJ_AGENT_DAEMON_DEVICE_POLICIES_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stddef.h>

enum { SJ_POLICIES_DIGEST_BYTES = 65 };

/* Checks the object and each document. Returns SJ_EINVAL; `error` names the rule. */
SJ_MUST_CHECK sj_status sj_device_policies_check(const json_t *policies, sj_error *error);

/* Checks and stores the object. It applies to recordings that start afterwards. Returns SJ_EINVAL
 * or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_device_policies_keep(const json_t *policies, sj_error *error);

/* Writes the digest of the stored policies. It is "" if there are none, and "?" if the file cannot
 * be read. */
void sj_device_policies_digest(char digest[SJ_POLICIES_DIGEST_BYTES]);

/* Finds the policy document for an app of the catalogue (NULL: a program outside the catalogue).
 * The caller releases it. Writes NULL if no rule matches. Returns SJ_ECORRUPT if the file is
 * damaged. */
SJ_MUST_CHECK sj_status sj_device_policies_find(const char *app, json_t **policy, sj_error *error);

#endif
