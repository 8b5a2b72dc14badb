#include "collector-server/http/route.h"

#include "collector-server/query/json_rows.h"

enum { LIMIT = 1000 };

static sj_status answer_policies(sj_request *request, json_t **body, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_rows_prepare(request->database,
                           "SELECT rule_id AS id, scope, subject, app, document, set_by,"
                           " set_realtime_ns FROM policy_rules WHERE ended_realtime_ns IS NULL"
                           " ORDER BY rule_id LIMIT ?1",
                           &statement, error));
    sqlite3_bind_int64(statement, 1, LIMIT + 1);
    return sj_rows_list(statement, LIMIT, body, error);
}

const sj_route sj_route_policies = {.pattern = "/api/v1/policies", .run = answer_policies};
