/* For a server whose database mirrors a cluster of many labs (forward/cluster_mirror.h). Fetches
 * sums from the cluster before a route reads them. Sends SQL requests with engine=cluster to the
 * cluster. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_CLUSTER_RESULTS_H
#define SJ_COLLECTOR_SERVER_HTTP_CLUSTER_RESULTS_H

#include "collector-server/http/route.h"

/* Fetches the sums that a request reads. If `is_of_session`, these are the sums of the session in
 * its path, else of the sets in its parameters p.session, p.a and p.b. Does nothing without a
 * cluster. Ignores unknown sessions and invalid sets; the route reports them. Returns SJ_EAGAIN if
 * the cluster cannot be reached, and otherwise the errors of sj_cluster_mirror_need. */
SJ_MUST_CHECK sj_status sj_cluster_results_prepare(const sj_request *request, bool is_of_session,
                                                   sj_error *error);

/* Sends a statement to the cluster. Replaces each :NAME in it by the request's parameter p.NAME.
 * The result is the table `answer` of an in-memory database, which the caller closes. Returns
 * SJ_EINVAL if there is no cluster, a value is missing, or the cluster refuses. */
SJ_MUST_CHECK sj_status sj_cluster_results_ask(const sj_request *request, const char *sql,
                                               int64_t rows, int64_t time_ms, sqlite3 **result,
                                               sj_error *error);

#endif
