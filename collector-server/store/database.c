#include "collector-server/store/database.h"

#include "collector-server/store/foreign_log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "collector-server/store/migrations.inc"

enum { MIGRATIONS = sizeof(migrations) / sizeof(migrations[0]) };

/* "SJDB": the databases of development versions before 0.1.0. */
enum { DEVELOPMENT_APPLICATION_ID = 0x534a4442 };

enum { LOCK_LOOK_NS = 500000, LOCK_LOOKS = 10000 };

static int wait_briefly(void *unused, int tries)
{
    const struct timespec pause = {.tv_nsec = LOCK_LOOK_NS};
    (void)unused;
    nanosleep(&pause, NULL);
    return tries < LOCK_LOOKS;
}

void sj_database_set_patience(sqlite3 *database, bool patient)
{
    sqlite3_busy_handler(database, patient ? wait_briefly : NULL, NULL);
}

int sj_database_version(void)
{
    return MIGRATIONS;
}

bool sj_database_is_damaged(int result)
{
    return (result & 0xff) == SQLITE_CORRUPT || (result & 0xff) == SQLITE_NOTADB;
}

sj_status sj_database_status(int result)
{
    switch (result & 0xff) {
    case SQLITE_OK:
    case SQLITE_DONE:
    case SQLITE_ROW:
        return SJ_OK;
    case SQLITE_FULL:
        return SJ_EFULL;
    case SQLITE_NOMEM:
        return SJ_ENOMEM;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return SJ_ECORRUPT;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return SJ_EAGAIN;
    default:
        return SJ_EIO;
    }
}

static sj_status run(sqlite3 *database, const char *sql, sj_error *error)
{
    const int result = sqlite3_exec(database, sql, NULL, NULL, NULL);
    if (result == SQLITE_OK) {
        return SJ_OK;
    }
    return sj_fail(error, sj_database_status(result), "cannot prepare %s: %s",
                   sqlite3_db_filename(database, "main"), sqlite3_errmsg(database));
}

static sj_status read_number(sqlite3 *database, const char *sql, int64_t *number, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
    if (result == SQLITE_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        *number = sqlite3_column_int64(statement, 0);
        sqlite3_finalize(statement);
        return SJ_OK;
    }
    sj_fail(error, sj_database_status(result), "cannot read %s: %s",
            sqlite3_db_filename(database, "main"), sqlite3_errmsg(database));
    sqlite3_finalize(statement);
    return result == SQLITE_DONE ? SJ_ECORRUPT : sj_database_status(result);
}

sj_status sj_database_check_application(int64_t application, const char *path, sj_error *error)
{
    if (application == SJ_DATABASE_APPLICATION_ID) {
        return SJ_OK;
    }
    if (application == DEVELOPMENT_APPLICATION_ID) {
        return sj_fail(error, SJ_EUNSUPPORTED,
                       "%s was written by a development version of Sojourn from before 0.1.0, "
                       "which no release reads; record again into another file",
                       path);
    }
    return sj_fail(error, SJ_ECORRUPT, "%s is a database, but not one of Sojourn", path);
}

/* Sets `*version` to the schema version of a Sojourn store, or to 0 for an empty file. Another
 * process may be creating the store. It commits the application id together with everything
 * else, so the id is read last. */
static sj_status identify(sqlite3 *database, const char *path, int64_t *version, sj_error *error)
{
    int64_t application = 0;
    int64_t tables = 0;
    SJ_TRY(read_number(database, "SELECT count(*) FROM sqlite_schema", &tables, error));
    SJ_TRY(read_number(database, "PRAGMA user_version", version, error));
    SJ_TRY(read_number(database, "PRAGMA application_id", &application, error));
    if (application == 0 && *version == 0 && tables == 0) {
        return SJ_OK;
    }
    SJ_TRY(sj_database_check_application(application, path, error));
    if (*version > MIGRATIONS) {
        return sj_fail(error, SJ_EVERSION,
                       "%s was written by a newer Sojourn (schema %lld, this one reads up to %d): "
                       "install a newer one",
                       path, (long long)*version, (int)MIGRATIONS);
    }
    return SJ_OK;
}

/* Migrates an empty file (version 0) or an older version to version `to`. */
static sj_status change_schema(sqlite3 *database, int64_t version, int64_t to, sj_error *error)
{
    for (int64_t i = version; i < to; ++i) {
        SJ_TRY(run(database, migrations[i], error));
    }
    return SJ_OK;
}

static sj_status set_version(sqlite3 *database, int version, sj_error *error)
{
    char pragmas[96];
    snprintf(pragmas, sizeof(pragmas), "PRAGMA application_id=%d; PRAGMA user_version=%d",
             (int)SJ_DATABASE_APPLICATION_ID, version);
    return run(database, pragmas, error);
}

/* Reads the version again with the lock held, because another process may have opened the file at
 * the same time. */
static sj_status migrate(sqlite3 *database, const char *path, int64_t version, sj_error *error)
{
    if (version == MIGRATIONS) {
        return SJ_OK;
    }
    SJ_TRY(run(database, "BEGIN IMMEDIATE", error));
    sj_status status = identify(database, path, &version, error);
    if (status == SJ_OK) {
        status = change_schema(database, version, MIGRATIONS, error);
    }
    if (status == SJ_OK) {
        status = set_version(database, MIGRATIONS, error);
    }
    if (status == SJ_OK) {
        status = run(database, "COMMIT", error);
    }
    if (status != SJ_OK) {
        sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

/* Retries, because SQLite does not always wait for a process that creates the same file's log at
 * the same time. */
static sj_status use_log(sqlite3 *database, sj_error *error)
{
    sj_status status = SJ_EAGAIN;
    int tries = 0;
    sj_database_set_patience(database, false);
    do {
        status = run(database, "PRAGMA journal_mode=WAL", error);
    } while (status == SJ_EAGAIN && wait_briefly(NULL, tries++) != 0);
    sj_database_set_patience(database, true);
    return status;
}

static sj_status prepare_writer(sqlite3 *database, const char *path, sj_error *error)
{
    int64_t version = 0;
    /* Without this flag, SQLite recompiles a statement for each bound value if a partial index
     * (blocks_late) might serve it. That took a third of the writer's time. */
    sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_QPSG, 1, NULL);
    /* page_size and auto_vacuum count only before the first table */
    SJ_TRY(run(database, "PRAGMA page_size=16384; PRAGMA auto_vacuum=INCREMENTAL", error));
    SJ_TRY(identify(database, path, &version, error));
    SJ_TRY(use_log(database, error));
    SJ_TRY(run(database,
               "PRAGMA synchronous=FULL; PRAGMA secure_delete=OFF;"
               "PRAGMA foreign_keys=ON; PRAGMA cache_size=-32768; PRAGMA temp_store=MEMORY;"
               "PRAGMA wal_autocheckpoint=1024; PRAGMA journal_size_limit=67108864",
               error));
    return migrate(database, path, version, error);
}

sj_status sj_database_check(sqlite3 *database, const char *path, sj_error *error)
{
    int64_t version = 0;
    SJ_TRY(identify(database, path, &version, error));
    if (version == 0) {
        return sj_fail(error, SJ_ENOTFOUND, "%s is empty: it holds no recording", path);
    }
    if (version != MIGRATIONS) {
        return sj_fail(error, SJ_EVERSION,
                       "%s has schema version %lld; `sojourn verify` brings it up to version %d",
                       path, (long long)version, (int)MIGRATIONS);
    }
    return SJ_OK;
}

static sj_status prepare_reader(sqlite3 *database, const char *path, sj_error *error)
{
    SJ_TRY(sj_database_check(database, path, error));
    /* large sorts use files: in memory, an ORDER BY over 149 million calls took all of 23 GB */
    return run(database, "PRAGMA query_only=ON; PRAGMA cache_size=-32768; PRAGMA temp_store=FILE",
               error);
}

/* True if only root can write beside the file: it is on a read-only medium, or in a folder without
 * write permission. */
static bool is_frozen(const char *path)
{
    char folder[PATH_MAX];
    struct stat status;
    struct statvfs medium;
    const char *slash = strrchr(path, '/');
    const int length = slash == NULL ? 1 : slash == path ? 1 : (int)(slash - path);
    snprintf(folder, sizeof(folder), "%.*s", length, slash == NULL ? "." : path);
    return (statvfs(path, &medium) == 0 && (medium.f_flag & ST_RDONLY) != 0) ||
           (stat(folder, &status) == 0 && (status.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0);
}

static bool has_log(const char *path)
{
    char name[PATH_MAX + 8];
    struct stat status;
    snprintf(name, sizeof(name), "%s-wal", path);
    return stat(name, &status) == 0 && status.st_size != 0;
}

/* Returns a URI that opens the file as immutable. Release with sqlite3_free. Returns NULL if out
 * of memory. */
static char *frozen_name(const char *path)
{
    sqlite3_str *name = sqlite3_str_new(NULL);
    sqlite3_str_appendall(name, "file:");
    for (const char *at = path; *at != '\0'; ++at) {
        if (strchr("%?#", *at) != NULL) {
            sqlite3_str_appendf(name, "%%%02X", (unsigned)(unsigned char)*at);
        } else {
            sqlite3_str_appendchar(name, 1, *at);
        }
    }
    sqlite3_str_appendall(name, "?immutable=1");
    return sqlite3_str_finish(name);
}

/* Returns why a file could not be opened. SQLite's own text is the same for every reason. */
static const char *why_not_opened(sqlite3 *database)
{
    const int problem = database != NULL ? sqlite3_system_errno(database) : 0;
    return database == NULL ? "no memory"
           : (sqlite3_errcode(database) & 0xff) == SQLITE_CANTOPEN && problem != 0
               ? strerror(problem)
               : sqlite3_errmsg(database);
}

static sj_status say_not_opened(sj_error *error, int result, const char *path, sqlite3 *database,
                                sj_database_mode mode)
{
    const sj_status status = sj_database_status(result);
    return mode == SJ_DATABASE_CREATE && access(path, F_OK) != 0
               ? sj_fail(error, status, "cannot create %s: %s; choose another place", path,
                         why_not_opened(database))
               : sj_fail(error, status, "cannot open %s: %s", path, why_not_opened(database));
}

sj_status sj_database_open_unchanging(const char *path, sqlite3 **database, sj_error *error)
{
    *database = NULL;
    char *name = frozen_name(path);
    if (name == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory to open %s", path);
    }
    const int result = sqlite3_open_v2(
        name, database, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, NULL);
    sqlite3_free(name);
    if (result != SQLITE_OK) {
        return sj_fail(error, sj_database_status(result), "cannot open %s: %s", path,
                       why_not_opened(*database));
    }
    sqlite3_extended_result_codes(*database, 1);
    return SJ_OK;
}

/* Opens the file as immutable. This is correct because no process can write to it. */
sj_status sj_database_open_frozen(const char *path, sqlite3 **database, sj_error *error)
{
    *database = NULL;
    if (!is_frozen(path)) {
        return sj_fail(
            error, SJ_EIO,
            "cannot read %s: you may not write to its folder, and others may be writing; "
            "copy it, with its -wal file if there is one, to a folder of yours",
            path);
    }
    if (has_log(path)) {
        return sj_fail(error, SJ_EIO,
                       "cannot read %s on a read-only medium: its last changes are in %s-wal; copy "
                       "both files to a folder that can be written",
                       path, path);
    }
    return sj_database_open_unchanging(path, database, error);
}

bool sj_database_lacks_log_files(sqlite3 *database)
{
    const int code = sqlite3_errcode(database) & 0xff;
    return code == SQLITE_CANTOPEN || code == SQLITE_READONLY;
}

/* Creates the file, if it is missing, so that only its owner can read it, whatever the umask is.
 * SQLite creates its own files beside the database with the same mode. Ignores errors: the
 * opening that follows reports them. */
static void make_private(const char *path)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0) {
        close(file);
    }
}

sj_status sj_database_create_at(const char *path, int version, sqlite3 **database, sj_error *error)
{
    const int result =
        sqlite3_open_v2(path, database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (result != SQLITE_OK) {
        return sj_fail(error, sj_database_status(result), "cannot open %s: %s", path,
                       why_not_opened(*database));
    }
    SJ_TRY(run(*database,
               "PRAGMA page_size=16384; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=OFF;"
               "PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-32768",
               error));
    SJ_TRY(change_schema(*database, 0, version, error));
    return set_version(*database, version, error);
}

/* Refuses a path that is not a regular file: a device, a pipe or a folder. Also refuses an empty
 * name, for which SQLite creates a temporary database. */
static sj_status check_kind(const char *path, sj_error *error)
{
    struct stat about;
    if (path[0] == '\0') {
        return sj_fail(error, SJ_EINVAL, "the name of the database is empty; name a file");
    }
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) {
        return sj_fail(error, SJ_EINVAL, "%s is not a file; name one for the database", path);
    }
    return SJ_OK;
}

sj_status sj_database_open(const char *path, sj_database_mode mode, sqlite3 **database,
                           sj_error *error)
{
    const int flags = mode == SJ_DATABASE_READ    ? SQLITE_OPEN_READONLY
                      : mode == SJ_DATABASE_WRITE ? SQLITE_OPEN_READWRITE
                                                  : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    sqlite3 *opened = NULL;
    *database = NULL;
    if (mode != SJ_DATABASE_CREATE && access(path, F_OK) != 0) {
        return sj_fail(error, SJ_ENOTFOUND, "there is no database %s", path);
    }
    SJ_TRY(check_kind(path, error));
    if (mode == SJ_DATABASE_CREATE) {
        make_private(path);
    }
    if (mode != SJ_DATABASE_READ) {
        SJ_TRY(sj_foreign_log_set_aside(path, error));
    }
    const int result = sqlite3_open_v2(path, &opened, flags | SQLITE_OPEN_NOMUTEX, NULL);
    sj_status status = SJ_OK;
    if (result != SQLITE_OK) {
        status = say_not_opened(error, result, path, opened, mode);
    } else {
        sj_database_set_patience(opened, true);
        sqlite3_extended_result_codes(opened, 1);
        status = mode == SJ_DATABASE_READ ? prepare_reader(opened, path, error)
                                          : prepare_writer(opened, path, error);
    }
    if (status != SJ_OK && mode == SJ_DATABASE_READ && opened != NULL && access(path, R_OK) == 0 &&
        sj_database_lacks_log_files(opened)) {
        sqlite3_close(opened);
        status = sj_database_open_frozen(path, &opened, error);
        if (status == SJ_OK) {
            status = prepare_reader(opened, path, error);
        }
    }
    if (status == SJ_EFULL) {
        sj_fail(error, status, "%s needs more disk space, and the disk is full; free some space",
                path);
    }
    if (status != SJ_OK) {
        sqlite3_close(opened);
        return status;
    }
    *database = opened;
    return SJ_OK;
}
