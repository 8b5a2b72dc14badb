/* Finds out whether a process has a database open. */
#ifndef SJ_COLLECTOR_SERVER_STORE_DATABASE_LOCK_H
#define SJ_COLLECTOR_SERVER_STORE_DATABASE_LOCK_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>

typedef struct sj_database_lock {
    sqlite3_file *file; /* an open file of SQLite's VFS; its methods can be called */
    sqlite3_filename name;
} sj_database_lock;

/* Locks a database as SQLite does, so that no connection can use it. `name` is an absolute name
 * without symbolic links. Returns SJ_EAGAIN if a connection of any process has the database open
 * with a log, or is writing to it. Returns SJ_EIO if the file cannot be locked, for example because
 * this user may not write to it. Returns SJ_ENOMEM. The caller frees `*lock` with
 * sj_database_lock_release, also after an error. Thread-safe. Does not wait. */
SJ_MUST_CHECK sj_status sj_database_lock_acquire(const char *name, sj_database_lock *lock);
void sj_database_lock_release(sj_database_lock *lock);

/* Returns SJ_EAGAIN if a process has the database `path` open with a log; the error says to end
 * that process. Returns SJ_OK if no process has it open, or if that cannot be found out.
 * Thread-safe. Does not wait. */
SJ_MUST_CHECK sj_status sj_database_check_unused(const char *path, sj_error *error);

#endif
