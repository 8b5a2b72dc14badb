#include "collector-server/query/tree_window.h"

#include "proto/base/array.h"

#include <stdlib.h>

#define UNKNOWN UINT32_MAX /* the path was not found yet */

enum { MOST_OPEN = 1 << 24 }; /* limit of calls open at the start of a block */

void sj_tree_window_deinit(sj_tree_window *window)
{
    if (window->scan_open) {
        sj_block_scan_close(&window->scan);
    }
    free(window->row_paths);
    free(window->row_callees);
    free(window->frame_paths);
    *window = (sj_tree_window){0};
}

void sj_tree_rows_count(sj_tree_rows *tree, uint32_t row, uint32_t parent, int64_t ns)
{
    sj_tree_row *path = &tree->rows[row];
    path->min_ns = path->calls == 0 || ns < path->min_ns ? ns : path->min_ns;
    path->max_ns = ns > path->max_ns ? ns : path->max_ns;
    path->calls++;
    path->total_ns += ns;
    path->self_ns += ns;
    tree->rows[parent].self_ns -= ns;
}

/* Adds the calls of the scan of `window` to `tree`. */
typedef struct path_builder {
    sj_tree_window *window;
    sj_tree_rows *tree;
    int64_t session_id;
} path_builder;

/* Writes the path of the call that was open at `depth` when the block began to `path`. Finds the
 * paths of its callers first. */
static int find_frame_path(const path_builder *builder, uint32_t depth, uint32_t *path)
{
    uint32_t *paths = builder->window->frame_paths;
    uint32_t known = depth + 1;
    while (known > 0 && paths[known - 1] == UNKNOWN) {
        known--;
    }
    for (; known <= depth; known++) {
        sj_stack_frame frame;
        const int result = sj_block_scan_frame(&builder->window->scan, known, &frame);
        const int64_t function_id =
            result == SQLITE_OK
                ? sj_scan_function_id(&builder->window->scan.session, frame.function)
                : 0;
        if (result != SQLITE_OK && result != SQLITE_NOTFOUND) {
            return result;
        }
        paths[known] = sj_tree_rows_find_or_add(builder->tree, builder->session_id,
                                                known > 0 ? paths[known - 1] : 0, function_id);
        if (paths[known] == 0) {
            return SQLITE_NOMEM;
        }
    }
    *path = paths[depth];
    return SQLITE_OK;
}

/* Writes the path of a row's caller to `path`, or 0 for an outermost call. The path of a caller in
 * the block must be known. */
static int find_caller_path(const path_builder *builder, size_t row, uint32_t *path)
{
    const sj_block_rows *rows = &builder->window->scan.rows;
    if (rows->parents[row] != SJ_ROW_NO_PARENT) {
        *path = builder->window->row_paths[rows->parents[row]];
        return SQLITE_OK;
    }
    *path = 0;
    return rows->depths[row] == 0 ? SQLITE_OK
                                  : find_frame_path(builder, rows->depths[row] - 1, path);
}

/* Finds or adds the path of a row. The path of a caller in the block must be known. */
static int add_path(const path_builder *builder, uint32_t row)
{
    const sj_block_scan *scan = &builder->window->scan;
    uint32_t caller = 0;
    const int result = find_caller_path(builder, row, &caller);
    if (result != SQLITE_OK) {
        return result;
    }
    uint32_t *path = &builder->window->row_paths[row];
    *path = sj_tree_rows_find_or_add(builder->tree, builder->session_id, caller,
                                     scan->function_ids[scan->rows.symbols[row]]);
    return *path != 0 ? SQLITE_OK : SQLITE_NOMEM;
}

/* Finds or adds the paths of a row and of its callers in the block, outermost first. Links the
 * callers in row_callees instead of recursion, because all calls of a block may be nested. */
static int add_paths(const path_builder *builder, uint32_t row)
{
    const uint32_t *parents = builder->window->scan.rows.parents;
    uint32_t *callees = builder->window->row_callees;
    uint32_t outermost = SJ_ROW_NO_PARENT;
    while (row != SJ_ROW_NO_PARENT && builder->window->row_paths[row] == UNKNOWN) {
        callees[row] = outermost;
        outermost = row;
        row = parents[row];
    }
    int result = SQLITE_OK;
    for (row = outermost; row != SJ_ROW_NO_PARENT && result == SQLITE_OK; row = callees[row]) {
        result = add_path(builder, row);
    }
    return result;
}

static int reset_paths(sj_tree_window *window)
{
    const size_t rows = window->scan.rows.count;
    const size_t frames = window->scan.block.header.open_depth;
    if (sj_array_reserve(&window->row_paths, &window->row_capacity, 0, rows,
                         sizeof(*window->row_paths)) != SJ_OK ||
        sj_array_reserve(&window->row_callees, &window->callee_capacity, 0, rows,
                         sizeof(*window->row_callees)) != SJ_OK ||
        sj_array_reserve(&window->frame_paths, &window->frame_capacity, 0, frames,
                         sizeof(*window->frame_paths)) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    for (size_t i = 0; i < rows; i++) {
        window->row_paths[i] = UNKNOWN;
    }
    for (size_t i = 0; i < frames; i++) {
        window->frame_paths[i] = UNKNOWN;
    }
    return SQLITE_OK;
}

static int add_row(const path_builder *builder, size_t row)
{
    const sj_block_scan *scan = &builder->window->scan;
    const sj_block_rows *rows = &scan->rows;
    uint32_t caller = 0;
    int result = add_paths(builder, (uint32_t)row);
    result = result == SQLITE_OK ? find_caller_path(builder, row, &caller) : result;
    if (result != SQLITE_OK) {
        return result;
    }
    const uint32_t path = builder->window->row_paths[row];
    if (sj_row_ended(rows, row)) {
        sj_tree_rows_count(builder->tree, path, caller,
                           sj_scan_ns(&scan->session, rows->ends[row]) -
                               sj_scan_ns(&scan->session, rows->starts[row]));
    }
    const uint8_t ending = rows->endings[row];
    builder->tree->rows[path].open_calls += ending == SJ_ENDING_OPEN || ending == SJ_NOT_ENDED;
    return SQLITE_OK;
}

static int add_block(const path_builder *builder)
{
    sj_block_scan *scan = &builder->window->scan;
    int result = sj_block_scan_rows(scan, true);
    if (result != SQLITE_OK) {
        /* On a contradiction, the warnings name the block. */
        return result == SJ_SCAN_CONTRADICTION ? SQLITE_OK : result;
    }
    if (scan->block.header.open_depth > MOST_OPEN) {
        sj_block_scan_warn(scan, "more calls are open at its start than can be");
        return SQLITE_OK;
    }
    result = reset_paths(builder->window);
    for (size_t row = 0; result == SQLITE_OK && row < scan->rows.count; row++) {
        const uint64_t start = scan->rows.starts[row];
        if (start >= scan->session.first_start && start <= scan->session.last_start) {
            result = add_row(builder, row);
        }
    }
    return result;
}

int sj_tree_window_add(sj_tree_window *window, sj_query_state *state, sj_tree_rows *tree,
                       int64_t session_id, int64_t stream_id, int64_t from_ns, int64_t to_ns)
{
    const path_builder builder = {.window = window, .tree = tree, .session_id = session_id};
    int result = SQLITE_OK;
    if (!window->scan_open) {
        result = sj_block_scan_open(&window->scan, state);
        window->scan_open = true;
    }
    if (result != SQLITE_OK || to_ns <= from_ns) {
        return result;
    }
    sj_scan_filter filter = sj_scan_everything;
    filter.first_session = filter.last_session = session_id;
    filter.first_stream = filter.last_stream = stream_id;
    filter.first_start_ns = from_ns;
    filter.last_start_ns = to_ns - 1;
    result = sj_block_scan_start(&window->scan, &filter, SJ_SCAN_TIMES);
    while (result == SQLITE_OK && (result = sj_block_scan_next(&window->scan)) == SQLITE_ROW) {
        result = add_block(&builder);
    }
    return result == SQLITE_DONE ? SQLITE_OK : result;
}
