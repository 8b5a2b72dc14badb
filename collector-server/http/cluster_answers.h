/* What a server over a cluster of many labs does beyond one over a lab's database: sums are fetched
 * before they are read, and statements go to the cluster itself where a page says engine=cluster.
 */
#ifndef SJ_COLLECTOR_SERVER_HTTP_CLUSTER_ANSWERS_H
#define SJ_COLLECTOR_SERVER_HTTP_CLUSTER_ANSWERS_H

#include "collector-server/http/route.h"

/* sj_cluster_answers_prepare fetches the sums that a request reads: of the session in its path, and
 * of the sets in its parameters p.session, p.a and p.b. Sessions that nobody knows are the route's
 * to name. SJ_EAGAIN: the cluster is not reached; as sj_cluster_mirror_need. */
SJ_MUST_CHECK sj_status sj_cluster_answers_prepare(const sj_request *request, bool is_of_session,
                                                   sj_error *error);

/* sj_cluster_answers_ask asks the cluster, with p.NAME for :NAME; the answer is the table `answer`
 * of a database in memory, to be closed. SJ_EINVAL: there is no cluster, no value, or it refuses.
 */
SJ_MUST_CHECK sj_status sj_cluster_answers_ask(const sj_request *request, const char *sql,
                                               int64_t rows, int64_t time_ms, sqlite3 **answer,
                                               sj_error *error);

#endif
