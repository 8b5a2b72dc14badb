/* A database that follows a cluster, in a folder of its own under $TMPDIR, for as long as a command
 * runs: what --cluster makes of a cluster of many labs. */
#ifndef SJ_COLLECTOR_SERVER_CLI_CLUSTER_DATABASE_H
#define SJ_COLLECTOR_SERVER_CLI_CLUSTER_DATABASE_H

#include "collector-server/forward/cluster_mirror.h"

#include <limits.h>

typedef struct sj_cluster_database {
    char folder[PATH_MAX / 2];
    char path[PATH_MAX];
    sj_cluster_mirror *mirror;
} sj_cluster_database;

/* sj_cluster_database_open reads the sessions of all labs; `cluster` is borrowed. Errors as
 * sj_cluster_mirror_open; nothing is left then, nor when a signal ends the process. One at a time.
 */
SJ_MUST_CHECK sj_status sj_cluster_database_open(const sj_forward_options *cluster,
                                                 sj_cluster_database *database, sj_error *error);

/* sj_cluster_database_close removes it; readers have to be closed. */
void sj_cluster_database_close(sj_cluster_database *database);

#endif
