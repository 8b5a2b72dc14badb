/* A route that returns one list of a session, at most `limit` rows from `offset`. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_LIST_ROUTE_H
#define SJ_COLLECTOR_SERVER_HTTP_LIST_ROUTE_H

#include "collector-server/http/route.h"

/* Runs `sql`. ?1 is the session, ?2 the limit and ?3 the offset. */
SJ_MUST_CHECK sj_status sj_list_route_run(sj_request *request, const char *sql, json_t **body,
                                          sj_error *error);

#endif
