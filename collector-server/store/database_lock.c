#include "collector-server/store/database_lock.h"

#include <limits.h>
#include <stdlib.h>

static sj_status open_file(const char *name, sj_database_lock *lock)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    lock->name = sqlite3_create_filename(name, "", "", 0, NULL);
    lock->file = calloc(1, (size_t)vfs->szOsFile);
    if (lock->name == NULL || lock->file == NULL) {
        return SJ_ENOMEM;
    }
    const int flags = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READWRITE;
    const int result = vfs->xOpen(vfs, lock->name, lock->file, flags, NULL);
    return result == SQLITE_OK ? SJ_OK : result == SQLITE_NOMEM ? SJ_ENOMEM : SJ_EIO;
}

sj_status sj_database_lock_acquire(const char *name, sj_database_lock *lock)
{
    *lock = (sj_database_lock){.file = NULL};
    SJ_TRY(open_file(name, lock));
    int result = lock->file->pMethods->xLock(lock->file, SQLITE_LOCK_SHARED);
    if (result == SQLITE_OK) {
        result = lock->file->pMethods->xLock(lock->file, SQLITE_LOCK_EXCLUSIVE);
    }
    return result == SQLITE_OK ? SJ_OK : result == SQLITE_BUSY ? SJ_EAGAIN : SJ_EIO;
}

void sj_database_lock_release(sj_database_lock *lock)
{
    if (lock->file != NULL && lock->file->pMethods != NULL) {
        lock->file->pMethods->xUnlock(lock->file, SQLITE_LOCK_NONE);
        lock->file->pMethods->xClose(lock->file);
    }
    free(lock->file);
    sqlite3_free_filename(lock->name);
    *lock = (sj_database_lock){.file = NULL};
}

sj_status sj_database_check_unused(const char *path, sj_error *error)
{
    char name[PATH_MAX];
    sj_database_lock lock;
    if (realpath(path, name) == NULL) {
        return SJ_OK;
    }
    const sj_status status = sj_database_lock_acquire(name, &lock);
    sj_database_lock_release(&lock);
    return status != SJ_EAGAIN
               ? SJ_OK
               : sj_fail(error, SJ_EAGAIN,
                         "a process uses %s, for example the collector; end it first", path);
}
