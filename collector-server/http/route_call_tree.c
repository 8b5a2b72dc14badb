/* Design notes: a path whose calls have not ended has no time yet (such as main, while a session is
 * recorded). Its `known_ns` is the time of its nearest descendants that have ended. So the tree of
 * a running program is sorted by where time is spent. */
#include "collector-server/http/route.h"

#include "collector-server/http/parameters.h"
#include "collector-server/query/json_rows.h"
#include "schema/queries/http/call_tree.h"

#include <inttypes.h>
#include <stdio.h>

enum { LIMIT_DEFAULT = 50, LIMIT_MAX = 500, OFFSET_MAX = 100000000, FOCUS_DEPTH_MAX = 2000 };

typedef struct tree_query {
    int64_t parent; /* 0: the roots */
    int64_t focus;  /* 0: no focus */
    int64_t limit;
    int64_t offset;
} tree_query;

/* Reads the first column of the statement's first row, or 0 if it has no row. */
static sj_status read_number(sqlite3 *database, const char *sql, int64_t first, int64_t second,
                             int64_t *number, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_rows_prepare(database, sql, &statement, error));
    sqlite3_bind_int64(statement, 1, first);
    if (sqlite3_bind_parameter_count(statement) > 1) {
        sqlite3_bind_int64(statement, 2, second);
    }
    const int step = sqlite3_step(statement);
    *number = step == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    if (step != SQLITE_ROW && step != SQLITE_DONE) {
        return sj_fail(error, step == SQLITE_INTERRUPT ? SJ_ETIMEDOUT : SJ_EIO, "database: %s",
                       sqlite3_errmsg(database));
    }
    return SJ_OK;
}

static sj_status require_path(const sj_request *request, int64_t path, sj_error *error)
{
    int64_t found = 0;
    SJ_TRY(read_number(request->database,
                       "SELECT count(*) FROM call_paths WHERE session_id = ?1 AND path_id = ?2",
                       request->id, path, &found, error));
    if (found == 0) {
        return sj_fail(error, SJ_ENOTFOUND, "session %" PRId64 " has no call path %" PRId64,
                       request->id, path);
    }
    return SJ_OK;
}

/* Finds the path on which a function spends most of its time; a recursive path only if there is
 * no other. */
static sj_status find_focus(const sj_request *request, int64_t function, int64_t *focus,
                            sj_error *error)
{
    SJ_TRY(read_number(request->database,
                       "SELECT path_id FROM call_paths WHERE session_id = ?1 AND function_id = ?2"
                       " AND NOT rare ORDER BY recursive, total_ns DESC, path_id LIMIT 1",
                       request->id, function, focus, error));
    if (*focus == 0) {
        return sj_fail(error, SJ_ENOTFOUND, "session %" PRId64 " has no calls of function %" PRId64,
                       request->id, function);
    }
    return SJ_OK;
}

static sj_status read_query(const sj_request *request, tree_query *query, sj_error *error)
{
    const sj_parameter_range any_id = {1, INT64_MAX, 0};
    int64_t function = 0;
    SJ_TRY(sj_parameter_number(request, "parent", any_id, &query->parent, error));
    SJ_TRY(sj_parameter_number(request, "focus", any_id, &query->focus, error));
    SJ_TRY(sj_parameter_number(request, "function", any_id, &function, error));
    SJ_TRY(sj_parameter_number(request, "limit", (sj_parameter_range){1, LIMIT_MAX, LIMIT_DEFAULT},
                               &query->limit, error));
    SJ_TRY(sj_parameter_number(request, "offset", (sj_parameter_range){0, OFFSET_MAX, 0},
                               &query->offset, error));
    if ((query->parent != 0) + (query->focus != 0) + (function != 0) > 1) {
        return sj_fail(error, SJ_EINVAL, "give one of 'parent', 'focus' and 'function'");
    }
    SJ_TRY(sj_rows_require_session(request->database, request->id, error));
    if (function != 0) {
        SJ_TRY(find_focus(request, function, &query->focus, error));
    }
    if (query->focus != 0) {
        query->parent = query->focus;
    }
    return query->parent != 0 ? require_path(request, query->parent, error) : SJ_OK;
}

static void bind_parent(sqlite3_stmt *statement, int64_t session, int64_t parent)
{
    sqlite3_bind_int64(statement, 1, session);
    if (parent != 0) {
        sqlite3_bind_int64(statement, 2, parent);
    }
}

static sj_status add_children(const sj_request *request, const tree_query *query, json_t *body,
                              sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    json_t *rest = NULL;
    SJ_TRY(sj_rows_prepare(request->database, sj_call_tree_children_sql, &statement, error));
    bind_parent(statement, request->id, query->parent);
    sqlite3_bind_int64(statement, 3, query->limit);
    sqlite3_bind_int64(statement, 4, query->offset);
    SJ_TRY(sj_rows_read(statement, (size_t)query->limit, &rows, NULL, error));
    json_object_set_new(body, "items", rows);
    SJ_TRY(sj_rows_prepare(request->database, sj_call_tree_rest_sql, &statement, error));
    bind_parent(statement, request->id, query->parent);
    sqlite3_bind_int64(statement, 3, query->offset + (int64_t)json_array_size(rows));
    SJ_TRY(sj_rows_read(statement, 1, &rest, NULL, error));
    json_object_set(body, "rest", json_array_get(rest, 0));
    json_decref(rest);
    return SJ_OK;
}

static sj_status add_focus(const sj_request *request, int64_t focus, json_t *body, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    bool truncated = false;
    SJ_TRY(sj_rows_prepare(request->database, sj_call_tree_ancestors_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, request->id);
    sqlite3_bind_int64(statement, 2, focus);
    SJ_TRY(sj_rows_read(statement, FOCUS_DEPTH_MAX, &rows, &truncated, error));
    json_object_set_new(body, "focus", rows);
    if (truncated) {
        return sj_fail(error, SJ_EINVAL, "the path is more than %d calls deep", FOCUS_DEPTH_MAX);
    }
    return SJ_OK;
}

static sj_status answer_call_tree(sj_request *request, json_t **body, sj_error *error)
{
    tree_query query;
    int64_t session_ns = 0;
    SJ_TRY(read_query(request, &query, error));
    SJ_TRY(read_number(request->database, sj_call_tree_session_sql, request->id, 0, &session_ns,
                       error));
    json_t *tree = json_pack("{s:I}", "session_ns", (json_int_t)session_ns);
    if (tree == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    sj_status status = add_children(request, &query, tree, error);
    if (status == SJ_OK && query.focus != 0) {
        status = add_focus(request, query.focus, tree, error);
    }
    if (status != SJ_OK) {
        json_decref(tree);
        return status;
    }
    *body = tree;
    return SJ_OK;
}

const sj_route sj_route_call_tree = {.pattern = "/api/v1/sessions/{id}/call-tree",
                                     .role = SJ_ROLE_READER,
                                     .is_slow = true,
                                     .run = answer_call_tree};
