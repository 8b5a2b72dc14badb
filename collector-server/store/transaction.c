/* Batches: a transaction from begin to commit, which also writes the aggregates that are due. */
#include "collector-server/store/database.h"
#include "collector-server/store/foreign_log.h"
#include "collector-server/store/store_internal.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum { WAL_RESTART_PAGES = 4096 }; /* 64 MiB: restart the log */

/* Returns the name of the file that is written, with links resolved. */
static const char *file_name(const sj_store *store)
{
    return sqlite3_db_filename(store->database, "main");
}

/* False for a database in memory, which has no file and no log. */
static bool has_file(const sj_store *store)
{
    const char *name = file_name(store);
    return name != NULL && name[0] != '\0';
}

static const char *log_name(const sj_store *store)
{
    return has_file(store) ? sqlite3_filename_wal(file_name(store)) : "";
}

static uint64_t file_bytes(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static bool is_full(const sj_store *store)
{
    struct statvfs disk;
    if (store->max_bytes != 0 &&
        file_bytes(file_name(store)) + file_bytes(log_name(store)) >= store->max_bytes) {
        return true;
    }
    return store->reserve_bytes != 0 && statvfs(store->path, &disk) == 0 &&
           (uint64_t)disk.f_bavail * disk.f_frsize < store->reserve_bytes;
}

/* Returns the inode of the database's log, or 0 if there is none. */
static uint64_t wal_inode(const sj_store *store)
{
    struct stat status;
    return stat(log_name(store), &status) == 0 ? (uint64_t)status.st_ino : 0;
}

/* True if the database's name, which may be a link, leads to the file that is being written. */
static bool is_named(const sj_store *store)
{
    struct stat named;
    struct stat written;
    return !has_file(store) ||
           (stat(store->path, &named) == 0 && stat(file_name(store), &written) == 0 &&
            named.st_ino == written.st_ino && named.st_dev == written.st_dev);
}

/* Fails if the database's name no longer leads to the file that is being written, or if that file
 * was overwritten. Data stored there would be lost when this process ends. */
static sj_status check_in_place(sj_store *store, sj_error *error)
{
    int has_moved = 0;
    const bool is_known = sqlite3_file_control(store->database, "main", SQLITE_FCNTL_HAS_MOVED,
                                               &has_moved) == SQLITE_OK;
    if ((is_known && has_moved) || !is_named(store) ||
        (store->wal_inode != 0 && wal_inode(store) != store->wal_inode)) {
        return sj_fail(error, SJ_EIO,
                       "%s was removed or replaced while it was open; put it back as it was, or "
                       "restart this program: until then nothing is acknowledged",
                       store->path);
    }
    SJ_TRY(sj_file_watch_check(&store->watch, store->database, store->path, error));
    if (has_file(store)) {
        sj_log_base_note(file_name(store), &store->watch, store->noted_log);
    }
    return SJ_OK;
}

sj_status sj_store_begin(sj_store *store, sj_error *error)
{
    if (store->in_batch) {
        return sj_fail(error, SJ_EINVAL, "a batch is open already");
    }
    SJ_TRY(check_in_place(store, error));
    store->full = is_full(store);
    SJ_TRY(sj_run_begin(&store->sql, error));
    store->in_batch = true;
    store->batch++;
    const sj_status status =
        sj_device_quotas_begin(&store->quotas, &store->sql, sj_store_realtime_ns(), error);
    if (status != SJ_OK) {
        sj_store_rollback(store);
    }
    return status;
}

sj_status sj_store_check_full(const sj_store *store, sj_error *error)
{
    return store->full ? sj_fail(error, SJ_EFULL,
                                 "the collector's store is full; recordings wait on the device")
                       : SJ_OK;
}

sj_status sj_store_check(sj_store *store, sj_error *error)
{
    SJ_TRY(sj_store_begin(store, error));
    sj_store_rollback(store);
    return sj_store_check_full(store, error);
}

void sj_store_checkpoint(sj_store *store, int mode)
{
    int frames = 0;
    sj_database_set_patience(store->database, false); /* retried later if a reader is in the way */
    sqlite3_wal_checkpoint_v2(store->database, NULL, mode, &frames, NULL);
    sj_database_set_patience(store->database, true);
}

static sj_status commit(sj_store *store, bool all_aggregates, sj_error *error)
{
    sj_status status = sj_store_write_aggregates(store, all_aggregates, error);
    if (status == SJ_OK) {
        status = sj_store_trim_sessions(store, error);
    }
    if (status == SJ_OK) {
        status = sj_device_quotas_write(&store->quotas, &store->sql, error);
    }
    if (status == SJ_OK) {
        status = sj_run_commit(&store->sql, error);
    }
    if (status != SJ_OK) {
        sj_store_rollback(store);
        return status;
    }
    store->in_batch = false;
    status = check_in_place(store, error); /* a commit to a replaced file does not count */
    if (status != SJ_OK) {
        sj_store_forget_sessions(store, false);
        return status;
    }
    store->wal_inode = wal_inode(store);
    if (store->wal_pages >= WAL_RESTART_PAGES) {
        sj_store_checkpoint(store, SQLITE_CHECKPOINT_RESTART);
    } else if (store->wal_pages >= WAL_RESTART_PAGES / 4) {
        sj_store_checkpoint(store, SQLITE_CHECKPOINT_PASSIVE);
    }
    sj_store_forget_sessions(store, true);
    return SJ_OK;
}

sj_status sj_store_commit(sj_store *store, sj_error *error)
{
    error->text[0] = '\0';
    return sj_store_explain(commit(store, false, error), error);
}

bool sj_store_has_stale(sj_store *store)
{
    sj_error ignored;
    for (size_t i = 0; i < store->session_count; ++i) {
        if (store->sessions[i]->dirty && !store->sessions[i]->is_quarantined) {
            return true;
        }
    }
    const bool found = SJ_START(&store->sql, session_stale_next, &ignored, .after_session_id = 0,
                                .with_quarantined = 0) == SJ_OK &&
                       sj_sql_step(&store->sql, SJ_SQL_SESSION_STALE_NEXT, &ignored) == SJ_OK;
    sj_sql_reset(&store->sql, SJ_SQL_SESSION_STALE_NEXT);
    return found;
}

sj_status sj_store_write_some_aggregates(sj_store *store, sj_error *error)
{
    SJ_TRY(sj_store_begin(store, error));
    const sj_status status = sj_store_load_stale(store, error);
    if (status != SJ_OK) {
        sj_store_rollback(store);
        return status;
    }
    return commit(store, true, error);
}

sj_status sj_store_write_all_aggregates(sj_store *store, sj_error *error)
{
    while (sj_store_has_stale(store)) {
        SJ_TRY(sj_store_write_some_aggregates(store, error));
    }
    return SJ_OK;
}

bool sj_store_ends_batch(sj_status status)
{
    return status == SJ_EFULL || status == SJ_EIO || status == SJ_ENOMEM || status == SJ_EAGAIN;
}

void sj_store_rollback(sj_store *store)
{
    sj_error ignored;
    if (store->in_batch && sqlite3_get_autocommit(store->database) == 0 &&
        sj_run_rollback(&store->sql, &ignored) != SJ_OK) {
        sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
    }
    store->in_batch = false;
    sj_store_forget_sessions(store, false);
}
