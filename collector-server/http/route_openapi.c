#include "collector-server/http/reply.h"
#include "collector-server/http/route.h"

static const char path[] = "/api/v1/openapi.json";

static enum MHD_Result respond_openapi(sj_request *request)
{
    const sj_asset *asset = sj_asset_find(path);
    return asset != NULL
               ? sj_reply_asset(request->connection, asset)
               : sj_reply_error(request->connection, MHD_HTTP_NOT_FOUND, "there is nothing here");
}

const sj_route sj_route_openapi = {
    .pattern = path, .role = SJ_ROLE_READER, .respond = respond_openapi};
