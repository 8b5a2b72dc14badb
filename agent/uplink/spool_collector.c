#include "agent/uplink/spool_collector.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void path_in(const char *directory, const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%.4000s/%s", directory, name);
}

sj_status sj_spool_collector_keep(const char *directory, const char *url, sj_error *error)
{
    char path[PATH_MAX];
    char fresh[PATH_MAX];
    const size_t size = strlen(url);
    if (size >= SJ_SPOOL_COLLECTOR_BYTES) {
        return sj_fail(error, SJ_ELIMIT, "the collector's address is too long");
    }
    path_in(directory, "collector", path);
    path_in(directory, "collector.new", fresh);
    const int file = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    const bool is_written =
        file >= 0 && write(file, url, size) == (ssize_t)size && fsync(file) == 0;
    if (file >= 0) {
        close(file);
    }
    return is_written && rename(fresh, path) == 0
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot note the session's collector in %s: %s", directory,
                         strerror(errno));
}

bool sj_spool_collector_read(const char *directory, char url[SJ_SPOOL_COLLECTOR_BYTES])
{
    char path[PATH_MAX];
    path_in(directory, "collector", path);
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) {
        return false;
    }
    const ssize_t size = read(file, url, SJ_SPOOL_COLLECTOR_BYTES - 1);
    close(file);
    url[size > 0 ? size : 0] = '\0';
    return size > 0;
}

void sj_spool_collector_remove(const char *directory)
{
    char path[PATH_MAX];
    path_in(directory, "collector", path);
    (void)unlink(path);
    path_in(directory, "collector.new", path);
    (void)unlink(path);
}
