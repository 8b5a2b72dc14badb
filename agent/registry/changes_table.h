/* The recorder's side of the table of changes that agents map (agent/abi/changes.h). Thread-safe,
 * except new and free. */
#ifndef SJ_AGENT_REGISTRY_CHANGES_TABLE_H
#define SJ_AGENT_REGISTRY_CHANGES_TABLE_H

#include "agent/abi/changes.h"
#include "agent/policy/value_rules.h"
#include "proto/base/error.h"

typedef struct sj_changes_table sj_changes_table;

/* Creates the table's file in the runtime directory. The table applies to processes of `program`, a
 * path without links. `ns_per_tick`: of the raw clock. SJ_EIO, SJ_ENOMEM. */
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

/* Extends the table to rules that were added to its list. They do nothing before
 * sj_changes_table_replace. Only one thread may call these two functions. */
void sj_changes_table_grow(sj_changes_table *table);

/* Replaces the active rules by the rules of another list. Each index of the table belongs to a rule
 * of the table's own list, and probes know the index. It gets the new rule with the same name,
 * function, value and callers; without such a rule it changes nothing.
 *
 * If code was rewritten for an index, the new rule must also have the same action and the same
 * kinds of conditions. `*unknown`: number of new rules that got no index. */
void sj_changes_table_replace(sj_changes_table *table, sj_value_rules *rules, size_t *unknown);

/* Applies a mark that comes from outside of the processes (the command line) to all processes. */
void sj_changes_table_mark(sj_changes_table *table, const char *name, bool end);

/* Returns the path of the program to whose processes the table applies; borrowed. */
const char *sj_changes_table_program(const sj_changes_table *table);

/* Returns the number of method calls that rule `name` left unchanged because its value does not fit
 * their type. */
uint64_t sj_changes_table_unfit(const sj_changes_table *table, const char *name);

/* Notes that the recorder is alive. Called several times a second. */
void sj_changes_table_beat(sj_changes_table *table);

/* Disables all rules for good. */
void sj_changes_table_stop(sj_changes_table *table);

#endif
