/* A database that follows a cluster: the newest sessions of all labs as they are there now, and the
 * sums of a session from the moment on that somebody asks for them. What reads a lab's database
 * reads all labs by it. Calls, values and timelines stay in their labs. Any thread, one at a time
 * inside. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_CLUSTER_MIRROR_H
#define SJ_COLLECTOR_SERVER_FORWARD_CLUSTER_MIRROR_H

#include "collector-server/forward/cluster_question.h"
#include "collector-server/forward/forward_target.h"

typedef struct sj_cluster_mirror sj_cluster_mirror;

/* sj_cluster_mirror_open makes the database at `path`, where nothing is, and reads the sessions
 * into it. `cluster` is borrowed until it is closed. Errors as sj_cluster_mirror_refresh. Blocking.
 */
SJ_MUST_CHECK sj_status sj_cluster_mirror_open(const sj_forward_options *cluster, const char *path,
                                               sj_cluster_mirror **mirror, sj_error *error);
void sj_cluster_mirror_close(sj_cluster_mirror *mirror); /* NULL is allowed; the file stays */

/* sj_cluster_mirror_refresh takes over what is new, has changed, or was removed: of a session that
 * has changed the sums are forgotten. SJ_EPERM, SJ_EAGAIN not reached, SJ_EVERSION, SJ_ENOTFOUND no
 * tables there, SJ_EIO, SJ_EFULL, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_cluster_mirror_refresh(sj_cluster_mirror *mirror, sj_error *error);

/* sj_cluster_mirror_need fetches the sums of the sessions of a set (session_set.h) that are not
 * there yet. SJ_EINVAL, SJ_ENOTFOUND: the set; as sj_cluster_mirror_refresh. */
SJ_MUST_CHECK sj_status sj_cluster_mirror_need(sj_cluster_mirror *mirror, const char *set,
                                               sj_error *error);

/* sj_cluster_mirror_ask asks the cluster itself (sj_cluster_ask). */
SJ_MUST_CHECK sj_status sj_cluster_mirror_ask(sj_cluster_mirror *mirror, const char *sql,
                                              const sj_cluster_limits *limits, sqlite3 **answer,
                                              bool *is_cut, sj_error *error);

/* sj_cluster_mirror_engine says which engine answers, for how many labs and sessions, and whether
 * in part: as of the last refresh, with what was wrong with it. */
void sj_cluster_mirror_engine(sj_cluster_mirror *mirror, char *line, size_t capacity);

#endif
