/* Reads CPU time and memory of single calls from the table call_costs. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_COST_LOOKUP_H
#define SJ_COLLECTOR_SERVER_QUERY_COST_LOOKUP_H

#include "collector-server/query/block_scan.h"

typedef struct sj_cost_lookup {
    sqlite3 *database; /* borrowed */
    sqlite3_stmt *row; /* prepared at its first use */
} sj_cost_lookup;

void sj_cost_lookup_deinit(sj_cost_lookup *lookup);

/* Returns a cost of a call in the scan's current session. `place` is the column of `calls` minus
 * SJ_CALLS_CPU_NS. Returns INT64_MIN if the cost was not measured or cannot be read. */
int64_t sj_cost_lookup_find(sj_cost_lookup *lookup, const sj_block_scan *scan, int64_t call_id,
                            int place);

#endif
