#include "collector-server/cli/cluster_database.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char temporary_folder[PATH_MAX / 2]; /* for the signal handler; one database per process */

/* Removes the folder and the database in it. Async-signal-safe. */
static void remove_folder(const char *folder)
{
    static const char *const names[] = {"cluster.db", "cluster.db-wal", "cluster.db-shm",
                                        "cluster.db-journal"};
    const int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_fd < 0) {
        return;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)unlinkat(folder_fd, names[i], 0);
    }
    (void)close(folder_fd);
    (void)rmdir(folder);
}

static void remove_folder_and_end(int number)
{
    remove_folder(temporary_folder);
    (void)raise(number); /* ends the process, because of SA_RESETHAND */
}

/* Replaces the handler `before` of SIGINT, SIGTERM and SIGHUP with `after`. A signal with another
 * handler keeps it. */
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
    remove_folder(database->folder);
    change_handlers(remove_folder_and_end, SIG_DFL);
}

sj_status sj_cluster_database_open(const sj_forward_options *cluster, sj_cluster_database *database,
                                   sj_error *error)
{
    const char *parent = getenv("TMPDIR");
    *database = (sj_cluster_database){0};
    const int length =
        snprintf(temporary_folder, sizeof(temporary_folder), "%s/sojourn-cluster-XXXXXX",
                 parent != NULL && parent[0] != '\0' ? parent : "/tmp");
    /* Before mkdtemp: a signal may come as soon as the folder exists. */
    change_handlers(SIG_DFL, remove_folder_and_end);
    if (length >= (int)sizeof(temporary_folder) || mkdtemp(temporary_folder) == NULL) {
        change_handlers(remove_folder_and_end, SIG_DFL);
        return sj_fail(error, SJ_EIO, "cannot make a folder in %s for the cluster's sums: %s",
                       parent != NULL ? parent : "/tmp", strerror(errno));
    }
    memcpy(database->folder, temporary_folder, sizeof(temporary_folder));
    snprintf(database->path, sizeof(database->path), "%s/cluster.db", database->folder);
    const sj_status status =
        sj_cluster_mirror_open(cluster, database->path, &database->mirror, error);
    if (status != SJ_OK) {
        sj_cluster_database_close(database);
    }
    return status;
}
