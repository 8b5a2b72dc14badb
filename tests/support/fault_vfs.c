#include "tests/support/fault_vfs.h"

#include "tests/support/power_log.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The state of the system's file follows this structure in memory. */
typedef struct fault_file {
    sqlite3_file base;
    power_file kind;
} fault_file;

static sqlite3_vfs *system_vfs;
static sqlite3_vfs vfs;
static atomic_uint_fast64_t done;
static atomic_uint_fast64_t failures;
static atomic_uint_fast64_t fails_at = UINT64_MAX;
static _Atomic fault_kind how;
static atomic_bool is_lasting;

/* Held during a change of a file and its note in the power log, so that both have one sequence. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

void fault_vfs_at(uint64_t n, fault_kind kind, bool lasts)
{
    fails_at = UINT64_MAX;
    done = 0;
    failures = 0;
    how = kind;
    is_lasting = lasts;
    fails_at = n;
}

bool fault_vfs_stop(void)
{
    fails_at = UINT64_MAX;
    return failures != 0;
}

uint64_t fault_vfs_done(void)
{
    return done;
}

uint64_t fault_vfs_failures(void)
{
    return failures;
}

/* Counts an operation. Returns SQLITE_OK if the system's VFS must carry the operation out, else the
 * error that the operation has to return. */
static int fails_now(int code, bool takes_space)
{
    const uint64_t n = atomic_fetch_add(&done, 1);
    const uint64_t at = fails_at;
    if (n != at && !(is_lasting && n > at)) {
        return SQLITE_OK;
    }
    failures++;
    return how == FAULT_FULL && takes_space ? SQLITE_FULL : code;
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const int result_ = (call);                                                                \
        if (result_ != SQLITE_OK) {                                                                \
            return result_;                                                                        \
        }                                                                                          \
    } while (0)

static sqlite3_file *system_file(sqlite3_file *file)
{
    return (sqlite3_file *)((fault_file *)file + 1);
}

static power_file kind_of(const sqlite3_file *file)
{
    return ((const fault_file *)file)->kind;
}

static int close_file(sqlite3_file *file)
{
    return system_file(file)->pMethods->xClose(system_file(file));
}

static int read_file(sqlite3_file *file, void *bytes, int size, sqlite3_int64 at)
{
    TRY(fails_now(SQLITE_IOERR_READ, false));
    return system_file(file)->pMethods->xRead(system_file(file), bytes, size, at);
}

static int write_some(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at)
{
    pthread_mutex_lock(&changing);
    const int result = system_file(file)->pMethods->xWrite(system_file(file), bytes, size, at);
    if (result == SQLITE_OK) {
        power_log_write(kind_of(file), (uint64_t)at, bytes, (size_t)size);
    }
    pthread_mutex_unlock(&changing);
    return result;
}

static int write_file(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at)
{
    const int fault = fails_now(SQLITE_IOERR_WRITE, true);
    if (fault != SQLITE_OK && how == FAULT_TEAR) {
        TRY(write_some(file, bytes, size / 2, at));
    }
    return fault != SQLITE_OK ? fault : write_some(file, bytes, size, at);
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
    TRY(fails_now(SQLITE_IOERR_TRUNCATE, true));
    pthread_mutex_lock(&changing);
    const int result = system_file(file)->pMethods->xTruncate(system_file(file), size);
    if (result == SQLITE_OK) {
        power_log_truncate(kind_of(file), (uint64_t)size);
    }
    pthread_mutex_unlock(&changing);
    return result;
}

/* The log determines what is on the disk, so the system need not sync. */
static int sync_file(sqlite3_file *file, int flags)
{
    (void)flags;
    TRY(fails_now(SQLITE_IOERR_FSYNC, true));
    power_log_sync(kind_of(file));
    return SQLITE_OK;
}

static int size_file(sqlite3_file *file, sqlite3_int64 *size)
{
    TRY(fails_now(SQLITE_IOERR_FSTAT, false));
    return system_file(file)->pMethods->xFileSize(system_file(file), size);
}

static int lock_file(sqlite3_file *file, int lock)
{
    TRY(fails_now(SQLITE_IOERR_LOCK, false));
    return system_file(file)->pMethods->xLock(system_file(file), lock);
}

static int unlock_file(sqlite3_file *file, int lock)
{
    return system_file(file)->pMethods->xUnlock(system_file(file), lock);
}

static int check_lock(sqlite3_file *file, int *is_locked)
{
    TRY(fails_now(SQLITE_IOERR_CHECKRESERVEDLOCK, false));
    return system_file(file)->pMethods->xCheckReservedLock(system_file(file), is_locked);
}

static int control_file(sqlite3_file *file, int what, void *argument)
{
    return system_file(file)->pMethods->xFileControl(system_file(file), what, argument);
}

static int get_sector_size(sqlite3_file *file)
{
    return system_file(file)->pMethods->xSectorSize(system_file(file));
}

static int get_traits(sqlite3_file *file)
{
    return system_file(file)->pMethods->xDeviceCharacteristics(system_file(file));
}

static int map_memory(sqlite3_file *file, int page, int size, int extend, void volatile **memory)
{
    TRY(fails_now(SQLITE_IOERR_SHMMAP, false));
    return system_file(file)->pMethods->xShmMap(system_file(file), page, size, extend, memory);
}

static int lock_memory(sqlite3_file *file, int offset, int count, int flags)
{
    if ((flags & SQLITE_SHM_LOCK) != 0) {
        TRY(fails_now(SQLITE_IOERR_SHMLOCK, false));
    }
    return system_file(file)->pMethods->xShmLock(system_file(file), offset, count, flags);
}

static void order_memory(sqlite3_file *file)
{
    system_file(file)->pMethods->xShmBarrier(system_file(file));
}

static int unmap_memory(sqlite3_file *file, int remove)
{
    return system_file(file)->pMethods->xShmUnmap(system_file(file), remove);
}

static int open_file(sqlite3_vfs *self, const char *name, sqlite3_file *file, int flags, int *got)
{
    static const sqlite3_io_methods methods = {
        2,          close_file, read_file,   write_file,   truncate_file, sync_file,
        size_file,  lock_file,  unlock_file, check_lock,   control_file,  get_sector_size,
        get_traits, map_memory, lock_memory, order_memory, unmap_memory,  NULL,
        NULL};
    (void)self;
    file->pMethods = NULL;
    TRY(fails_now(SQLITE_CANTOPEN, false));
    ((fault_file *)file)->kind = (flags & SQLITE_OPEN_MAIN_DB) != 0        ? POWER_DATABASE
                                 : (flags & SQLITE_OPEN_WAL) != 0          ? POWER_WAL
                                 : (flags & SQLITE_OPEN_MAIN_JOURNAL) != 0 ? POWER_JOURNAL
                                                                           : POWER_NONE;
    TRY(system_vfs->xOpen(system_vfs, name, system_file(file), flags, got));
    file->pMethods = &methods;
    return SQLITE_OK;
}

static int delete_file(sqlite3_vfs *self, const char *name, int sync_folder)
{
    (void)self;
    TRY(fails_now(SQLITE_IOERR_DELETE, false));
    pthread_mutex_lock(&changing);
    const int result = system_vfs->xDelete(system_vfs, name, sync_folder);
    if (result == SQLITE_OK) {
        power_log_delete(name);
    }
    pthread_mutex_unlock(&changing);
    return result;
}

void fault_vfs_install(void)
{
    if (system_vfs != NULL) {
        return;
    }
    system_vfs = sqlite3_vfs_find(NULL);
    vfs = *system_vfs;
    vfs.zName = "fault";
    vfs.pNext = NULL;
    vfs.szOsFile = (int)sizeof(fault_file) + system_vfs->szOsFile;
    vfs.xOpen = open_file;
    vfs.xDelete = delete_file;
    if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK) {
        abort();
    }
}
