/* Rows of a call tree, and trees made of them: what some functions call, and who calls them. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_TREE_ROWS_H
#define SJ_COLLECTOR_SERVER_QUERY_TREE_ROWS_H

#include "proto/base/hash_map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What measured calls have cost, in the order of the columns of `calls` from cpu_ns on. */
enum {
    SJ_TREE_CPU_NS,
    SJ_TREE_CPU_SELF_NS,
    SJ_TREE_ALLOCATIONS,
    SJ_TREE_ALLOCATED_BYTES,
    SJ_TREE_FREES,
    SJ_TREE_FREED_BYTES,
    SJ_TREE_ALLOCATED_SELF_BYTES,
    SJ_TREE_COSTS
};

typedef struct sj_tree_cost {
    int64_t sums[SJ_TREE_COSTS];
    uint32_t known; /* bits of those that are */
} sj_tree_cost;

typedef struct sj_tree_row {
    int64_t path_id;   /* rising; a caller's is less than that of its callees */
    int64_t parent_id; /* 0: none */
    int64_t function_id;
    int64_t calls, total_ns, self_ns, min_ns, max_ns;
    int64_t left_ns;
    int64_t open_calls;
    int64_t depth;
    bool is_rare;                       /* stands for a caller in folded paths */
    uint32_t rank;                      /* of its name, for ordering */
    uint32_t cost;                      /* 1 + place among the costs; 0: none was measured */
    uint32_t first_child, next_sibling; /* rows; 0: none (row 0 is the root) */
} sj_tree_row;

/* Rows in the order of their path_id; row 0 is the root of all. Zeroed is empty. */
typedef struct sj_tree_rows {
    sj_tree_row *rows;
    size_t count, capacity;
    sj_hash_map places; /* function below a row: row; of rows that were made by sj_tree_rows_take */
    sj_tree_cost *costs;
    size_t cost_count, cost_capacity;
} sj_tree_rows;

void sj_tree_rows_deinit(sj_tree_rows *tree); /* safe on a zeroed one */

/* sj_tree_rows_begin makes the root the only row; false: no memory. */
bool sj_tree_rows_begin(sj_tree_rows *tree);

/* sj_tree_rows_add adds a row; false: no memory. */
bool sj_tree_rows_add(sj_tree_rows *tree, const sj_tree_row *row);

/* sj_tree_rows_add_cost adds to what the calls of a row have cost; false: no memory.
 * sj_tree_rows_cost borrows that; NULL: none was measured. */
bool sj_tree_rows_add_cost(sj_tree_rows *tree, uint32_t row, const sj_tree_cost *cost);
const sj_tree_cost *sj_tree_rows_cost(const sj_tree_rows *tree, uint32_t row);

/* sj_tree_rows_find returns the row of a path; 0: there is none. */
uint32_t sj_tree_rows_find(const sj_tree_rows *tree, int64_t path_id);

/* sj_tree_rows_take returns the row of a function below `parent`, made when it is new. 0: no
 * memory, or too many paths. */
uint32_t sj_tree_rows_take(sj_tree_rows *tree, int64_t session_id, uint32_t parent,
                           int64_t function_id);

/* sj_tree_rows_callees makes the tree of what the functions in the set call: its roots are their
 * outermost calls. sj_tree_rows_callers makes the tree of who calls them: its roots are the
 * functions, below them come their callers, with the calls and time of the roots that came through
 * them; time of recursive calls counts once. `functions` has function_ids as keys, `sub` 0. False:
 * no memory, or too many paths. */
bool sj_tree_rows_callees(const sj_tree_rows *tree, const sj_hash_map *functions,
                          int64_t session_id, sj_tree_rows *made);
bool sj_tree_rows_callers(const sj_tree_rows *tree, const sj_hash_map *functions,
                          int64_t session_id, sj_tree_rows *made);

#endif
