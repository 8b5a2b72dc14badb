/* What a rule about values changes, as a policy has it. */
#ifndef SJ_AGENT_POLICY_POLICY_CHANGES_H
#define SJ_AGENT_POLICY_POLICY_CHANGES_H

#include "agent/policy/policy_reader.h"

/* sj_policy_read_change reads "change" into the rule at hand, whose function, value and condition
 * have been read. SJ_EINVAL with the place. */
SJ_MUST_CHECK sj_status sj_policy_read_change(sj_policy_reader *reader, json_t *value);

#endif
