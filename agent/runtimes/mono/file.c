#include "agent/runtimes/mono/file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 512 * 1024 * 1024 };

static sj_status read_whole(int file, uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        const ssize_t got = read(file, bytes + at, size - at);
        if (got <= 0) {
            return SJ_EIO;
        }
        at += (size_t)got;
    }
    return SJ_OK;
}

sj_status sj_mono_load_file(const char *path, uint8_t **bytes, size_t *size)
{
    struct stat facts;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        return SJ_ENOTFOUND;
    }
    sj_status status = SJ_ECORRUPT;
    if (fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0 &&
        facts.st_size <= FILE_MAX_BYTES) {
        *size = (size_t)facts.st_size;
        *bytes = malloc(*size);
        status = *bytes != NULL ? read_whole(file, *bytes, *size) : SJ_ENOMEM;
    }
    close(file);
    return status;
}
