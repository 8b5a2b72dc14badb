/* Opens the database file, sets its pragmas, and migrates its schema. */
#ifndef SJ_COLLECTOR_SERVER_STORE_DATABASE_H
#define SJ_COLLECTOR_SERVER_STORE_DATABASE_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SJ_DATABASE_APPLICATION_ID = 0x534a4c42, /* "SJLB" */
    SJ_DATABASE_PAGE_BYTES = 16384
};

typedef enum sj_database_mode {
    SJ_DATABASE_READ,  /* read-only, for queries */
    SJ_DATABASE_WRITE, /* for writing; the file must exist */
    SJ_DATABASE_CREATE /* for writing; a missing file is created */
} sj_database_mode;

/* Opens a store and sets its pragmas. A writer migrates an older schema in one transaction.
 *
 * Returns SJ_ENOTFOUND if the file does not exist. Returns SJ_EINVAL if `path` is empty or not a
 * regular file. Returns SJ_ECORRUPT if it is not a Sojourn store. Returns SJ_EUNSUPPORTED if a
 * development version before 0.1.0 wrote it. Returns SJ_EVERSION if a newer Sojourn wrote it, or if
 * a reader meets an older schema, which a writer must migrate first. Returns SJ_EFULL, SJ_EAGAIN,
 * SJ_ENOMEM or SJ_EIO.
 *
 * A writer first renames a log that belongs to another file (foreign_log.h).
 *
 * A reader treats a file on a read-only medium, or in a folder that no user may write to, as
 * unchanging. It returns SJ_EIO if the last changes of such a file are still in its log. The
 * caller closes `*database` with sqlite3_close. */
SJ_MUST_CHECK sj_status sj_database_open(const char *path, sj_database_mode mode,
                                         sqlite3 **database, sj_error *error);

/* True if the last call of a read-only connection failed because SQLite could not create the log's
 * files beside the database. */
bool sj_database_lacks_log_files(sqlite3 *database);

/* Opens a file as immutable, if no user but root may write beside it. The schema may be of any
 * version. Creates no files beside the file. Returns SJ_EIO if the file's folder can be written, or
 * if the last changes are still in its log. Returns SJ_ENOMEM. The caller closes `*database` with
 * sqlite3_close, also after an error. Blocks. */
SJ_MUST_CHECK sj_status sj_database_open_frozen(const char *path, sqlite3 **database,
                                                sj_error *error);

/* Opens a file as immutable: SQLite neither locks it nor reads a log. The caller must know that no
 * process writes to the file. Returns SJ_ENOMEM or SJ_EIO. The caller closes `*database` with
 * sqlite3_close, also after an error. Blocks. */
SJ_MUST_CHECK sj_status sj_database_open_unchanging(const char *path, sqlite3 **database,
                                                    sj_error *error);

/* Makes the empty file `path` a store of schema `version`, from 1 to sj_database_version(). The
 * store has no log. The connection neither enforces foreign keys nor keeps a journal, because
 * the caller discards an incomplete file. Returns SJ_EIO or SJ_EFULL. The caller closes
 * `*database` with sqlite3_close, also after an error. Blocks. */
SJ_MUST_CHECK sj_status sj_database_create_at(const char *path, int version, sqlite3 **database,
                                              sj_error *error);

/* Returns SJ_OK if an open connection shows a store of this build's schema. Returns SJ_ENOTFOUND if
 * the file is empty, and SJ_ECORRUPT if it is not a Sojourn store. Returns SJ_EVERSION if an older
 * or a newer Sojourn wrote it. Returns SJ_EIO. `path` is for the message. */
SJ_MUST_CHECK sj_status sj_database_check(sqlite3 *database, const char *path, sj_error *error);

/* Returns SJ_OK if `application`, the application_id of a database, is the one of a Sojourn store.
 * Returns SJ_EUNSUPPORTED for development versions before 0.1.0, whose schemas no release reads.
 * Returns SJ_ECORRUPT if another program wrote the file. `path` is for the message. Thread-safe. */
SJ_MUST_CHECK sj_status sj_database_check_application(int64_t application, const char *path,
                                                      sj_error *error);

/* If `patient`, the connection waits up to five seconds for locks, and retries twice per
 * millisecond. SQLite's own busy handler sleeps longer each time. It would miss the short pauses of
 * a removal, in which other connections can write. If not `patient`, a locked database fails at
 * once. */
void sj_database_set_patience(sqlite3 *database, bool patient);

/* Returns the schema version of this build. */
int sj_database_version(void);

/* True if an SQLite result code, extended or not, says that the file is damaged or is not a
 * database. Thread-safe. */
bool sj_database_is_damaged(int result);

/* Converts an SQLite result code to a status: SJ_OK for SQLITE_OK, SQLITE_ROW and SQLITE_DONE;
 * SJ_EFULL, SJ_ENOMEM, SJ_ECORRUPT, SJ_EAGAIN (busy or locked); else SJ_EIO. */
sj_status sj_database_status(int result);

#endif
