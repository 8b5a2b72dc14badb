#include "collector-server/http/route.h"

#include "collector-server/http/parameters.h"
#include "collector-server/http/session_changes_post.h"
#include "collector-server/http/session_filters.h"
#include "collector-server/query/json_rows.h"
#include "schema/queries/http/sessions.h"

enum { LIMIT_DEFAULT = 200, LIMIT_MAX = 500 };

static sj_status add_totals(sqlite3 *database, const sj_session_filters *filters, json_t *body,
                            sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    SJ_TRY(sj_rows_prepare(database, sj_sessions_totals_sql, &statement, error));
    sj_session_filters_bind(filters, statement);
    SJ_TRY(sj_rows_read(statement, 1, &rows, NULL, error));
    json_object_set(body, "totals", json_array_get(rows, 0));
    json_decref(rows);
    return SJ_OK;
}

static sj_status list_sessions(sj_request *request, const sj_session_filters *filters,
                               json_t **body, sj_error *error)
{
    int64_t limit;
    int64_t before;
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_parameter_number(request, "limit", (sj_parameter_range){1, LIMIT_MAX, LIMIT_DEFAULT},
                               &limit, error));
    SJ_TRY(sj_parameter_number(request, "before", (sj_parameter_range){1, INT64_MAX, INT64_MAX},
                               &before, error));
    SJ_TRY(sj_rows_prepare(request->database, sj_sessions_list_sql, &statement, error));
    sj_session_filters_bind(filters, statement);
    sqlite3_bind_int64(statement, SJ_SESSION_FILTERS + 1, before);
    sqlite3_bind_int64(statement, SJ_SESSION_FILTERS + 2, limit + 1);
    return sj_rows_list(statement, (size_t)limit, body, error);
}

/* Lists sessions, newest first. `before` continues a list. The totals count all matching sessions,
 * including those that are not in the list. */
static sj_status answer_sessions(sj_request *request, json_t **body, sj_error *error)
{
    sj_session_filters filters = {0};
    SJ_TRY(sj_session_filters_read(request, &filters, error));
    SJ_TRY(list_sessions(request, &filters, body, error));
    const sj_status status = add_totals(request->database, &filters, *body, error);
    if (status != SJ_OK) {
        json_decref(*body);
        *body = NULL;
    }
    return status;
}

const sj_route sj_route_sessions = {.pattern = "/api/v1/sessions",
                                    .role = SJ_ROLE_READER,
                                    .run = answer_sessions,
                                    .post_role = SJ_ROLE_OPERATOR,
                                    .action = "sessions",
                                    .post = sj_session_changes_post};
