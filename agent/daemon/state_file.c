#include "agent/daemon/state_file.h"

#include "agent/host/directories.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

sj_status sj_state_file_path(const char *name, char *path, size_t capacity, sj_error *error)
{
    char directory[PATH_MAX];
    SJ_TRY(sj_state_directory("device", directory, sizeof(directory), error));
    const int written = snprintf(path, capacity, "%s/%s", directory, name);
    return written > 0 && (size_t)written < capacity
               ? SJ_OK
               : sj_fail(error, SJ_ELIMIT, "the path %s/%s is too long", directory, name);
}

sj_status sj_state_file_read(const char *path, json_t **object, sj_error *error)
{
    json_error_t problem;
    *object = NULL;
    if (access(path, F_OK) != 0) {
        return sj_fail(error, SJ_ENOTFOUND, "%s: %s", path, strerror(errno));
    }
    json_t *read = json_load_file(path, JSON_REJECT_DUPLICATES, &problem);
    if (!json_is_object(read)) {
        const sj_status status = read != NULL
                                     ? sj_fail(error, SJ_ECORRUPT, "%s: not a JSON object", path)
                                     : sj_fail(error, SJ_ECORRUPT, "%s, line %d, column %d: %s",
                                               path, problem.line, problem.column, problem.text);
        json_decref(read);
        return status;
    }
    *object = read;
    return SJ_OK;
}

sj_status sj_state_file_load(const char *name, json_t **object, sj_error *error)
{
    char path[PATH_MAX];
    *object = NULL;
    SJ_TRY(sj_state_file_path(name, path, sizeof(path), error));
    return sj_state_file_read(path, object, error);
}

sj_status sj_state_file_keep(const char *name, const json_t *object, sj_error *error)
{
    char path[PATH_MAX];
    char fresh[PATH_MAX + 8];
    SJ_TRY(sj_state_file_path(name, path, sizeof(path), error));
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    unlink(fresh);
    const int file = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const bool written = file >= 0 &&
                         json_dumpfd(object, file, JSON_INDENT(2) | JSON_PRESERVE_ORDER) == 0 &&
                         fsync(file) == 0 && rename(fresh, path) == 0;
    const int problem = errno;
    if (file >= 0) {
        close(file);
    }
    return written ? SJ_OK : sj_fail(error, SJ_EIO, "cannot write %s: %s", path, strerror(problem));
}
