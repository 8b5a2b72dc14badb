/* Makes the call paths of the calls that began in a time window of a stream, from stored blocks. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_TREE_WINDOW_H
#define SJ_COLLECTOR_SERVER_QUERY_TREE_WINDOW_H

#include "collector-server/query/block_scan.h"
#include "collector-server/query/tree_rows.h"

/* All zero: empty. Not thread-safe. */
typedef struct sj_tree_window {
    sj_block_scan scan;
    bool scan_open;
    uint32_t *row_paths;   /* by row of the block; UINT32_MAX: not found yet */
    uint32_t *row_callees; /* by caller whose path is being found: the row of its callee */
    size_t row_capacity, callee_capacity;
    uint32_t *frame_paths; /* by frame open at the block's start; UINT32_MAX: not found yet */
    size_t frame_capacity;
} sj_tree_window;

void sj_tree_window_deinit(sj_tree_window *window); /* safe on a zeroed window */

/* Adds the calls of a stream that began in [from_ns, to_ns) to `tree`. A caller that began before
 * from_ns gets a row without calls. The self time of such a caller or of an open call can be
 * negative, because its callees' time is subtracted. Skips blocks that contradict themselves; the
 * warnings name them. Returns SQLITE_OK, or SQLite's error. Blocks on the database. */
int sj_tree_window_add(sj_tree_window *window, sj_query_state *state, sj_tree_rows *tree,
                       int64_t session_id, int64_t stream_id, int64_t from_ns, int64_t to_ns);

/* Adds a call that took `ns` to the path `row`, and subtracts `ns` from the self time of
 * `parent`. */
void sj_tree_rows_count(sj_tree_rows *tree, uint32_t row, uint32_t parent, int64_t ns);

#endif
