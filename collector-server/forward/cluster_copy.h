/* Sessions out of a cluster into a lab's database: what labs gave, so that every command that reads
 * sums answers over all labs as over one. Calls, values and timelines stay in their labs. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_CLUSTER_COPY_H
#define SJ_COLLECTOR_SERVER_FORWARD_CLUSTER_COPY_H

#include "collector-server/forward/forward_target.h"

/* sj_cluster_copy_sessions adds devices, sessions and marks of all labs, without what was recorded,
 * so that sets of them can be named (session_set.h). `sessions` are uuids as SQL has a list of
 * texts, or a SELECT that gives them, NULL: all; none of them may be there. `database` is open with
 * SJ_DATABASE_CREATE, and all its sessions are from here; one that was removed and is added again
 * gets the id that it had. Shards that are away are left out. SJ_EINVAL, SJ_EPERM, SJ_EAGAIN,
 * SJ_EIO, SJ_ENOMEM. Blocking. */
SJ_MUST_CHECK sj_status sj_cluster_copy_sessions(sj_forward_target *target, sqlite3 *database,
                                                 const char *sessions, sj_error *error);

/* sj_cluster_copy_sums adds functions, sums, call paths and gaps of a session
 * that is there without them. Histograms are of nanoseconds there, and so is the session's clock.
 * As above; SJ_EAGAIN also: the session's shard does not answer; SJ_ECORRUPT: the cluster's rows
 * contradict each other. */
SJ_MUST_CHECK sj_status sj_cluster_copy_sums(sj_forward_target *target, sqlite3 *database,
                                             int64_t session_id, sj_error *error);

/* sj_cluster_copy_unknown counts the sessions of which the sums are there, but not whether they are
 * estimates: their labs gave them before the cluster had a place for that. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_cluster_copy_unknown(sqlite3 *database, int64_t *sessions,
                                                sj_error *error);

/* SJ_CLUSTER_COPY_UNKNOWN says so: a format with their number, as long long. */
#define SJ_CLUSTER_COPY_UNKNOWN                                                                    \
    "of %lld sessions it is not known which times are estimates, an older Sojourn gave them"

/* sj_cluster_copy_keep removes all sessions but those of a list of ids, and devices that have none,
 * before sums are added. SJ_EIO, SJ_EFULL. */
SJ_MUST_CHECK sj_status sj_cluster_copy_keep(sqlite3 *database, const int64_t *session_ids,
                                             size_t count, sj_error *error);

#endif
