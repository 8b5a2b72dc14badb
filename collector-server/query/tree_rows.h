/* Rows of a call tree, and two derived trees: the callees and the callers of some functions. The
 * functions do not block. Trees are not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_TREE_ROWS_H
#define SJ_COLLECTOR_SERVER_QUERY_TREE_ROWS_H

#include "proto/base/hash_map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Indexes of the costs of measured calls, in the order of the statement tree_table_paths. */
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
    uint32_t known; /* bit i: cost i was measured */
} sj_tree_cost;

typedef struct sj_tree_row {
    int64_t path_id;   /* greater than the path_id of the caller's path */
    int64_t parent_id; /* path_id of the caller's path; 0: none */
    int64_t function_id;
    int64_t calls, total_ns, self_ns, min_ns, max_ns;
    int64_t left_ns; /* start of the path on the axis of the table flame */
    int64_t open_calls;
    int64_t depth;
    bool is_rare;                       /* not a path: a root that is the caller in folded paths */
    uint32_t rank;                      /* rank of the function's name among all names */
    uint32_t cost;                      /* 1 + index in `costs`; 0: not measured */
    uint32_t first_child, next_sibling; /* rows; 0: none (row 0 is the root) */
} sj_tree_row;

/* Rows sorted by path_id; row 0 is the root. All zero: empty. */
typedef struct sj_tree_rows {
    sj_tree_row *rows;
    size_t count, capacity;
    sj_hash_map places; /* (function_id, parent row + 1): row that sj_tree_rows_find_or_add made */
    sj_tree_cost *costs;
    size_t cost_count, cost_capacity;
} sj_tree_rows;

void sj_tree_rows_deinit(sj_tree_rows *tree); /* safe on a zeroed tree */

/* Removes all rows and adds the root. Returns false if out of memory. */
bool sj_tree_rows_begin(sj_tree_rows *tree);

/* Appends a row. Its path_id must be greater than that of every earlier row. Returns false if out
 * of memory. */
bool sj_tree_rows_add(sj_tree_rows *tree, const sj_tree_row *row);

/* sj_tree_rows_add_cost adds `cost` to the costs of a row, and returns false if out of memory.
 * sj_tree_rows_cost returns the costs of a row, valid until the next change, or NULL if they were
 * not measured. */
bool sj_tree_rows_add_cost(sj_tree_rows *tree, uint32_t row, const sj_tree_cost *cost);
const sj_tree_cost *sj_tree_rows_cost(const sj_tree_rows *tree, uint32_t row);

/* Returns the row of a path, or 0 if the tree lacks it. */
uint32_t sj_tree_rows_find(const sj_tree_rows *tree, int64_t path_id);

/* Returns the row of a function that the path of row `parent` calls. Adds the row if it is new.
 * Returns 0 if out of memory, or if the tree has SJ_MOST_PATHS rows. */
uint32_t sj_tree_rows_find_or_add(sj_tree_rows *tree, int64_t session_id, uint32_t parent,
                                  int64_t function_id);

/* Both functions make a tree from the paths of `tree` and write it to `derived`, which must be
 * zeroed or a tree. The keys of `functions` are function_ids; their `sub` is 0.
 *
 * In the tree of sj_tree_rows_callees, the first level has the functions of the set, and below each
 * path are its callees. In the tree of sj_tree_rows_callers, the first level has the functions,
 * too, and below each path are its callers. The row of a caller has the calls and times of the
 * function on the first level that came through that caller. The time of recursive calls counts
 * once.
 *
 * Both return false if out of memory, or if the tree would have more than SJ_MOST_PATHS rows. */
bool sj_tree_rows_callees(const sj_tree_rows *tree, const sj_hash_map *functions,
                          int64_t session_id, sj_tree_rows *derived);
bool sj_tree_rows_callers(const sj_tree_rows *tree, const sj_hash_map *functions,
                          int64_t session_id, sj_tree_rows *derived);

#endif
