#include "collector-server/http/list_route.h"
#include "schema/queries/http/gaps.h"

static sj_status answer_gaps(sj_request *request, json_t **body, sj_error *error)
{
    return sj_list_route_run(request, sj_gaps_sql, body, error);
}

const sj_route sj_route_gaps = {
    .pattern = "/api/v1/sessions/{id}/gaps", .role = SJ_ROLE_READER, .run = answer_gaps};
