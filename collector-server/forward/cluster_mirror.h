/* A mirror: a database that follows a cluster. It has the newest sessions of all labs, and fetches
 * the sums of a session when a caller first needs them. Code that reads a lab's database can read
 * the sums of all labs from it. Calls, values and timelines stay in their labs. Thread-safe; a lock
 * serializes the calls. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_CLUSTER_MIRROR_H
#define SJ_COLLECTOR_SERVER_FORWARD_CLUSTER_MIRROR_H

#include "collector-server/forward/cluster_question.h"
#include "collector-server/forward/forward_target.h"

typedef struct sj_cluster_mirror sj_cluster_mirror;

/* Creates the database at `path`, which must not exist, and reads the sessions to it. Copies
 * the options `cluster`, but not cluster->stop, which must exist until the mirror is closed. Blocks
 * on the network. Errors are those of sj_cluster_mirror_refresh. */
SJ_MUST_CHECK sj_status sj_cluster_mirror_open(const sj_forward_options *cluster, const char *path,
                                               sj_cluster_mirror **mirror, sj_error *error);
/* Closes a mirror, which may be NULL. Does not remove the file. */
void sj_cluster_mirror_close(sj_cluster_mirror *mirror);

/* Copies sessions that are new, have changed, or were removed. Drops the sums of changed sessions.
 * Returns SJ_EAGAIN if the cluster does not answer. Returns SJ_ENOTFOUND if the cluster lacks
 * Sojourn's tables. Other errors: SJ_EPERM, SJ_EVERSION, SJ_EIO, SJ_EFULL, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_cluster_mirror_refresh(sj_cluster_mirror *mirror, sj_error *error);

/* Fetches the sums of the sessions of a set (session_set.h), unless the database has them already.
 * Returns SJ_EINVAL if the text `set` is invalid, and SJ_ENOTFOUND if it names no session. Other
 * errors are those of sj_cluster_mirror_refresh. */
SJ_MUST_CHECK sj_status sj_cluster_mirror_need(sj_cluster_mirror *mirror, const char *set,
                                               sj_error *error);

/* Runs a statement in the cluster, not in the mirror, as sj_cluster_ask does. Returns the same
 * errors. */
SJ_MUST_CHECK sj_status sj_cluster_mirror_ask(sj_cluster_mirror *mirror, const char *sql,
                                              const sj_cluster_limits *limits, sqlite3 **reply,
                                              bool *is_cut, sj_error *error);

/* Writes a line about the last refresh: which server answered, for how many labs and sessions, and
 * whether its answer was partial. If the refresh failed, the line has its error. The line also
 * counts the sessions that do not say which times are estimates. */
void sj_cluster_mirror_engine(sj_cluster_mirror *mirror, char *line, size_t capacity);

#endif
