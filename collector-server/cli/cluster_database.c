#include "collector-server/cli/cluster_database.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void sj_cluster_database_close(sj_cluster_database *database)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char path[PATH_MAX + 8];
    sj_cluster_mirror_close(database->mirror);
    database->mirror = NULL;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", database->path, ends[i]);
        (void)unlink(path);
    }
    (void)rmdir(database->folder);
}

sj_status sj_cluster_database_open(const sj_forward_options *cluster, sj_cluster_database *database,
                                   sj_error *error)
{
    const char *place = getenv("TMPDIR");
    *database = (sj_cluster_database){0};
    const int length =
        snprintf(database->folder, sizeof(database->folder), "%s/sojourn-cluster-XXXXXX",
                 place != NULL && place[0] != '\0' ? place : "/tmp");
    if (length >= (int)sizeof(database->folder) || mkdtemp(database->folder) == NULL) {
        return sj_fail(error, SJ_EIO, "cannot make a folder in %s for the cluster's sums: %s",
                       place != NULL ? place : "/tmp", strerror(errno));
    }
    snprintf(database->path, sizeof(database->path), "%s/cluster.db", database->folder);
    const sj_status status =
        sj_cluster_mirror_open(cluster, database->path, &database->mirror, error);
    if (status != SJ_OK) {
        sj_cluster_database_close(database);
    }
    return status;
}
