#include "collector-server/http/route.h"

#include "collector-server/http/rows.h"

static sj_status run(sj_request *request, json_t **body, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    SJ_TRY(sj_rows_prepare(request->database,
                           "SELECT 'ok' AS status, ?1 AS version,"
                           " (SELECT count(*) FROM sessions) AS sessions,"
                           " (SELECT count(*) FROM sessions WHERE state = 'recording')"
                           "  AS recording_sessions",
                           &statement, error));
    sqlite3_bind_text(statement, 1, SJ_VERSION, -1, SQLITE_STATIC);
    SJ_TRY(sj_rows_take(statement, 1, &rows, NULL, error));
    *body = json_incref(json_array_get(rows, 0));
    json_decref(rows);
    return SJ_OK;
}

const sj_route sj_route_health = {.pattern = "/api/v1/health", .run = run};

/* The same for load balancers and supervisors: 200 when the database can be read. */
const sj_route sj_route_healthz = {.pattern = "/healthz", .run = run};
