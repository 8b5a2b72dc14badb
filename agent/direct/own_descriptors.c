#include "agent/direct/own_descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOG_BYTES_MAX (1 << 20)

/* Closes all descriptors of the new table, for kernels without close_range (before 5.9). */
static void close_all(void)
{
    const long limit = sysconf(_SC_OPEN_MAX);
    for (int fd = 0; fd < (limit > 0 && limit < INT_MAX ? (int)limit : 1024); fd++) {
        close(fd);
    }
}

static int open_log(const char *path)
{
    struct stat status;
    const int log =
        open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (log >= 0 && fstat(log, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size > LOG_BYTES_MAX) {
        (void)!ftruncate(log, 0);
    }
    return log;
}

sj_status sj_own_descriptors(const char *log, sj_error *error)
{
    enum { CLOSE_RANGE_UNSHARE_FLAG = 2 };
    if (syscall(SYS_close_range, 0, ~0U, CLOSE_RANGE_UNSHARE_FLAG) != 0) {
        if (unshare(CLONE_FILES) != 0) {
            return sj_fail(error, SJ_EUNSUPPORTED,
                           "this system lets no thread have descriptors of its own (%s); direct "
                           "mode needs that, so that it never touches the program's",
                           strerror(errno));
        }
        close_all();
    }
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int opened = open_log(log);
    /* Occupy descriptors 0 to 2, so that a file opened later cannot get stray writes to stdout or
     * stderr. */
    const bool is_redirected =
        null == 0 && (opened == 1 || dup3(0, 1, O_CLOEXEC) == 1) && dup3(1, 2, O_CLOEXEC) == 2;
    return is_redirected ? SJ_OK
                         : sj_fail(error, SJ_EIO, "cannot open /dev/null: %s", strerror(errno));
}
