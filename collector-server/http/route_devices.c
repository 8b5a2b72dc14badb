#include "collector-server/http/route.h"

#include "collector-server/http/parameters.h"
#include "collector-server/query/json_rows.h"
#include "schema/queries/http/devices.h"

enum { LIMIT_DEFAULT = 500, LIMIT_MAX = 1000 };

static sj_status answer_devices(sj_request *request, json_t **body, sj_error *error)
{
    int64_t limit;
    int64_t offset;
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_parameter_number(request, "limit", (sj_parameter_range){1, LIMIT_MAX, LIMIT_DEFAULT},
                               &limit, error));
    SJ_TRY(sj_parameter_number(request, "offset", (sj_parameter_range){0, INT32_MAX, 0}, &offset,
                               error));
    SJ_TRY(sj_rows_prepare(request->database, sj_devices_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, limit + 1);
    sqlite3_bind_int64(statement, 2, offset);
    return sj_rows_list(statement, (size_t)limit, body, error);
}

const sj_route sj_route_devices = {
    .pattern = "/api/v1/devices", .role = SJ_ROLE_READER, .run = answer_devices};
