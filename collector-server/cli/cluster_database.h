/* A temporary database for --cluster. While a command runs, it mirrors a ClickHouse cluster that
 * stores the sessions of many labs. Its file is in a new folder below $TMPDIR. */
#ifndef SJ_COLLECTOR_SERVER_CLI_CLUSTER_DATABASE_H
#define SJ_COLLECTOR_SERVER_CLI_CLUSTER_DATABASE_H

#include "collector-server/forward/cluster_mirror.h"

#include <limits.h>

typedef struct sj_cluster_database {
    char folder[PATH_MAX / 2];
    char path[PATH_MAX];
    sj_cluster_mirror *mirror;
} sj_cluster_database;

/* Opens a database that reads the sessions of all labs. `cluster` is borrowed. Fails with SJ_EIO if
 * the folder cannot be made, and with the errors of sj_cluster_mirror_open. Removes the files on an
 * error, and when SIGINT, SIGTERM or SIGHUP ends the process. A process can have one such database
 * at a time. */
SJ_MUST_CHECK sj_status sj_cluster_database_open(const sj_forward_options *cluster,
                                                 sj_cluster_database *database, sj_error *error);

/* Closes the database and removes its files. Close all other connections to the database before. */
void sj_cluster_database_close(sj_cluster_database *database);

#endif
