#include "collector-server/http/route.h"

#include "collector-server/query/json_rows.h"
#include "schema/queries/http/overview.h"

enum { LIST_MAX = 500 };

typedef struct overview_list {
    const char *name;
    const char *sql; /* ?1 session, ?2 limit */
} overview_list;

static const overview_list lists[] = {
    {"processes",
     "SELECT number, pid, parent_number, executable, command, how, started_ns, ended_ns, exit_code,"
     " exit_signal, core_dumped AS is_core_dumped, disarm_reason FROM processes"
     " WHERE session_id = ?1 ORDER BY number LIMIT ?2"},
    {"threads", sj_overview_threads_sql},
    {"modules", sj_overview_modules_sql},
    {"marks", "SELECT number, name, is_end, at_ns, thread_number, source FROM marks"
              " WHERE session_id = ?1 ORDER BY at_ns, mark_id LIMIT ?2"},
    {"loss", sj_overview_loss_sql},
};

static sj_status read_one(sqlite3 *database, const char *sql, int64_t session, json_t **row,
                          sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    SJ_TRY(sj_rows_prepare(database, sql, &statement, error));
    sqlite3_bind_int64(statement, 1, session);
    SJ_TRY(sj_rows_read(statement, 1, &rows, NULL, error));
    *row = json_incref(json_array_get(rows, 0));
    json_decref(rows);
    return *row != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
}

static sj_status add_parts(sqlite3 *database, int64_t session, json_t *body, sj_error *error)
{
    json_t *counts = NULL;
    SJ_TRY(read_one(database, sj_overview_counts_sql, session, &counts, error));
    json_object_set_new(body, "counts", counts);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        SJ_TRY(sj_rows_list_of_session(database, lists[i].sql, session, LIST_MAX, body,
                                       lists[i].name, error));
    }
    return SJ_OK;
}

static sj_status answer_overview(sj_request *request, json_t **body, sj_error *error)
{
    json_t *overview = NULL;
    SJ_TRY(sj_rows_require_session(request->database, request->id, error));
    SJ_TRY(read_one(request->database, sj_overview_session_sql, request->id, &overview, error));
    const sj_status status = add_parts(request->database, request->id, overview, error);
    if (status != SJ_OK) {
        json_decref(overview);
        return status;
    }
    *body = overview;
    return SJ_OK;
}

const sj_route sj_route_overview = {
    .pattern = "/api/v1/sessions/{id}", .role = SJ_ROLE_READER, .run = answer_overview};
