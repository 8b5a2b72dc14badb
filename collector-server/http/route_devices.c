#include "collector-server/http/route.h"

#include "collector-server/http/parameters.h"
#include "collector-server/query/json_rows.h"

enum { LIMIT_DEFAULT = 500, LIMIT_MAX = 1000 };

/* Sorted by name, so that devices with the same name are neighbours. */
static const char sql[] =
    "SELECT d.device_id AS id, d.name, d.uuid, d.model, d.os, d.build, d.machine,"
    " d.agent_version, d.tags, d.first_seen_realtime_ns, max(d.last_seen_realtime_ns,"
    "  coalesce(s.polled_realtime_ns, 0)) AS last_seen_realtime_ns,"
    " CASE WHEN t.device_id IS NULL THEN 'no' WHEN t.revoked_realtime_ns IS NOT NULL"
    "  THEN 'revoked' ELSE 'yes' END AS enrolled,"
    " (SELECT count(*) FROM devices o WHERE o.name = d.name) - 1 AS namesakes,"
    " EXISTS (SELECT 1 FROM copied_devices k WHERE k.device_id = d.device_id) AS copied,"
    " coalesce(s.status, '{}') AS status FROM devices d LEFT JOIN device_tokens t USING (device_id)"
    " LEFT JOIN device_status s USING (device_id) ORDER BY d.name, d.device_id LIMIT ?1 OFFSET ?2";

static sj_status answer_devices(sj_request *request, json_t **body, sj_error *error)
{
    int64_t limit;
    int64_t offset;
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_parameter_number(request, "limit", (sj_parameter_range){1, LIMIT_MAX, LIMIT_DEFAULT},
                               &limit, error));
    SJ_TRY(sj_parameter_number(request, "offset", (sj_parameter_range){0, INT32_MAX, 0}, &offset,
                               error));
    SJ_TRY(sj_rows_prepare(request->database, sql, &statement, error));
    sqlite3_bind_int64(statement, 1, limit + 1);
    sqlite3_bind_int64(statement, 2, offset);
    return sj_rows_list(statement, (size_t)limit, body, error);
}

const sj_route sj_route_devices = {
    .pattern = "/api/v1/devices", .role = SJ_ROLE_READER, .run = answer_devices};
