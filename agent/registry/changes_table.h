/* The table of changes that agents map (agent/abi/changes.h), as its recorder writes it. Any
 * thread, but for new and free. */
#ifndef SJ_AGENT_REGISTRY_CHANGES_TABLE_H
#define SJ_AGENT_REGISTRY_CHANGES_TABLE_H

#include "agent/abi/changes.h"
#include "agent/policy/value_rules.h"
#include "proto/base/error.h"

typedef struct sj_changes_table sj_changes_table;

/* sj_changes_table_new makes the file in the runtime directory, in force in processes of
 * `program` (a path without links). `ns_per_tick` is that of
 * the raw clock. SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_changes_table_new(const char *runtime_directory, sj_value_rules *rules,
                                             const char *program, double ns_per_tick,
                                             sj_changes_table **table, sj_error *error);

/* sj_changes_table_free takes all rules out of force; NULL is allowed. */
void sj_changes_table_free(sj_changes_table *table);

/* sj_changes_table_add says which rules are about a function, and which about calls by it. Those
 * that change nothing are left out. `is_quiet`: nobody else asks for the values of its calls.
 * `is_woven`: its code is rewritten for what these rules do. */
void sj_changes_table_add(sj_changes_table *table, uint32_t function, const sj_rule_set *rules,
                          const sj_rule_set *callers, bool is_quiet, bool is_woven);

/* sj_changes_table_grow makes room for rules that were added to the list that the table was made
 * with; they do nothing before sj_changes_table_replace. One thread calls the two. */
void sj_changes_table_grow(sj_changes_table *table);

/* sj_changes_table_replace takes over what other rules do: each in the place of the one that has
 * its name, function, value and callers in the list that the table was made with, whose places the
 * probes know, and where code is rewritten for them doing the same under the same kinds of
 * conditions. One that is not there any more changes nothing. `*unknown` counts those that have no
 * place. */
void sj_changes_table_replace(sj_changes_table *table, sj_value_rules *rules, size_t *unknown);

/* sj_changes_table_mark: a mark has come from outside of the processes, for all of them. */
void sj_changes_table_mark(sj_changes_table *table, const char *name, bool end);

/* sj_changes_table_program borrows the path of the program whose processes it is about. */
const char *sj_changes_table_program(const sj_changes_table *table);

/* sj_changes_table_unfit returns how many calls of methods the rule of that name left as they were
 * because what it sets is not of their type. */
uint64_t sj_changes_table_unfit(const sj_changes_table *table, const char *name);

/* sj_changes_table_beat says that the recorder is there: several times a second. */
void sj_changes_table_beat(sj_changes_table *table);

/* sj_changes_table_stop takes all rules out of force for good. */
void sj_changes_table_stop(sj_changes_table *table);

#endif
