/* Capacity of a function for recorded values, and the rules that exceed it. */
#ifndef SJ_AGENT_POLICY_VALUE_CAPACITY_H
#define SJ_AGENT_POLICY_VALUE_CAPACITY_H

#include "agent/policy/value_rules.h"

/* Lists in `places` what the matched rules record of a method of Mono or Java, up to `capacity`
 * values. Places of text limits use no capacity. Unused elements become 0. Thread-safe. */
void sj_value_capacity_list_managed(const sj_value_rules *rules, const sj_rule_set *matched,
                                    size_t capacity, uint8_t places[SJ_PLACES_PER_FUNCTION]);

/* Calls `visit` with a sentence for each rule that finds no capacity left in the functions that its
 * pattern names, because earlier rules use it. Skips typed rules, and rules that count memory or
 * change calls. Compares patterns only, so it needs no program. `managed_values`: the number of
 * values that are recorded of a method. `rules` may be NULL. The text is borrowed for the call.
 * Thread-safe. */
void sj_value_capacity_each_crowded(const sj_value_rules *rules, size_t managed_values,
                                    void *context, void (*visit)(void *context, const char *text));

#endif
