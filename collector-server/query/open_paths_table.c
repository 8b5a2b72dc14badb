/* The table function open_paths(session_id): how many calls of each call path were open when their
 * streams ended (open_calls), sorted by path_id. path_id is NULL for calls without a path, for
 * example because sums are not written yet.
 *
 * Design notes. The open calls of a stream contain each other, so their paths are found from the
 * outermost call on. Call paths fold deep recursion (callgraph.h): a folded call belongs to the
 * nearest outer path with the same function and the same caller function. */
#include "collector-server/query/table_function.h"
#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "proto/callgraph/callgraph.h"

#include <stdlib.h>

enum { COLUMN_PATH_ID, COLUMN_OPEN_CALLS, COLUMN_SESSION_ID };

typedef struct path_step {
    int64_t path_id;
    int64_t function_id;
} path_step;

typedef struct open_paths_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *open_calls;
    sqlite3_stmt *root;
    sqlite3_stmt *child;
    /* the path of the latest open call after the paths of its callers, outermost first */
    path_step *way;
    size_t way_count, way_capacity;
    int64_t *paths; /* the path_id of each open call, sorted; 0: none */
    size_t count, capacity;
    size_t from, to; /* range of the current row */
    int64_t session_id;
} open_paths_cursor;

static int close_cursor(sqlite3_vtab_cursor *base)
{
    open_paths_cursor *cursor = (open_paths_cursor *)base;
    sqlite3_finalize(cursor->open_calls);
    sqlite3_finalize(cursor->root);
    sqlite3_finalize(cursor->child);
    free(cursor->way);
    free(cursor->paths);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    static const char open_sql[] =
        "SELECT o.depth, o.function_id FROM streams AS s JOIN open_calls AS o ON o.stream_id = "
        "s.stream_id WHERE s.session_id = ?1 ORDER BY o.stream_id, o.depth";
    static const char root_sql[] = "SELECT path_id FROM call_paths WHERE session_id = ?1 AND "
                                   "function_id = ?2 AND +parent_path_id IS NULL AND NOT rare";
    static const char child_sql[] = "SELECT path_id FROM call_paths WHERE parent_path_id = ?1 AND "
                                    "+function_id = ?2 AND NOT rare";
    open_paths_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    sqlite3 *database = ((sj_table *)base)->state->database;
    int result = sqlite3_prepare_v2(database, open_sql, -1, &cursor->open_calls, NULL);
    if (result == SQLITE_OK) {
        result = sqlite3_prepare_v2(database, root_sql, -1, &cursor->root, NULL);
    }
    if (result == SQLITE_OK) {
        result = sqlite3_prepare_v2(database, child_sql, -1, &cursor->child, NULL);
    }
    if (result != SQLITE_OK) {
        close_cursor(&cursor->base);
        return result;
    }
    *out = &cursor->base;
    return SQLITE_OK;
}

/* Writes the path_id of the child with this function of the last path of `way`, or of a root if
 * `way` is empty. Writes 0 if there is none. */
static int find_child(open_paths_cursor *cursor, int64_t function_id, int64_t *path_id)
{
    const bool is_root = cursor->way_count == 0;
    sqlite3_stmt *row = is_root ? cursor->root : cursor->child;
    sqlite3_bind_int64(row, 1,
                       is_root ? cursor->session_id : cursor->way[cursor->way_count - 1].path_id);
    sqlite3_bind_int64(row, 2, function_id);
    const int result = sqlite3_step(row);
    *path_id = result == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 0;
    sqlite3_reset(row);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

/* Cuts `way` after the path to which a folded call of this function belongs. Returns false if such
 * a path does not exist. */
static bool cut_way(open_paths_cursor *cursor, int64_t function_id)
{
    const path_step *way = cursor->way;
    if (cursor->way_count < SJ_PATH_FOLD_DEPTH) {
        return false;
    }
    const int64_t caller_id = way[cursor->way_count - 1].function_id;
    for (size_t i = cursor->way_count - 1; i > 0; i--) {
        if (way[i].function_id == function_id && way[i - 1].function_id == caller_id) {
            cursor->way_count = i + 1;
            return true;
        }
    }
    return false;
}

/* Extends or cuts `way` to the path of the next open call. `*path_id` is 0 if the call has none. */
static int find_path(open_paths_cursor *cursor, int64_t function_id, int64_t *path_id)
{
    const int result = find_child(cursor, function_id, path_id);
    if (result != SQLITE_OK) {
        return result;
    }
    if (*path_id == 0) {
        *path_id = cut_way(cursor, function_id) ? cursor->way[cursor->way_count - 1].path_id : 0;
        return SQLITE_OK;
    }
    if (sj_array_reserve(&cursor->way, &cursor->way_capacity, cursor->way_count, 1,
                         sizeof(*cursor->way)) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    cursor->way[cursor->way_count++] = (path_step){.path_id = *path_id, .function_id = function_id};
    return SQLITE_OK;
}

/* The path of the last open call. */
typedef struct path_loading {
    open_paths_cursor *cursor;
    int64_t path_id; /* 0: it has none */
} path_loading;

static int add_path(void *context, sqlite3_stmt *row)
{
    path_loading *loading = context;
    open_paths_cursor *cursor = loading->cursor;
    const bool is_outermost = sqlite3_column_int64(row, 0) == 0;
    const int64_t function_id = sqlite3_column_int64(row, 1);
    int result = SQLITE_OK;
    cursor->way_count = is_outermost ? 0 : cursor->way_count;
    if (loading->path_id != 0 || is_outermost) {
        result = find_path(cursor, function_id, &loading->path_id);
    }
    if (result == SQLITE_OK && sj_array_reserve(&cursor->paths, &cursor->capacity, cursor->count, 1,
                                                sizeof(*cursor->paths)) != SJ_OK) {
        result = SQLITE_NOMEM;
    }
    if (result == SQLITE_OK) {
        cursor->paths[cursor->count++] = loading->path_id;
    }
    return result;
}

static int load_paths(open_paths_cursor *cursor)
{
    path_loading loading = {.cursor = cursor};
    sqlite3_bind_int64(cursor->open_calls, 1, cursor->session_id);
    return sj_sql_scan(cursor->open_calls, add_path, &loading);
}

static int compare_paths(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static int next_row(sqlite3_vtab_cursor *base)
{
    open_paths_cursor *cursor = (open_paths_cursor *)base;
    cursor->from = cursor->to;
    while (cursor->to < cursor->count && cursor->paths[cursor->to] == cursor->paths[cursor->from]) {
        cursor->to++;
    }
    return SQLITE_OK;
}

static int filter_rows(sqlite3_vtab_cursor *base, int given, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)given;
    (void)plan;
    (void)argc;
    open_paths_cursor *cursor = (open_paths_cursor *)base;
    cursor->count = cursor->to = 0;
    cursor->session_id = sqlite3_value_int64(argv[0]);
    const int result = load_paths(cursor);
    if (cursor->count > 0) {
        qsort(cursor->paths, cursor->count, sizeof(*cursor->paths), compare_paths);
    }
    return result == SQLITE_OK ? next_row(base) : result;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const open_paths_cursor *cursor = (const open_paths_cursor *)base;
    return cursor->from >= cursor->count;
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const open_paths_cursor *cursor = (const open_paths_cursor *)base;
    if (column == COLUMN_OPEN_CALLS) {
        sqlite3_result_int64(context, (int64_t)(cursor->to - cursor->from));
    } else if (column == COLUMN_SESSION_ID) {
        sqlite3_result_int64(context, cursor->session_id);
    } else if (cursor->paths[cursor->from] != 0) {
        sqlite3_result_int64(context, cursor->paths[cursor->from]);
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    const open_paths_cursor *cursor = (const open_paths_cursor *)base;
    *rowid = cursor->paths[cursor->from];
    return SQLITE_OK;
}

static const sqlite3_module open_paths_methods = SJ_TABLE_METHODS(sj_table_use_arguments);

int sj_register_open_paths(sj_query_state *state)
{
    static const sj_table_kind kind = {
        .name = "open_paths",
        .declaration = "CREATE TABLE open_paths(path_id INTEGER, open_calls INTEGER, session_id "
                       "HIDDEN)",
        .first_argument = COLUMN_SESSION_ID,
        .argument_count = 1,
        .required_count = 1,
        .rows = 50,
        .cost = 500};
    return sj_table_register(state, &kind, &open_paths_methods);
}
