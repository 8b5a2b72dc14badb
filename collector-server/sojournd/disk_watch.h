/* Says that a disk is getting full before recordings have to wait for it. */
#ifndef SJ_COLLECTOR_SERVER_SOJOURND_DISK_WATCH_H
#define SJ_COLLECTOR_SERVER_SOJOURND_DISK_WATCH_H

#include <stddef.h>
#include <stdint.h>

typedef enum sj_disk_state { SJ_DISK_ROOMY, SJ_DISK_SHORT, SJ_DISK_FULL } sj_disk_state;

typedef struct sj_disk_watch {
    const char *path;       /* a file on the disk; borrowed */
    uint64_t reserve_bytes; /* less is full; 0: nothing is ever said */
    sj_disk_state state;    /* that was said last */
} sj_disk_watch;

/* sj_disk_free_bytes returns what is free for this user on the disk of `path`; UINT64_MAX when that
 * cannot be read. */
uint64_t sj_disk_free_bytes(const char *path);

/* sj_disk_watch_look writes a sentence into `text` when the state is another than was said last,
 * and returns whether it did: short below four times the reserve, full below it. */
int sj_disk_watch_look(sj_disk_watch *watch, uint64_t free_bytes, char *text, size_t capacity);

#endif
