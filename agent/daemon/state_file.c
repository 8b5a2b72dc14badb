#include "agent/daemon/state_file.h"

#include "agent/daemon/json_memory.h"
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

static sj_status fail_read(const char *path, const json_error_t *problem, sj_error *error)
{
    if (sj_json_is_out_of_memory(problem)) {
        return sj_fail(error, SJ_ENOMEM, "cannot read %s: out of memory", path);
    }
    return sj_fail(error, SJ_ECORRUPT, "%s, line %d, column %d: %s", path, problem->line,
                   problem->column, problem->text);
}

sj_status sj_state_file_read(const char *path, json_t **object, sj_error *error)
{
    json_error_t problem;
    *object = NULL;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return sj_fail(error,
                       errno == ENOENT   ? SJ_ENOTFOUND
                       : errno == ENOMEM ? SJ_ENOMEM
                                         : SJ_EIO,
                       "%s: %s", path, strerror(errno));
    }
    json_t *read = sj_json_parse_file(file, &problem);
    fclose(file);
    if (!json_is_object(read)) {
        const sj_status status = read != NULL
                                     ? sj_fail(error, SJ_ECORRUPT, "%s: not a JSON object", path)
                                     : fail_read(path, &problem, error);
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

sj_status sj_state_set(json_t *object, const char *key, json_t *value, sj_error *error)
{
    return json_object_set_new(object, key, value) == 0
               ? SJ_OK
               : sj_fail(error, SJ_ENOMEM, "out of memory");
}
