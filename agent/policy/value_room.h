/* How many values of a function have room, and which rules find none. */
#ifndef SJ_AGENT_POLICY_VALUE_ROOM_H
#define SJ_AGENT_POLICY_VALUE_ROOM_H

#include "agent/policy/value_rules.h"

/* sj_value_room_list_managed lists in `places` what the matched rules record of a method of Mono or
 * Java, as far as there is room for `capacity` values. Native functions have lengths of texts in
 * memory, methods have none: places of lengths stay there and take no room. The rest becomes 0. Any
 * thread. */
void sj_value_room_list_managed(const sj_value_rules *rules, const sj_rule_set *matched,
                                size_t capacity, uint8_t places[SJ_PLACES_PER_FUNCTION]);

/* sj_value_room_each_crowded calls `visit` with a sentence for each rule that finds no room in the
 * functions which its pattern names, because other rules about them come first. It needs no
 * program: it asks of each pattern which rules match it. `managed_values` is how many values of a
 * method are recorded. NULL is the empty list. The text lasts as long as the call. Any thread. */
void sj_value_room_each_crowded(const sj_value_rules *rules, size_t managed_values, void *context,
                                void (*visit)(void *context, const char *text));

#endif
