#include "collector-server/cli/output_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

int sj_output_file_open(const sj_command *command, const char *path, sj_output_file *output)
{
    struct stat older;
    *output = (sj_output_file){0};
    if (path == NULL) {
        output->file = stdout;
        return SJ_EXIT_OK;
    }
    if (!find_names(path, output, &older)) {
        deinit_output(output);
        return sj_command_error(command, SJ_EXIT_FAILED, "out of memory");
    }
    const char *name = output->unfinished != NULL ? output->unfinished : output->path;
    output->file = fopen(name, "we");
    if (output->file == NULL) {
        const int code =
            sj_command_error(command, SJ_EXIT_FAILED, "cannot write %s: %s", name, strerror(errno));
        deinit_output(output);
        return code;
    }
    if (output->unfinished != NULL && older.st_mode != 0) {
        copy_owner_and_mode(output->file, &older);
    }
    return SJ_EXIT_OK;
}

int sj_output_file_close(const sj_command *command, sj_output_file *output, int code)
{
    const bool failed = ferror(output->file) != 0;
    const bool is_stdout = output->path == NULL;
    const bool closed = (is_stdout ? fflush(stdout) : fclose(output->file)) == 0;
    const int problem = closed ? 0 : errno; /* errno of an earlier failed write is lost */
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
