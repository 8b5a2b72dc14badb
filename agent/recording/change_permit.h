/* Whether this machine allows rules that change what programs do. Its own configuration says so,
 * for programs, functions and kinds; neither a policy nor a collector can. */
#ifndef SJ_AGENT_RECORDING_CHANGE_PERMIT_H
#define SJ_AGENT_RECORDING_CHANGE_PERMIT_H

#include "agent/policy/value_rules.h"
#include "proto/base/error.h"

#include <stdbool.h>

/* sj_change_permit_check asks $XDG_CONFIG_HOME/sojourn/changes.json (~/.config) and
 * /etc/sojourn/changes.json about every rule that changes calls of `program` (a path):
 *   {"allow": [{"programs": ["/usr/bin/curl"], "functions": ["open*"], "kinds": ["set", "return",
 *               "throw", "errno", "delay"]}]}
 * `asks_user` false: only the latter, where the environment may be someone else's.
 * A file counts only if root or this user owns it and nobody else may write it. SJ_EPERM: a rule is
 * not allowed, the message says which and where it could be; SJ_ECORRUPT: a file is damaged. */
SJ_MUST_CHECK sj_status sj_change_permit_check(const sj_value_rules *rules, const char *program,
                                               bool asks_user, sj_error *error);

#endif
