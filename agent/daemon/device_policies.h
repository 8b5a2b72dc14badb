/* The policies that the collector has set for this device: device/policies.json in the state
 * directory,
 * {"digest": TEXT, "rules": [{"rule": N, "app": NAME or "", "policy": DOCUMENT}, ...]}, the one
 * that wins first. */
#ifndef SJ_AGENT_DAEMON_DEVICE_POLICIES_H
#define SJ_AGENT_DAEMON_DEVICE_POLICIES_H

#include "proto/base/error.h"

#include <jansson.h>
#include <stddef.h>

enum { SJ_POLICIES_DIGEST_BYTES = 65 };

/* sj_device_policies_check checks the object, each document included. SJ_EINVAL names the rule. */
SJ_MUST_CHECK sj_status sj_device_policies_check(const json_t *policies, sj_error *error);

/* sj_device_policies_keep checks and keeps it; it holds for what is started from then on. SJ_EIO.
 */
SJ_MUST_CHECK sj_status sj_device_policies_keep(const json_t *policies, sj_error *error);

/* sj_device_policies_digest returns what is kept: "" nothing, "?" a file that cannot be read. */
void sj_device_policies_digest(char digest[SJ_POLICIES_DIGEST_BYTES]);

/* sj_device_policies_find gives the document that holds for an app of the catalogue (NULL: a
 * program that is none), released by the caller; NULL when there is none. SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_device_policies_find(const char *app, json_t **policy, sj_error *error);

#endif
