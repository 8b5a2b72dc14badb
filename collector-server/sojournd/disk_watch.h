/* Warns that a disk is getting full, before recordings have to wait for it. */
#ifndef SJ_COLLECTOR_SERVER_SOJOURND_DISK_WATCH_H
#define SJ_COLLECTOR_SERVER_SOJOURND_DISK_WATCH_H

#include <stddef.h>
#include <stdint.h>

typedef enum sj_disk_state { SJ_DISK_FREE, SJ_DISK_SHORT, SJ_DISK_FULL } sj_disk_state;

typedef struct sj_disk_watch {
    const char *path;       /* a file on the disk; borrowed */
    uint64_t reserve_bytes; /* the disk counts as full if fewer bytes are free; 0: no warnings */
    sj_disk_state state;    /* the last reported state */
} sj_disk_watch;

/* Returns the free bytes for this user on the disk of `path`, or UINT64_MAX if that cannot be
 * read. */
uint64_t sj_disk_free_bytes(const char *path);

/* Computes the state from `free_bytes`: SJ_DISK_FULL below the reserve, SJ_DISK_SHORT below four
 * times the reserve. If the state differs from the last reported state, writes a message to `text`
 * and returns 1. Otherwise returns 0. */
int sj_disk_watch_check(sj_disk_watch *watch, uint64_t free_bytes, char *text, size_t capacity);

#endif
