#include "agent/session/function_log_file.h"

#include "agent/host/directories.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { NAME_BYTES = 32 };

static void name_file(uint32_t number, char name[NAME_BYTES])
{
    if (number == 0) {
        snprintf(name, NAME_BYTES, "function.txt");
    } else {
        snprintf(name, NAME_BYTES, "function.%u.txt", (unsigned)number);
    }
}

/* Renames all files to the next higher number, and deletes the oldest one. */
static void shift(sj_function_log_file *file)
{
    char name[NAME_BYTES];
    char older[NAME_BYTES];
    name_file(file->max_files - 1, name);
    if (unlinkat(file->directory, name, 0) == 0) {
        file->removed++;
    }
    for (uint32_t i = file->max_files - 1; i-- > 0;) {
        name_file(i, name);
        name_file(i + 1, older);
        (void)renameat(file->directory, name, file->directory, older);
    }
}

static bool create(sj_function_log_file *file)
{
    char name[NAME_BYTES];
    name_file(0, name);
    file->fd =
        openat(file->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    file->bytes = 0;
    return file->fd >= 0;
}

sj_status sj_function_log_file_open(const char *directory, uint64_t max_bytes, uint32_t max_files,
                                    sj_function_log_file *file, sj_error *error)
{
    file->directory = -1;
    file->fd = -1;
    file->max_bytes = max_bytes;
    file->max_files = max_files;
    file->bytes = 0;
    file->removed = 0;
    file->failure = 0;
    file->used = 0;
    SJ_TRY(sj_directory_make(directory, error));
    file->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->directory < 0) {
        return sj_fail(error, SJ_EIO, "%s: %s", directory, strerror(errno));
    }
    if (flock(file->directory, LOCK_EX | LOCK_NB) != 0) {
        return sj_fail(error, SJ_EAGAIN, "%s: another recording writes function.txt in this folder",
                       directory);
    }
    shift(file);
    file->removed = 0;
    return create(file) ? SJ_OK
                        : sj_fail(error, SJ_EIO, "cannot write %s/function.txt: %s", directory,
                                  strerror(errno));
}

void sj_function_log_file_flush(sj_function_log_file *file)
{
    size_t written = 0;
    while (file->failure == 0 && written < file->used) {
        const ssize_t result = write(file->fd, file->buffer + written, file->used - written);
        if (result < 0 && errno != EINTR) {
            file->failure = errno;
        }
        written += result > 0 ? (size_t)result : 0;
    }
    file->used = 0;
}

static void rotate(sj_function_log_file *file)
{
    sj_function_log_file_flush(file);
    close(file->fd);
    shift(file);
    if (!create(file) && file->failure == 0) {
        file->failure = errno;
    }
}

void sj_function_log_file_write(sj_function_log_file *file, const char *line, size_t bytes)
{
    if (file->failure == 0 && file->max_bytes != 0 && file->bytes != 0 &&
        file->bytes + bytes > file->max_bytes) {
        rotate(file);
    }
    if (file->failure != 0 || bytes > sizeof(file->buffer)) {
        return;
    }
    if (file->used + bytes > sizeof(file->buffer)) {
        sj_function_log_file_flush(file);
    }
    memcpy(file->buffer + file->used, line, bytes);
    file->used += bytes;
    file->bytes += bytes;
}

void sj_function_log_file_close(sj_function_log_file *file)
{
    if (file->fd >= 0) {
        sj_function_log_file_flush(file);
        close(file->fd);
        file->fd = -1;
    }
    if (file->directory >= 0) {
        close(file->directory); /* releases the lock, too */
        file->directory = -1;
    }
}
