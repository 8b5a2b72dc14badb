/* Checks whether this machine allows rules that change what programs do. Only its own configuration
 * allows programs, functions and kinds. A policy or a collector cannot. */
#ifndef SJ_AGENT_RECORDING_CHANGE_PERMIT_H
#define SJ_AGENT_RECORDING_CHANGE_PERMIT_H

#include "agent/policy/value_rules.h"
#include "proto/base/error.h"

#include <stdbool.h>

/* Checks every rule that changes calls of `program` (a path). Reads
 * $XDG_CONFIG_HOME/sojourn/changes.json (default: ~/.config) and /etc/sojourn/changes.json:
 *   {"allow": [{"programs": ["/usr/bin/curl"], "functions": ["open*"], "kinds": ["set", "return",
 *               "throw", "errno", "delay"]}]}
 * If `asks_user` is false, reads only the file in /etc: another user may control the environment.
 * A file counts only if root or this user owns it and no other user may write it.
 *
 * Returns SJ_EPERM if a rule is not allowed; the message names the rule and the file that could
 * allow it. Returns SJ_ECORRUPT if a file is damaged. */
SJ_MUST_CHECK sj_status sj_change_permit_check(const sj_value_rules *rules, const char *program,
                                               bool asks_user, sj_error *error);

#endif
