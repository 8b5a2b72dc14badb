#include "collector-server/cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define UNFINISHED ".unfinished"

/* Only descriptors below this number are checked. */
enum { INHERITED_DESCRIPTORS = 256 };

/* True if a descriptor that this process inherited is the file, as with /dev/fd/3. */
static bool is_already_open(const struct stat *file)
{
    struct stat own;
    for (int i = 0; i < INHERITED_DESCRIPTORS; i++) {
        if (fstat(i, &own) == 0 && own.st_dev == file->st_dev && own.st_ino == file->st_ino) {
            return true;
        }
    }
    return false;
}

/* Sets the names of the output. Writes the status of an existing file to `older`; its mode is 0 if
 * there is none. Returns false if out of memory. */
static bool find_names(const char *path, sj_output_file *output, struct stat *older)
{
    struct stat link;
    const bool is_link = lstat(path, &link) == 0 && S_ISLNK(link.st_mode);
    const bool exists = stat(path, older) == 0;
    older->st_mode = exists ? older->st_mode : 0;
    const bool is_direct = exists ? !S_ISREG(older->st_mode) || is_already_open(older) : is_link;
    output->path = is_link && !is_direct ? realpath(path, NULL) : strdup(path);
    if (output->path != NULL && !is_direct &&
        asprintf(&output->unfinished, "%s" UNFINISHED, output->path) < 0) {
        output->unfinished = NULL;
    }
    return output->path != NULL && (is_direct || output->unfinished != NULL);
}

static void deinit_output(sj_output_file *output)
{
    if (output->unfinished != NULL && output->lock >= 0) {
        close(output->lock);
    }
    free(output->path);
    free(output->unfinished);
    *output = (sj_output_file){0};
}

/* Ignores a failure of fchown: only root may give a file to another user. */
static void copy_owner_and_mode(FILE *file, const struct stat *older)
{
    (void)!fchown(fileno(file), older->st_uid, older->st_gid);
    (void)fchmod(fileno(file), older->st_mode & 0777);
}

/* True if `name` is still the name of an open file. */
static bool is_named(int descriptor, const char *name)
{
    struct stat opened;
    struct stat named;
    return fstat(descriptor, &opened) == 0 && stat(name, &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* Opens and locks an unfinished file, and empties it. If another command gives the file its final
 * name meanwhile, opens a new one. Returns -1, with errno EWOULDBLOCK if another command writes. */
static int lock_unfinished(const char *name)
{
    for (;;) {
        const int descriptor = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        const bool is_locked = descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0;
        if (is_locked && is_named(descriptor, name) && ftruncate(descriptor, 0) == 0) {
            return descriptor;
        }
        const bool is_renamed = is_locked && !is_named(descriptor, name);
        const int problem = errno;
        if (descriptor >= 0) {
            close(descriptor);
        }
        errno = problem;
        if (!is_renamed) {
            return -1;
        }
    }
}

/* Opens `unfinished`. The lock has a descriptor of its own, so that it lasts until the file has its
 * final name. */
static FILE *open_unfinished(sj_output_file *output)
{
    const int descriptor = lock_unfinished(output->unfinished);
    output->lock = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0) : -1;
    FILE *file = output->lock >= 0 ? fdopen(descriptor, "w") : NULL;
    if (file == NULL && descriptor >= 0) {
        const int problem = errno;
        close(descriptor);
        errno = problem;
    }
    return file;
}

int sj_output_file_open(const sj_command *command, const char *path, sj_output_file *output)
{
    struct stat older;
    *output = (sj_output_file){.lock = -1};
    if (path == NULL) {
        output->file = stdout;
        return SJ_EXIT_OK;
    }
    if (!find_names(path, output, &older)) {
        deinit_output(output);
        return sj_command_error(command, SJ_EXIT_FAILED, "out of memory");
    }
    const char *name = output->unfinished != NULL ? output->unfinished : output->path;
    output->file = output->unfinished != NULL ? open_unfinished(output) : fopen(name, "we");
    if (output->file == NULL) {
        const char *why = errno == EWOULDBLOCK ? "another command is writing it" : strerror(errno);
        const int code =
            sj_command_error(command, SJ_EXIT_FAILED, "cannot write %s: %s", name, why);
        deinit_output(output);
        return code;
    }
    if (output->unfinished != NULL && older.st_mode != 0) {
        copy_owner_and_mode(output->file, &older);
    }
    return SJ_EXIT_OK;
}

/* Returns why an earlier write failed, as far as the disk shows it; 0: unknown. Streams do not keep
 * errno. A pipe has no blocks. */
static int find_problem(FILE *file)
{
    struct statvfs disk;
    const bool is_full =
        fstatvfs(fileno(file), &disk) == 0 && disk.f_blocks != 0 && disk.f_bavail == 0;
    return is_full ? ENOSPC : 0;
}

int sj_output_file_close(const sj_command *command, sj_output_file *output, int code)
{
    const bool failed = ferror(output->file) != 0;
    const bool is_stdout = output->path == NULL;
    const int earlier_problem = failed ? find_problem(output->file) : 0;
    const bool closed = (is_stdout ? fflush(stdout) : fclose(output->file)) == 0;
    const int problem = closed ? earlier_problem : errno;
    if (code == SJ_EXIT_OK && (failed || !closed)) {
        code = sj_command_error(command, SJ_EXIT_FAILED, "cannot write %s%s%s",
                                is_stdout ? "standard output" : output->path,
                                problem != 0 ? ": " : "", problem != 0 ? strerror(problem) : "");
    }
    if (output->unfinished != NULL && code == SJ_EXIT_OK &&
        rename(output->unfinished, output->path) != 0) {
        code = sj_command_error(command, SJ_EXIT_FAILED, "cannot write %s: %s", output->path,
                                strerror(errno));
    }
    if (output->unfinished != NULL && code != SJ_EXIT_OK) {
        (void)unlink(output->unfinished);
    }
    deinit_output(output);
    return code;
}
