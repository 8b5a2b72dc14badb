/* Sums of the costs of measured calls: as columns of call_paths and function_stats, and as bytes
 * that the collector resumes from. */
#ifndef SJ_COLLECTOR_SERVER_STORE_COST_SUMS_H
#define SJ_COLLECTOR_SERVER_STORE_COST_SUMS_H

#include "proto/base/cursor.h"
#include "proto/callgraph/callgraph.h"

enum {
    SJ_COST_COLUMNS = 7, /* cpu_ns and the columns that follow it */
    /* maximum size that sj_cost_state_write appends */
    SJ_COST_STATE_BYTES = 10 * (2 + 2 * SJ_COSTS)
};

/* Values of the columns, in their order. A NULL in `known` means that no call was measured for that
 * column. */
typedef struct sj_cost_columns {
    int64_t values[SJ_COST_COLUMNS];
    const int64_t *known[SJ_COST_COLUMNS];
} sj_cost_columns;

/* Fills in the columns of a call path. `sums` may be NULL. */
void sj_cost_columns_of_path(const sj_path_cost *sums, sj_cost_columns *columns);

/* Fills in the columns of a function from the sum over its paths. A call inside a measured call of
 * the same function adds only its self costs. `sums` may be NULL. */
void sj_cost_columns_of_function(const sj_path_cost *sums, sj_cost_columns *columns);

/* sj_cost_state_write appends the sums to a path's state. sj_cost_state_read reads them, and
 * returns false if `reader` is at its end: the path has no measured calls. */
void sj_cost_state_write(sj_writer *writer, const sj_path_cost *sums);
bool sj_cost_state_read(sj_reader *reader, sj_path_cost *sums);

/* Sums over the paths of each function, sorted by function. A zeroed structure is empty. */
typedef struct sj_function_costs {
    struct sj_function_cost {
        uint32_t function;
        sj_path_cost sums;
    } * items;
    size_t count;
} sj_function_costs;

/* Adds up all paths of a graph that have measured calls. Returns SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_function_costs_sum(const sj_callgraph *graph, sj_function_costs *costs);
void sj_function_costs_deinit(sj_function_costs *costs);

/* Returns NULL for a function without measured calls. */
const sj_path_cost *sj_function_costs_find(const sj_function_costs *costs, uint32_t function);

#endif
