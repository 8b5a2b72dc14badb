#include "collector-server/http/list_route.h"

static const char sql[] =
    "SELECT function_id AS id, name, module, offset, size_bytes, reason FROM unhooked_functions"
    " WHERE session_id = ?1 ORDER BY size_bytes DESC, name, function_id LIMIT ?2 OFFSET ?3";

static sj_status answer_unhooked(sj_request *request, json_t **body, sj_error *error)
{
    return sj_list_route_run(request, sql, body, error);
}

const sj_route sj_route_unhooked = {
    .pattern = "/api/v1/sessions/{id}/unhooked", .role = SJ_ROLE_READER, .run = answer_unhooked};
