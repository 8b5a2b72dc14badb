/* The recorder's side of the table of changes that agents map (agent/abi/changes.h). Any thread,
 * except for new and free. */
#ifndef SJ_AGENT_REGISTRY_CHANGES_TABLE_H
#define SJ_AGENT_REGISTRY_CHANGES_TABLE_H

#include "agent/abi/changes.h"
#include "agent/policy/value_rules.h"
#include "proto/base/error.h"

typedef struct sj_changes_table sj_changes_table;

/* Creates the table's file in the runtime directory. The table applies to processes of `program`, a
 * path without links. `ns_per_tick` is that of the raw clock. SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_changes_table_new(const char *runtime_directory, sj_value_rules *rules,
                                             const char *program, double ns_per_tick,
                                             sj_changes_table **table, sj_error *error);

/* Disables all rules and frees the table. NULL is allowed. */
void sj_changes_table_free(sj_changes_table *table);

/* Adds the rules about a function, and the rules that name it as a caller. Ignores rules that
 * change nothing. `is_quiet`: only these rules need the values of its calls. `is_woven`: its code
 * is rewritten for these rules. */
void sj_changes_table_add(sj_changes_table *table, uint32_t function, const sj_rule_set *rules,
                          const sj_rule_set *callers, bool is_quiet, bool is_woven);

/* Extends the table to rules that were added to the list with which it was made. They do nothing
 * before sj_changes_table_replace. Only one thread may call these two functions. */
void sj_changes_table_grow(sj_changes_table *table);

/* Puts the rules of another list into force. Each place of the table has a rule in the table's own
 * list; probes know these places. The place takes the new rule with the same name, function, value
 * and callers.
 *
 * If code was rewritten for a place, the new rule must also have the same action and the same kinds
 * of conditions. A place without a new rule changes nothing. `*unknown` counts the new rules
 * without a place. */
void sj_changes_table_replace(sj_changes_table *table, sj_value_rules *rules, size_t *unknown);

/* Applies a mark from outside of the processes to all of them. */
void sj_changes_table_mark(sj_changes_table *table, const char *name, bool end);

/* Returns the path of the program to whose processes the table applies; borrowed. */
const char *sj_changes_table_program(const sj_changes_table *table);

/* Returns how many calls of methods the rule `name` left unchanged because the value it sets does
 * not fit their type. */
uint64_t sj_changes_table_unfit(const sj_changes_table *table, const char *name);

/* Notes that the recorder is alive. Called several times a second. */
void sj_changes_table_beat(sj_changes_table *table);

/* Disables all rules for good. */
void sj_changes_table_stop(sj_changes_table *table);

#endif
