#include "collector-server/maintenance/deleted_file.h"

#include <dirent.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINK_BYTES = PATH_MAX + 32 };

/* Writes the absolute name of a file, as /proc shows it for a descriptor. Returns false if the
 * folder of `path` does not exist. */
static bool name_link(const char *path, char link[LINK_BYTES])
{
    char folder_copy[PATH_MAX];
    char file_copy[PATH_MAX];
    char folder[PATH_MAX];
    if (snprintf(folder_copy, sizeof(folder_copy), "%s", path) >= PATH_MAX ||
        snprintf(file_copy, sizeof(file_copy), "%s", path) >= PATH_MAX ||
        realpath(dirname(folder_copy), folder) == NULL) {
        return false;
    }
    const char *end = strcmp(folder, "/") == 0 ? "" : folder;
    return snprintf(link, LINK_BYTES, "%s/%s", end, basename(file_copy)) < LINK_BYTES;
}

/* True if `found` is the deleted file of the name `link`, or the log of a database of that name. */
static bool is_meant(const char *found, const char *link)
{
    static const char *const ends[] = {" (deleted)", "-wal", "-shm", "-wal (deleted)",
                                       "-shm (deleted)"};
    const size_t length = strlen(link);
    if (strncmp(found, link, length) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); ++i) {
        if (strcmp(found + length, ends[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_open(const char *process, const char *link)
{
    char name[LINK_BYTES];
    char found[LINK_BYTES];
    bool is_found = false;
    snprintf(name, sizeof(name), "/proc/%.20s/fd", process);
    DIR *descriptors = opendir(name);
    struct dirent *entry;
    while (descriptors != NULL && !is_found && (entry = readdir(descriptors)) != NULL) {
        const ssize_t length =
            readlinkat(dirfd(descriptors), entry->d_name, found, sizeof(found) - 1);
        found[length > 0 ? length : 0] = '\0';
        is_found = is_meant(found, link);
    }
    if (descriptors != NULL) {
        closedir(descriptors);
    }
    return is_found;
}

pid_t sj_deleted_file_holder(const char *path)
{
    char link[LINK_BYTES];
    pid_t holder = 0;
    DIR *processes = name_link(path, link) ? opendir("/proc") : NULL;
    struct dirent *entry;
    while (processes != NULL && holder == 0 && (entry = readdir(processes)) != NULL) {
        const long number = strtol(entry->d_name, NULL, 10);
        if (number > 0 && has_open(entry->d_name, link)) {
            holder = (pid_t)number;
        }
    }
    if (processes != NULL) {
        closedir(processes);
    }
    return holder;
}
