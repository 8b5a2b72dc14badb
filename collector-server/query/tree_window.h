/* Call paths of the calls that began in a window of a stream, read from the columns of blocks. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_TREE_WINDOW_H
#define SJ_COLLECTOR_SERVER_QUERY_TREE_WINDOW_H

#include "collector-server/query/block_scan.h"
#include "collector-server/query/tree_rows.h"

/* Zeroed: no memory is held yet; sj_tree_window_deinit frees it. */
typedef struct sj_tree_window {
    sj_block_scan scan;
    bool scan_open;
    uint32_t *row_paths;   /* of the block's rows; UINT32_MAX: not yet found */
    uint32_t *row_callees; /* of rows whose paths are being found: the next one inwards */
    size_t row_capacity, callee_capacity;
    uint32_t *frame_paths; /* of the calls open at its start; likewise */
    size_t frame_capacity;
} sj_tree_window;

void sj_tree_window_deinit(sj_tree_window *window);

/* sj_tree_window_add adds the calls that began in [from_ns, to_ns) to the rows. Callers that began
 * before have rows without calls. Self times may be negative by what open calls and such callers
 * lack. An SQLite result code, SQLITE_OK when it is done. */
int sj_tree_window_add(sj_tree_window *window, sj_query_state *state, sj_tree_rows *tree,
                       int64_t session_id, int64_t stream_id, int64_t from_ns, int64_t to_ns);

/* sj_tree_rows_count counts a call of the path `row`, called by `parent`, that took `ns`. */
void sj_tree_rows_count(sj_tree_rows *tree, uint32_t row, uint32_t parent, int64_t ns);

#endif
