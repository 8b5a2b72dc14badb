/* The command `write` stores a file of the collector in a directory that the collector names. */
#include "agent/daemon/command_kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PART_BYTES = 64 * 1024 };

/* True if the name is a single path component, so that the file stays in the directory. */
static bool is_file_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";
    return name != NULL && name[0] != '\0' && name[0] != '.' && strlen(name) <= 64 &&
           name[strspn(name, letters)] == '\0';
}

static sj_status fetch_into(const sj_device_command *command, int file, uint64_t number,
                            uint64_t total, sj_error *error)
{
    const sj_device_command_context *context = command->context;
    uint8_t *bytes = malloc(PART_BYTES);
    sj_status status = bytes != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
    for (uint64_t at = 0; status == SJ_OK && at < total;) {
        size_t got = 0;
        status = context->fetch(context->collector, number, at, bytes, PART_BYTES, &got, error);
        if (status == SJ_OK && (got == 0 || got > total - at)) {
            status = sj_fail(error, SJ_ECORRUPT, "the collector's file is not as long as it said");
        }
        for (size_t written = 0; status == SJ_OK && written < got;) {
            const ssize_t count = write(file, bytes + written, got - written);
            if (count < 0) {
                status = sj_fail(error, errno == ENOSPC ? SJ_EFULL : SJ_EIO, "cannot write: %s",
                                 strerror(errno));
            }
            written += count > 0 ? (size_t)count : 0;
        }
        at += got;
    }
    free(bytes);
    if (status == SJ_OK && fsync(file) != 0) {
        status = sj_fail(error, SJ_EIO, "cannot write: %s", strerror(errno));
    }
    return status;
}

static sj_status write_into(const sj_device_command *command, int folder, const char *name,
                            sj_error *error)
{
    char fresh[96];
    const json_t *arguments = command->arguments;
    const json_int_t number = json_integer_value(json_object_get(arguments, "file"));
    const json_int_t total = json_integer_value(json_object_get(arguments, "bytes"));
    if (number < 0 || total < 0) {
        return sj_fail(error, SJ_EINVAL, "a file needs a number and a size that are not negative");
    }
    snprintf(fresh, sizeof(fresh), ".%.64s.part", name);
    unlinkat(folder, fresh, 0);
    const int file =
        openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) {
        return sj_fail(error, SJ_EIO, "cannot write %s: %s", name, strerror(errno));
    }
    sj_status status = fetch_into(command, file, (uint64_t)number, (uint64_t)total, error);
    close(file);
    if (status == SJ_OK && renameat(folder, fresh, folder, name) != 0) {
        status = sj_fail(error, SJ_EIO, "cannot write %s: %s", name, strerror(errno));
    }
    if (status != SJ_OK) {
        unlinkat(folder, fresh, 0);
    }
    return status;
}

sj_status sj_device_command_run_write(const sj_device_command *command, json_t **result,
                                      sj_error *error)
{
    const char *name = json_string_value(json_object_get(command->arguments, "name"));
    const char *directory = json_string_value(json_object_get(command->arguments, "directory"));
    if (!is_file_name(name) || directory == NULL || directory[0] != '/') {
        return sj_fail(error, SJ_EINVAL, "a file needs a plain name and an absolute directory");
    }
    const int folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        return sj_fail(error, SJ_ENOTFOUND, "%.200s: %s", directory, strerror(errno));
    }
    sj_error problem = {0};
    const sj_status status = write_into(command, folder, name, &problem);
    close(folder);
    if (status != SJ_OK) {
        return sj_fail(error, status, "%.200s: %s", directory, problem.text);
    }
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.4000s/%.64s", directory, name);
    *result =
        json_pack("{ss sO}", "path", path, "bytes", json_object_get(command->arguments, "bytes"));
    return SJ_OK;
}
