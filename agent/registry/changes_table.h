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
SJ_MUST_CHECK sj_status sj_changes_table_new(const char *runtime_directory,
                                             const sj_value_rules *rules, const char *program,
                                             double ns_per_tick, sj_changes_table **table,
                                             sj_error *error);

/* sj_changes_table_free takes all rules out of force; NULL is allowed. */
void sj_changes_table_free(sj_changes_table *table);

/* sj_changes_table_add says which rules (bits) a function has. Those that change nothing are left
 * out. */
void sj_changes_table_add(sj_changes_table *table, uint32_t function, uint32_t rules);

/* sj_changes_table_beat says that the recorder is there: several times a second. */
void sj_changes_table_beat(sj_changes_table *table);

/* sj_changes_table_stop takes all rules out of force for good. */
void sj_changes_table_stop(sj_changes_table *table);
bool sj_changes_table_is_on(const sj_changes_table *table);

#endif
