/* What a rule about values changes, as a policy has it. */
#ifndef SJ_AGENT_POLICY_POLICY_CHANGES_H
#define SJ_AGENT_POLICY_POLICY_CHANGES_H

#include "agent/policy/policy_reader.h"

/* sj_policy_read_change reads "change" into the rule at hand, whose function, value and condition
 * have been read. SJ_EINVAL with the place. */
SJ_MUST_CHECK sj_status sj_policy_read_change(sj_policy_reader *reader, json_t *value);

/* sj_policy_read_conditions reads a list of conditions on the whole call into the rule at hand,
 * whose value has been read; `changes`: of those that the program itself can judge. */
SJ_MUST_CHECK sj_status sj_policy_read_conditions(sj_policy_reader *reader, json_t *list,
                                                  bool changes);

/* sj_policy_read_whole reads a number that is compared with whole ones; in a text, it may be
 * "0x...". */
SJ_MUST_CHECK sj_status sj_policy_read_whole(sj_policy_reader *reader, json_t *value,
                                             bool is_signed, uint64_t *bits);

#endif
