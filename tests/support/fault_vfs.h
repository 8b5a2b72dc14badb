/* A SQLite VFS for tests. It calls the system's VFS, and makes the n-th operation fail on request.
 * It notes all writes in the power log (power_log.h), and omits the syncs. Thread-safe. */
#ifndef SJ_TESTS_SUPPORT_FAULT_VFS_H
#define SJ_TESTS_SUPPORT_FAULT_VFS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum fault_kind {
    FAULT_IO, /* the operation fails with SQLITE_IOERR */
    /* writes, truncations and syncs fail with SQLITE_FULL, other operations with SQLITE_IOERR */
    FAULT_FULL,
    FAULT_TEAR, /* a write writes half of its bytes and then fails */
    FAULT_KINDS
} fault_kind;

/* Makes this the default VFS: databases that are opened later use it. */
void fault_vfs_install(void);

/* Makes the n-th operation from now on (from 0) fail. With `lasts`, all later operations fail, too.
 * Operations are: open, delete, read, write, truncate, sync, file size, lock, map shared memory. */
void fault_vfs_at(uint64_t n, fault_kind kind, bool lasts);

/* Ends the failures. True if an operation failed. */
bool fault_vfs_stop(void);

/* Returns the number of operations since fault_vfs_at, or since the start. fault_vfs_failures
 * returns how many of them failed. */
uint64_t fault_vfs_done(void);
uint64_t fault_vfs_failures(void);

#endif
