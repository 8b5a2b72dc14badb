/* Reads the costs of single calls from the table call_costs. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_COST_LOOKUP_H
#define SJ_COLLECTOR_SERVER_QUERY_COST_LOOKUP_H

#include "collector-server/query/block_scan.h"

typedef struct sj_cost_lookup {
    sqlite3 *database; /* borrowed */
    sqlite3_stmt *row; /* prepared at its first use */
} sj_cost_lookup;

void sj_cost_lookup_deinit(sj_cost_lookup *lookup);

/* Returns a cost of a call of the session of `scan`. `place` counts the columns of `calls` after
 * SJ_CALLS_CPU_NS. INT64_MIN: not measured. */
int64_t sj_cost_lookup_find(sj_cost_lookup *lookup, const sj_block_scan *scan, int64_t call_id,
                            int place);

#endif
