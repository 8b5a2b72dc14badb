#include "collector-server/http/context.h"
#include "collector-server/http/route.h"

static enum MHD_Result respond(sj_request *request)
{
    return sj_event_hub_subscribe(request->context->events, request->connection);
}

const sj_route sj_route_events = {.pattern = "/api/v1/events", .respond = respond};
