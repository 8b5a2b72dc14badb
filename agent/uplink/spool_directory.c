#include "agent/uplink/spool_directory.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

sj_status sj_spool_directory_make(const char *path, size_t path_bytes, bool *is_new,
                                  sj_error *error)
{
    *is_new = false;
    if (path == NULL || strlen(path) > path_bytes - SJ_SPOOL_NAMES_BYTES) {
        return sj_fail(error, SJ_EINVAL, "the spool's folder has no usable name");
    }
    *is_new = mkdir(path, 0700) == 0;
    if (!*is_new && errno != EEXIST) {
        return sj_fail(error, SJ_EIO, "cannot create the spool %s: %s", path, strerror(errno));
    }
    return SJ_OK;
}

void sj_spool_directory_remove_unused(const char *path)
{
    char acknowledged[PATH_MAX];
    snprintf(acknowledged, sizeof(acknowledged), "%.4000s/acked", path);
    unlink(acknowledged);
    rmdir(path);
}
