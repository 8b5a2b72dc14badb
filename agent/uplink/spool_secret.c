#include "agent/uplink/spool_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static bool read_whole(const char *path, uint8_t *secret)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) {
        return false;
    }
    const ssize_t got = read(file, secret, SJ_SPOOL_SECRET_BYTES);
    close(file);
    return got == SJ_SPOOL_SECRET_BYTES;
}

sj_status sj_spool_secret_read(const char *directory, uint8_t secret[SJ_SPOOL_SECRET_BYTES],
                               sj_error *error)
{
    char path[PATH_MAX];
    char fresh[PATH_MAX];
    snprintf(path, sizeof(path), "%.4000s/secret", directory);
    snprintf(fresh, sizeof(fresh), "%.4000s/secret.new", directory);
    if (read_whole(path, secret)) {
        return SJ_OK;
    }
    (void)unlink(fresh); /* Left by a process that was killed between the two steps. */
    const int file = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const bool is_written =
        file >= 0 && getrandom(secret, SJ_SPOOL_SECRET_BYTES, 0) == SJ_SPOOL_SECRET_BYTES &&
        write(file, secret, SJ_SPOOL_SECRET_BYTES) == SJ_SPOOL_SECRET_BYTES && fsync(file) == 0;
    if (file >= 0) {
        close(file);
    }
    if (!is_written || rename(fresh, path) != 0) {
        return sj_fail(error, SJ_EIO, "cannot keep the session's secret in %s: %s", directory,
                       strerror(errno));
    }
    return SJ_OK;
}

void sj_spool_secret_remove(const char *directory)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.4000s/secret", directory);
    (void)unlink(path);
    snprintf(path, sizeof(path), "%.4000s/secret.new", directory);
    (void)unlink(path);
}
