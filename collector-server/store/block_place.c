#include "collector-server/store/block_place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that marks a folder of blocks. If the folder's file system is not mounted, the file is
 * missing. */
#define MARKER "sojourn-blocks"

static sj_status fail_file(sj_error *error, const char *address, const char *name)
{
    const int why = errno;
    const sj_status status = why == ENOSPC || why == EDQUOT ? SJ_EFULL : SJ_EIO;
    return sj_fail(error, status, "%s/%s: %s", address, name, strerror(why));
}

static bool make_path(const char *address, const char *name, char path[PATH_MAX])
{
    return strchr(name, '/') == NULL && snprintf(path, PATH_MAX, "%s/%s", address, name) < PATH_MAX;
}

static sj_status sync_folder(const char *address, sj_error *error)
{
    const int folder = open(address, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool is_kept = folder >= 0 && fsync(folder) == 0;
    const sj_status status = is_kept ? SJ_OK : fail_file(error, address, ".");
    if (folder >= 0) {
        close(folder);
    }
    return status;
}

static sj_status prepare_folder(const char *address, sj_error *error)
{
    char path[PATH_MAX];
    if (address[0] != '/' || !make_path(address, MARKER, path)) {
        return sj_fail(error, SJ_EINVAL, "%s: give the absolute path of a folder", address);
    }
    const int marker = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (marker < 0) {
        return fail_file(error, address, MARKER);
    }
    close(marker);
    return SJ_OK;
}

static sj_status create_in_folder(const char *address, const char *name, sj_place_file *file,
                                  sj_error *error)
{
    char path[PATH_MAX];
    if (!make_path(address, name, path)) {
        return sj_fail(error, SJ_EINVAL, "%s/%s is not a path", address, name);
    }
    file->file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file->file < 0) {
        return fail_file(error, address, name);
    }
    if (flock(file->file, LOCK_EX | LOCK_NB) != 0) {
        const sj_status status = fail_file(error, address, name);
        close(file->file);
        (void)unlink(path);
        return status;
    }
    struct stat about; /* a sweep may have deleted the file between open and flock */
    if (fstat(file->file, &about) != 0 || about.st_nlink == 0) {
        close(file->file);
        return sj_fail(error, SJ_EAGAIN, "%s/%s was deleted meanwhile", address, name);
    }
    return SJ_OK;
}

static sj_status append_to_file(const sj_place_file *file, sj_slice bytes, sj_error *error)
{
    for (size_t done = 0; done < bytes.size;) {
        const ssize_t written = write(file->file, bytes.data + done, bytes.size - done);
        if (written < 0 && errno != EINTR) {
            return sj_fail(error, errno == ENOSPC || errno == EDQUOT ? SJ_EFULL : SJ_EIO,
                           "cannot write blocks: %s", strerror(errno));
        }
        done += written > 0 ? (size_t)written : 0;
    }
    return SJ_OK;
}

static sj_status keep_in_folder(const char *address, const sj_place_file *file, sj_error *error)
{
    return fsync(file->file) == 0 ? sync_folder(address, error)
                                  : fail_file(error, address, "(a file of blocks)");
}

/* True if `name` can be the name of a file of blocks. A database from an unknown source could
 * name any file, and its import would read that file. So only such names, in a marked folder,
 * are opened. */
static bool is_of_blocks(const char *name)
{
    const char *end = strrchr(name, '.');
    return end != NULL && strcmp(end, ".blocks") == 0;
}

static bool is_prepared(const char *address)
{
    char marker[PATH_MAX];
    return make_path(address, MARKER, marker) && access(marker, F_OK) == 0;
}

static sj_status open_in_folder(const char *address, const char *name, sj_place_file *file,
                                sj_error *error)
{
    char path[PATH_MAX];
    if (!is_of_blocks(name) || !make_path(address, name, path)) {
        return sj_fail(error, SJ_EIO, "%s/%s is not a file of blocks", address, name);
    }
    if (!is_prepared(address)) {
        return fail_file(error, address, name);
    }
    struct stat about;
    file->file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file->file < 0) {
        return fail_file(error, address, name);
    }
    if (fstat(file->file, &about) != 0 || !S_ISREG(about.st_mode)) {
        close(file->file);
        return sj_fail(error, SJ_EIO, "%s/%s is not a file", address, name);
    }
    return SJ_OK;
}

static sj_status read_file(const sj_place_file *file, uint64_t offset, uint8_t *bytes, size_t size,
                           sj_error *error)
{
    for (size_t done = 0; done < size;) {
        const ssize_t got = pread(file->file, bytes + done, size - done, (off_t)(offset + done));
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return sj_fail(error, SJ_EIO, "%s", got == 0 ? "it ends too early" : strerror(errno));
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return SJ_OK;
}

static void close_file(sj_place_file *file)
{
    if (file->file >= 0) {
        close(file->file);
        file->file = -1;
    }
}

static sj_status remove_from_folder(const char *address, const char *name)
{
    char path[PATH_MAX];
    if (!is_of_blocks(name) || !make_path(address, name, path) || !is_prepared(address)) {
        return SJ_EAGAIN;
    }
    const int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        return errno == ENOENT ? SJ_OK : SJ_EAGAIN;
    }
    const bool is_removed = flock(file, LOCK_EX | LOCK_NB) == 0 && unlink(path) == 0;
    close(file);
    return is_removed ? SJ_OK : SJ_EAGAIN;
}

const sj_block_place_kind sj_block_place_folder = {.name = "folder",
                                                   .prepare = prepare_folder,
                                                   .create = create_in_folder,
                                                   .append = append_to_file,
                                                   .keep = keep_in_folder,
                                                   .open = open_in_folder,
                                                   .read = read_file,
                                                   .close = close_file,
                                                   .remove = remove_from_folder};

const sj_block_place_kind *sj_block_place_find(const char *name)
{
    static const sj_block_place_kind *const kinds[] = {&sj_block_place_folder};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (name != NULL && strcmp(kinds[i]->name, name) == 0) {
            return kinds[i];
        }
    }
    return NULL;
}
