/* Call paths of the calls that began in a time window of a stream, from the columns of blocks. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_TREE_WINDOW_H
#define SJ_COLLECTOR_SERVER_QUERY_TREE_WINDOW_H

#include "collector-server/query/block_scan.h"
#include "collector-server/query/tree_rows.h"

/* All zero: no memory. Free it with sj_tree_window_deinit. */
typedef struct sj_tree_window {
    sj_block_scan scan;
    bool scan_open;
    uint32_t *row_paths;   /* by row of the block; UINT32_MAX: not found yet */
    uint32_t *row_callees; /* by row whose path is being found: the next row inwards */
    size_t row_capacity, callee_capacity;
    uint32_t *frame_paths; /* by frame open at the block's start; UINT32_MAX: not found yet */
    size_t frame_capacity;
} sj_tree_window;

void sj_tree_window_deinit(sj_tree_window *window);

/* Adds the calls that began in [from_ns, to_ns) to the rows. Callers that began before have rows
 * without calls. Self times may be negative by the time that open calls and such callers lack.
 * Returns SQLITE_OK when done, or an SQLite error. */
int sj_tree_window_add(sj_tree_window *window, sj_query_state *state, sj_tree_rows *tree,
                       int64_t session_id, int64_t stream_id, int64_t from_ns, int64_t to_ns);

/* Counts a call of the path `row`, called by `parent`, that took `ns`. */
void sj_tree_rows_count(sj_tree_rows *tree, uint32_t row, uint32_t parent, int64_t ns);

#endif
