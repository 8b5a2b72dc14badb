#include "collector-server/sojournd/disk_watch.h"

#include <stdio.h>
#include <sys/statvfs.h>

enum { SHORT_RESERVES = 4, MEGABYTE = 1000000 };

uint64_t sj_disk_free_bytes(const char *path)
{
    struct statvfs disk;
    return statvfs(path, &disk) == 0 ? (uint64_t)disk.f_bavail * disk.f_frsize : UINT64_MAX;
}

int sj_disk_watch_check(sj_disk_watch *watch, uint64_t free_bytes, char *text, size_t capacity)
{
    const uint64_t reserve = watch->reserve_bytes;
    const sj_disk_state state = free_bytes < reserve                    ? SJ_DISK_FULL
                                : free_bytes / SHORT_RESERVES < reserve ? SJ_DISK_SHORT
                                                                        : SJ_DISK_FREE;
    const unsigned long long megabytes = free_bytes / MEGABYTE;
    const unsigned long long limit = reserve / MEGABYTE;
    if (state == watch->state) {
        return 0;
    }
    watch->state = state;
    if (state == SJ_DISK_FULL) {
        snprintf(
            text, capacity,
            "%s: %llu MB are left on its disk, %llu MB are kept free: recordings wait on their "
            "devices until space is free; remove sessions (sojourn session remove, --retain)",
            watch->path, megabytes, limit);
    } else if (state == SJ_DISK_SHORT) {
        snprintf(text, capacity,
                 "%s: %llu MB are left on its disk; below %llu MB recordings will wait on their "
                 "devices; remove sessions (sojourn session remove, --retain)",
                 watch->path, megabytes, limit);
    } else {
        snprintf(text, capacity, "%s: there is space on its disk again", watch->path);
    }
    return 1;
}
