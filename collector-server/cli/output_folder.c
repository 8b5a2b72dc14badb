#include "collector-server/cli/output_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Removes a folder that has only files. */
static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
    closedir(folder);
    (void)rmdir(path);
}

/* Writes the message about a folder that exists already. */
static int report_existing(const sj_command *command, const char *path)
{
    return sj_command_error(command, SJ_EXIT_FAILED,
                            "cannot write %s: it exists already; remove it or choose another name",
                            path);
}

int sj_output_folder_open(const sj_command *command, const char *path, sj_output_folder *output)
{
    struct stat existing;
    *output = (sj_output_folder){.path = path};
    if (lstat(path, &existing) == 0) {
        return report_existing(command, path);
    }
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    if (asprintf(&output->unfinished, "%.*s.unfinished", (int)length, path) < 0) {
        output->unfinished = NULL;
        return sj_command_error(command, SJ_EXIT_FAILED, "out of memory");
    }
    int code = SJ_EXIT_OK;
    if (mkdir(output->unfinished, 0777) != 0) {
        code = errno == EEXIST ? report_existing(command, output->unfinished)
                               : sj_command_error(command, SJ_EXIT_FAILED, "cannot write %s: %s",
                                                  output->unfinished, strerror(errno));
        free(output->unfinished);
        *output = (sj_output_folder){0};
    }
    return code;
}

int sj_output_folder_close(const sj_command *command, sj_output_folder *output, int code)
{
    if (code == SJ_EXIT_OK && rename(output->unfinished, output->path) != 0) {
        code = sj_command_error(command, SJ_EXIT_FAILED, "cannot write %s: %s", output->path,
                                strerror(errno));
    }
    if (code != SJ_EXIT_OK) {
        remove_folder(output->unfinished);
    }
    free(output->unfinished);
    *output = (sj_output_folder){0};
    return code;
}
