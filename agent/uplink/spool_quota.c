#include "agent/uplink/spool_quota.h"

#include "agent/uplink/spool_aside.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

uint64_t sj_spool_directory_bytes(const char *directory)
{
    uint64_t sum = 0;
    struct stat about;
    DIR *folder = opendir(directory);
    if (folder == NULL) {
        return 0;
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(about.st_mode)) {
            sum += (uint64_t)about.st_size;
        }
    }
    closedir(folder);
    return sum;
}

/* Sums the spools beside `directory`, and what they have set aside. Returns false if their folder
 * cannot be read, for example without memory. */
static bool sum_others(const char *directory, uint64_t *others_bytes)
{
    sj_spool_aside aside;
    char root[PATH_MAX];
    char path[2 * PATH_MAX];
    uint64_t sum = 0;
    snprintf(root, sizeof(root), "%.4000s", directory);
    char *slash = strrchr(root, '/');
    DIR *folder = NULL;
    if (slash != NULL) {
        *slash = '\0';
        folder = opendir(root);
    }
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL;
         entry = readdir(folder)) {
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, slash + 1) != 0) {
            snprintf(path, sizeof(path), "%s/%.255s", root, entry->d_name);
            sum += sj_spool_directory_bytes(path);
            (void)sj_spool_aside_read(path, &aside);
            sum += aside.bytes;
        }
    }
    if (slash != NULL && folder == NULL) {
        return false;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    *others_bytes = sum;
    return true;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

uint64_t sj_spool_quota_left(sj_spool_quota *quota, const char *directory, uint64_t own_bytes,
                             uint64_t segment_bytes)
{
    if (quota->budget_bytes == 0) {
        return UINT64_MAX;
    }
    if (own_bytes < quota->own_bytes) {
        quota->own_bytes = own_bytes; /* Some were acknowledged and deleted. */
    }
    const uint64_t known = quota->others_bytes + own_bytes;
    const bool is_scarce = known + segment_bytes >= quota->budget_bytes;
    if (quota->summed_ns == 0 || own_bytes >= quota->own_bytes + segment_bytes ||
        (is_scarce && now_ns() - quota->summed_ns > 1000000000)) {
        if (sum_others(directory, &quota->others_bytes)) {
            quota->own_bytes = own_bytes;
            quota->summed_ns = now_ns();
        }
    }
    const uint64_t used = quota->others_bytes + own_bytes;
    return used < quota->budget_bytes ? quota->budget_bytes - used : 0;
}
