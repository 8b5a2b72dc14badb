#include "collector-server/cli/cluster_database.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder_now[PATH_MAX / 2]; /* for the signal handler; one database per process */

/* Removes the folder and its files. Async-signal-safe. */
static void remove_files(const char *folder)
{
    static const char *const names[] = {"cluster.db", "cluster.db-wal", "cluster.db-shm",
                                        "cluster.db-journal"};
    const int place = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place < 0) {
        return;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)unlinkat(place, names[i], 0);
    }
    (void)close(place);
    (void)rmdir(folder);
}

static void remove_and_end(int number)
{
    remove_files(folder_now);
    (void)raise(number); /* ends the process, because of SA_RESETHAND */
}

/* Installs or removes the handler that removes the files when a signal ends the process. */
static void change_handlers(void (*before)(int), void (*after)(int))
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const struct sigaction action = {.sa_handler = after, .sa_flags = (int)SA_RESETHAND};
        struct sigaction now;
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler == before) {
            (void)sigaction(numbers[i], &action, NULL);
        }
    }
}

void sj_cluster_database_close(sj_cluster_database *database)
{
    sj_cluster_mirror_close(database->mirror);
    database->mirror = NULL;
    remove_files(database->folder);
    change_handlers(remove_and_end, SIG_DFL);
}

sj_status sj_cluster_database_open(const sj_forward_options *cluster, sj_cluster_database *database,
                                   sj_error *error)
{
    const char *place = getenv("TMPDIR");
    *database = (sj_cluster_database){0};
    const int length = snprintf(folder_now, sizeof(folder_now), "%s/sojourn-cluster-XXXXXX",
                                place != NULL && place[0] != '\0' ? place : "/tmp");
    /* before mkdtemp, which writes the name and creates the folder */
    change_handlers(SIG_DFL, remove_and_end);
    if (length >= (int)sizeof(folder_now) || mkdtemp(folder_now) == NULL) {
        change_handlers(remove_and_end, SIG_DFL);
        return sj_fail(error, SJ_EIO, "cannot make a folder in %s for the cluster's sums: %s",
                       place != NULL ? place : "/tmp", strerror(errno));
    }
    memcpy(database->folder, folder_now, sizeof(folder_now));
    snprintf(database->path, sizeof(database->path), "%s/cluster.db", database->folder);
    const sj_status status =
        sj_cluster_mirror_open(cluster, database->path, &database->mirror, error);
    if (status != SJ_OK) {
        sj_cluster_database_close(database);
    }
    return status;
}
