/* Parses the part of a rule about values that describes a change. All functions return SJ_EINVAL if
 * the value is not valid; the error says where. */
#ifndef SJ_AGENT_POLICY_POLICY_CHANGES_H
#define SJ_AGENT_POLICY_POLICY_CHANGES_H

#include "agent/policy/policy_reader.h"

/* Parses "change" into the current rule, after its function, value and condition. Returns SJ_EINVAL
 * with the place. */
SJ_MUST_CHECK sj_status sj_policy_read_change(sj_policy_reader *reader, json_t *value);

/* Parses a list of conditions on the whole call into the current rule, after its value. If
 * `changes`, the rule changes calls, and only conditions that the traced program can evaluate are
 * allowed. Returns SJ_EINVAL. */
SJ_MUST_CHECK sj_status sj_policy_read_conditions(sj_policy_reader *reader, json_t *list,
                                                  bool changes);

/* Functions for sj_policy_key.parse. Each sets a part of the value descriptor at `target`: the
 * number of an argument's register, the kind, or errno. */
SJ_MUST_CHECK sj_status sj_policy_read_register(sj_policy_reader *reader, void *target,
                                                json_t *value);
SJ_MUST_CHECK sj_status sj_policy_read_as(sj_policy_reader *reader, void *target, json_t *value);
SJ_MUST_CHECK sj_status sj_policy_read_errno(sj_policy_reader *reader, void *target, json_t *value);

/* The words of a comparison, without "always": a part of a sj_policy_key. */
#define SJ_VALUE_COMPARISON_WORDS                                                                  \
    .words = sj_value_comparison_words, .least = 1, .most = SJ_VALUE_COMPARISONS

/* Parses a number that is compared with integers; a text may hold "0x...". */
SJ_MUST_CHECK sj_status sj_policy_read_whole(sj_policy_reader *reader, json_t *value,
                                             bool is_signed, uint64_t *bits);

#endif
