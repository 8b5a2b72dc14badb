/* Rows of a call tree, and trees derived from them: what some functions call, and who calls
 * them. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_TREE_ROWS_H
#define SJ_COLLECTOR_SERVER_QUERY_TREE_ROWS_H

#include "proto/base/hash_map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Costs of measured calls, in the order of the columns of `calls` from cpu_ns on. */
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
    uint32_t known; /* bit per cost that was measured */
} sj_tree_cost;

typedef struct sj_tree_row {
    int64_t path_id;   /* rising; a caller's id is less than its callees' */
    int64_t parent_id; /* 0: none */
    int64_t function_id;
    int64_t calls, total_ns, self_ns, min_ns, max_ns;
    int64_t left_ns;
    int64_t open_calls;
    int64_t depth;
    bool is_rare;                       /* represents a caller in folded paths */
    uint32_t rank;                      /* rank of its name, for sorting */
    uint32_t cost;                      /* 1 + index of its costs; 0: not measured */
    uint32_t first_child, next_sibling; /* rows; 0: none (row 0 is the root) */
} sj_tree_row;

/* Rows sorted by path_id; row 0 is the root. All zero: empty. */
typedef struct sj_tree_rows {
    sj_tree_row *rows;
    size_t count, capacity;
    sj_hash_map places; /* function below a row: row; for rows made by sj_tree_rows_find_or_add */
    sj_tree_cost *costs;
    size_t cost_count, cost_capacity;
} sj_tree_rows;

void sj_tree_rows_deinit(sj_tree_rows *tree); /* safe on a zeroed one */

/* Makes the root the only row; returns false if out of memory. */
bool sj_tree_rows_begin(sj_tree_rows *tree);

/* Adds a row; returns false if out of memory. */
bool sj_tree_rows_add(sj_tree_rows *tree, const sj_tree_row *row);

/* sj_tree_rows_add_cost adds to the costs of a row; returns false if out of memory.
 * sj_tree_rows_cost borrows them; NULL: not measured. */
bool sj_tree_rows_add_cost(sj_tree_rows *tree, uint32_t row, const sj_tree_cost *cost);
const sj_tree_cost *sj_tree_rows_cost(const sj_tree_rows *tree, uint32_t row);

/* Returns the row of a path; 0: none. */
uint32_t sj_tree_rows_find(const sj_tree_rows *tree, int64_t path_id);

/* Returns the row of a function below `parent`, and adds it if it is new. Returns 0 if out of
 * memory, or if there are too many paths. */
uint32_t sj_tree_rows_find_or_add(sj_tree_rows *tree, int64_t session_id, uint32_t parent,
                                  int64_t function_id);

/* sj_tree_rows_callees makes the tree of what the functions of a set call; its roots are their
 * outermost calls. sj_tree_rows_callers makes the tree of their callers. Its roots are the
 * functions, and below them are callers, with the calls and time of the root that came through
 * them. Time of recursive calls counts once. `functions` has function_ids as keys, `sub` 0. Return
 * false if out of memory, or if there are too many paths. */
bool sj_tree_rows_callees(const sj_tree_rows *tree, const sj_hash_map *functions,
                          int64_t session_id, sj_tree_rows *made);
bool sj_tree_rows_callers(const sj_tree_rows *tree, const sj_hash_map *functions,
                          int64_t session_id, sj_tree_rows *made);

#endif
