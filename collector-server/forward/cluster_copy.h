/* Copies sessions from a cluster to a database that has the schema of a lab's database. Every
 * command that reads sums then works for all labs as for one lab. Calls, values and timelines are
 * not copied; they stay in their labs. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_CLUSTER_COPY_H
#define SJ_COLLECTOR_SERVER_FORWARD_CLUSTER_COPY_H

#include "collector-server/forward/forward_target.h"

/* Adds devices, sessions and marks of all labs, without their sums, so that sets of sessions can
 * be named (session_set.h).
 *
 * `sessions` is an SQL list of uuids as text, or a SELECT that yields them; NULL: all. The
 * database must not contain any of these sessions. `database` was opened with SJ_DATABASE_CREATE,
 * and has no sessions except those that this function added. A session that was removed from
 * `database` and is added again gets its former id. Shards that do not answer are skipped.
 *
 * Blocks on the network. Returns an error of sj_cluster_ask or of the database, or SJ_ELIMIT if
 * the cluster has too many rows. */
SJ_MUST_CHECK sj_status sj_cluster_copy_sessions(sj_forward_target *target, sqlite3 *database,
                                                 const char *sessions, sj_error *error);

/* Adds functions, sums, call paths and gaps of a session that sj_cluster_copy_sessions has added.
 * One tick of the session's clock and of its histograms is then one nanosecond. Blocks on the
 * network. Errors are those of sj_cluster_copy_sessions. Returns SJ_ENOTFOUND if the database does
 * not have the session. Returns SJ_EAGAIN if the session's shard does not answer. Returns
 * SJ_ECORRUPT if the cluster's rows contradict each other. */
SJ_MUST_CHECK sj_status sj_cluster_copy_sums(sj_forward_target *target, sqlite3 *database,
                                             int64_t session_id, sj_error *error);

/* Counts the sessions whose sums do not say which times are estimates: their labs sent the sums
 * before the cluster's tables had columns for that. Returns an error of the database. */
SJ_MUST_CHECK sj_status sj_cluster_copy_unknown(sqlite3 *database, int64_t *sessions,
                                                sj_error *error);

/* The printf format of a sentence about these sessions. Its argument is their number, a long
 * long. */
#define SJ_CLUSTER_COPY_UNKNOWN                                                                    \
    "of %lld sessions it is not known which times are estimates, an older Sojourn gave them"

/* Removes all sessions except those in a list of ids, and devices without sessions. Call it
 * before sums are added. Returns an error of the database. */
SJ_MUST_CHECK sj_status sj_cluster_copy_keep(sqlite3 *database, const int64_t *session_ids,
                                             size_t count, sj_error *error);

#endif
