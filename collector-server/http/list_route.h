/* Shared by the routes that return one list of a session. The request's parameters `limit` and
 * `offset` select the rows. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_LIST_ROUTE_H
#define SJ_COLLECTOR_SERVER_HTTP_LIST_ROUTE_H

#include "collector-server/http/route.h"

/* Runs `sql` and writes its rows to `*body`. The parameter ?1 of `sql` is the session's id, ?2 the
 * limit and ?3 the offset. Returns SJ_EINVAL if a parameter is invalid, SJ_ENOTFOUND if the session
 * does not exist, or an error of sj_rows_prepare. */
SJ_MUST_CHECK sj_status sj_list_route_run(sj_request *request, const char *sql, json_t **body,
                                          sj_error *error);

#endif
