/* Checks whether this machine allows rules that change what programs do. Only configuration files
 * of this machine allow such rules; a policy or a collector cannot. */
#ifndef SJ_AGENT_RECORDING_CHANGE_PERMIT_H
#define SJ_AGENT_RECORDING_CHANGE_PERMIT_H

#include "agent/policy/value_rules.h"
#include "proto/base/error.h"

#include <stdbool.h>

/* Checks every rule that changes calls of `program` (a path). Reads
 * $XDG_CONFIG_HOME/sojourn/changes.json (default: ~/.config) and /etc/sojourn/changes.json:
 *   {"allow": [{"programs": ["/usr/bin/curl"], "functions": ["open*"], "kinds": ["set", "return",
 *               "throw", "errno", "delay"]}]}
 * The kinds are set, return, throw, write, errno and delay. "programs" and "functions" are shell
 * patterns. A rule whose function is a pattern needs the same pattern, or "*", in "functions". One
 * entry of "allow" must name the program, the function and all kinds of a rule.
 *
 * If `asks_user` is false, reads only the file in /etc, because another user may control the
 * environment. Ignores a file unless root or this user owns it and no other user may write it.
 *
 * Returns SJ_EPERM if a rule is not allowed; the message names the rule and the file that could
 * allow it. Returns SJ_ECORRUPT if a file is damaged. */
SJ_MUST_CHECK sj_status sj_change_permit_check(const sj_value_rules *rules, const char *program,
                                               bool asks_user, sj_error *error);

#endif
