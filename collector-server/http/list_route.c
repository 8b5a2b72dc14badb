#include "collector-server/http/list_route.h"

#include "collector-server/http/parameters.h"
#include "collector-server/query/json_rows.h"

enum { LIMIT_DEFAULT = 200, LIMIT_MAX = 1000, OFFSET_MAX = 100000000 };

sj_status sj_list_route_run(sj_request *request, const char *sql, json_t **body, sj_error *error)
{
    int64_t limit;
    int64_t offset;
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_parameter_number(request, "limit", (sj_parameter_range){1, LIMIT_MAX, LIMIT_DEFAULT},
                               &limit, error));
    SJ_TRY(sj_parameter_number(request, "offset", (sj_parameter_range){0, OFFSET_MAX, 0}, &offset,
                               error));
    SJ_TRY(sj_rows_require_session(request->database, request->id, error));
    SJ_TRY(sj_rows_prepare(request->database, sql, &statement, error));
    sqlite3_bind_int64(statement, 1, request->id);
    sqlite3_bind_int64(statement, 2, limit + 1);
    sqlite3_bind_int64(statement, 3, offset);
    return sj_rows_list(statement, (size_t)limit, body, error);
}
