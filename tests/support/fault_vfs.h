/* A VFS of SQLite for tests: the system's, which fails at the n-th operation on request. It
 * notes in the power log (power_log.h) what is written, and leaves out the syncs. One thread. */
#ifndef SJ_TESTS_SUPPORT_FAULT_VFS_H
#define SJ_TESTS_SUPPORT_FAULT_VFS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum fault_kind {
    FAULT_IO,   /* the operation fails with SQLITE_IOERR */
    FAULT_FULL, /* a write, a truncation or a sync fails with SQLITE_FULL; others with SQLITE_IOERR
                 */
    FAULT_TEAR, /* half of what a write has to write is written, and it fails */
    FAULT_KINDS
} fault_kind;

/* fault_vfs_install makes it the VFS that databases are opened with from now on. */
void fault_vfs_install(void);

/* fault_vfs_at makes the n-th operation from now on (from 0) fail, and with `lasts` all after it,
 * too. Operations: open, delete, read, write, truncate, sync, file size, lock, map shared memory.
 */
void fault_vfs_at(uint64_t n, fault_kind kind, bool lasts);

/* fault_vfs_stop ends that and returns whether one failed. */
bool fault_vfs_stop(void);

/* fault_vfs_done returns how many operations were made since fault_vfs_at or the start. */
uint64_t fault_vfs_done(void);

#endif
