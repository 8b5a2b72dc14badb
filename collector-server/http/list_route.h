/* A route that shows one list of a session, cut at `limit` from `offset`. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_LIST_ROUTE_H
#define SJ_COLLECTOR_SERVER_HTTP_LIST_ROUTE_H

#include "collector-server/http/route.h"

/* sj_list_route_run runs `sql`, whose ?1 is the session, ?2 the limit and ?3 the offset. */
SJ_MUST_CHECK sj_status sj_list_route_run(sj_request *request, const char *sql, json_t **body,
                                          sj_error *error);

#endif
