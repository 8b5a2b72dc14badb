#include "collector-server/http/context.h"
#include "collector-server/http/parameters.h"
#include "collector-server/http/reply.h"
#include "collector-server/http/route.h"

static enum MHD_Result respond_events(sj_request *request)
{
    sj_error error = {.status = SJ_OK, .text = ""};
    int64_t session;
    if (sj_parameter_number(request, "session", (sj_parameter_range){1, INT64_MAX, 0}, &session,
                            &error) != SJ_OK) {
        return sj_reply_error(request->connection, MHD_HTTP_BAD_REQUEST, error.text);
    }
    return sj_event_hub_subscribe(request->context->events, request, session);
}

const sj_route sj_route_events = {
    .pattern = "/api/v1/events", .role = SJ_ROLE_READER, .respond = respond_events};
