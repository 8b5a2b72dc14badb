/* A temporary database for --cluster. It mirrors a cluster of many labs while a command runs. It
 * lies in a folder of its own under $TMPDIR. */
#ifndef SJ_COLLECTOR_SERVER_CLI_CLUSTER_DATABASE_H
#define SJ_COLLECTOR_SERVER_CLI_CLUSTER_DATABASE_H

#include "collector-server/forward/cluster_mirror.h"

#include <limits.h>

typedef struct sj_cluster_database {
    char folder[PATH_MAX / 2];
    char path[PATH_MAX];
    sj_cluster_mirror *mirror;
} sj_cluster_database;

/* Opens a database that reads the sessions of all labs. `cluster` is borrowed. The errors are those
 * of sj_cluster_mirror_open. The files are removed on an error, and when a signal ends the process.
 * A process can have one open at a time. */
SJ_MUST_CHECK sj_status sj_cluster_database_open(const sj_forward_options *cluster,
                                                 sj_cluster_database *database, sj_error *error);

/* Removes the database. Its readers must be closed before. */
void sj_cluster_database_close(sj_cluster_database *database);

#endif
