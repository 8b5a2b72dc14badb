#include "collector-server/http/route.h"

#include "collector-server/http/parameters.h"
#include "collector-server/http/rows.h"
#include "collector-server/http/session_columns.h"

enum { LIMIT_DEFAULT = 200, LIMIT_MAX = 500 };

/* Newest first; `before` continues a list that was cut. */
static sj_status run(sj_request *request, json_t **body, sj_error *error)
{
    int64_t limit;
    int64_t before;
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_parameter_number(request, "limit", (sj_parameter_range){1, LIMIT_MAX, LIMIT_DEFAULT},
                               &limit, error));
    SJ_TRY(sj_parameter_number(request, "before", (sj_parameter_range){1, INT64_MAX, INT64_MAX},
                               &before, error));
    SJ_TRY(sj_rows_prepare(request->database,
                           SJ_SESSION_SELECT
                           " WHERE s.session_id < ?1 ORDER BY s.session_id DESC LIMIT ?2",
                           &statement, error));
    sqlite3_bind_int64(statement, 1, before);
    sqlite3_bind_int64(statement, 2, limit + 1);
    return sj_rows_list(statement, (size_t)limit, body, error);
}

const sj_route sj_route_sessions = {.pattern = "/api/v1/sessions", .run = run};
