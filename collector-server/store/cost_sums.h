/* Sums of what measured calls have cost, as columns of call_paths and function_stats, and as the
 * bytes from which the collector resumes. */
#ifndef SJ_COLLECTOR_SERVER_STORE_COST_SUMS_H
#define SJ_COLLECTOR_SERVER_STORE_COST_SUMS_H

#include "proto/base/cursor.h"
#include "proto/callgraph/callgraph.h"

enum {
    SJ_COST_COLUMNS = 7, /* cpu_ns and those behind it */
    SJ_COST_STATE_BYTES = 10 * (2 + 2 * SJ_COSTS)
};

/* Values of the columns, in their order; NULL: no call was measured so. */
typedef struct sj_cost_columns {
    int64_t values[SJ_COST_COLUMNS];
    const int64_t *known[SJ_COST_COLUMNS];
} sj_cost_columns;

/* sj_cost_columns_of_path fills in the columns of a path; `sums` may be NULL. */
void sj_cost_columns_of_path(const sj_path_cost *sums, sj_cost_columns *columns);

/* sj_cost_columns_of_function: likewise, of the sum over the paths of a function: calls within
 * measured calls of the same function count once. */
void sj_cost_columns_of_function(const sj_path_cost *sums, sj_cost_columns *columns);

/* sj_cost_state_write writes sums behind the rest of a path's state; sj_cost_state_read reads them:
 * false when there are none. */
void sj_cost_state_write(sj_writer *writer, const sj_path_cost *sums);
bool sj_cost_state_read(sj_reader *reader, sj_path_cost *sums);

/* Sums over the paths of each function, by rising function. Zeroed is empty. */
typedef struct sj_function_costs {
    struct sj_function_cost {
        uint32_t function;
        sj_path_cost sums;
    } * items;
    size_t count;
} sj_function_costs;

/* sj_function_costs_sum adds up all paths of a graph whose calls are measured. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_function_costs_sum(const sj_callgraph *graph, sj_function_costs *costs);
void sj_function_costs_deinit(sj_function_costs *costs);

/* sj_function_costs_find returns NULL for a function whose calls are not measured. */
const sj_path_cost *sj_function_costs_find(const sj_function_costs *costs, uint32_t function);

#endif
