/* The recorder's side of the table of changes that agents map (agent/abi/changes.h). Thread-safe,
 * except new and free. */
#ifndef SJ_AGENT_REGISTRY_CHANGES_TABLE_H
#define SJ_AGENT_REGISTRY_CHANGES_TABLE_H

#include "agent/abi/changes.h"
#include "agent/policy/value_rules.h"
#include "proto/base/error.h"

typedef struct sj_changes_table sj_changes_table;

/* Creates the table's file in the runtime directory. The table applies to processes of `program`, a
 * path without symbolic links. `ns_per_tick` is the length of a tick of the recorder's raw clock.
 * Returns SJ_EIO or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_changes_table_new(const char *runtime_directory, sj_value_rules *rules,
                                             const char *program, double ns_per_tick,
                                             sj_changes_table **table, sj_error *error);

/* Disables all rules and frees the table. NULL is allowed. */
void sj_changes_table_free(sj_changes_table *table);

/* Adds the rules about a function, and the rules that name it as a caller. Ignores rules that
 * change nothing. `is_quiet` is true if only these rules use the values of the function's calls and
 * each rule has a condition on them. Then probes do not record values that meet no condition.
 * `is_woven` is true if the function's code is rewritten for these rules (Java). */
void sj_changes_table_add(sj_changes_table *table, uint32_t function, const sj_rule_set *rules,
                          const sj_rule_set *callers, bool is_quiet, bool is_woven);

/* Extends the table to the rules that were added to its list since its creation or the last call.
 * These rules change nothing before sj_changes_table_replace. Only one thread may call
 * sj_changes_table_grow and sj_changes_table_replace. */
void sj_changes_table_grow(sj_changes_table *table);

/* Replaces the active rules by the rules of another list. Probes refer to a rule by its index in
 * the table's own list. The new rule gets the index of the rule in that list with the same name,
 * function, value and callers. An index without a new rule changes nothing.
 *
 * If code was rewritten for an index, the new rule must also have the same action and the same
 * kinds of conditions. `*unknown` is the number of new rules that change calls and got no index. */
void sj_changes_table_replace(sj_changes_table *table, sj_value_rules *rules, size_t *unknown);

/* Applies a mark from the command line to the rules of all processes. `end` is true if the mark
 * ends a phase. */
void sj_changes_table_mark(sj_changes_table *table, const char *name, bool end);

/* Returns the path of the program to whose processes the table applies. Borrowed from the table. */
const char *sj_changes_table_program(const sj_changes_table *table);

/* Returns the number of method calls that the rule `name` left unchanged because its value does not
 * have the methods' type. */
uint64_t sj_changes_table_unfit(const sj_changes_table *table, const char *name);

/* Stores the current time as proof that the recorder is alive. Call it several times a second. */
void sj_changes_table_beat(sj_changes_table *table);

/* Disables all rules for good. */
void sj_changes_table_stop(sj_changes_table *table);

#endif
