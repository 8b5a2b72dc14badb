/* The database file: opening, pragmas, migrations. Everything else about it is in statements.h and
 * the files that use them. */
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
    SJ_DATABASE_WRITE, /* the one writer; the file must exist */
    SJ_DATABASE_CREATE /* the one writer; the file is created when missing */
} sj_database_mode;

/* sj_database_open opens a store with its pragmas. A writer brings an older schema up to date in
 * one transaction. SJ_ENOTFOUND: no such file; SJ_ECORRUPT: not a Sojourn store; SJ_EUNSUPPORTED:
 * written by a development version before 0.1.0; SJ_EVERSION: written by a newer Sojourn, or older
 * than this reader and so to be opened by a writer first; SJ_EIO. A reader opens a file on a
 * read-only medium, or in a folder that nobody may write to, as one that does not change; SJ_EIO
 * when its last changes are still in its log. The caller closes
 * `*database` with sqlite3_close. */
SJ_MUST_CHECK sj_status sj_database_open(const char *path, sj_database_mode mode,
                                         sqlite3 **database, sj_error *error);

/* sj_database_lacks_log_files returns true if the last call of a read-only connection failed
 * because SQLite could not make the log's files beside the database. */
bool sj_database_lacks_log_files(sqlite3 *database);

/* sj_database_open_frozen opens a file that no user may change as immutable, of any schema, and
 * makes no files beside it. SJ_EIO: the file's folder can be written, or the last changes are still
 * in its log; SJ_ENOMEM. The caller closes `*database` with sqlite3_close, also after an error.
 * Blocking. */
SJ_MUST_CHECK sj_status sj_database_open_frozen(const char *path, sqlite3 **database,
                                                sj_error *error);

/* sj_database_open_unchanging opens a file as immutable: SQLite neither locks it nor reads a log.
 * The caller knows that no process writes to it. SJ_ENOMEM, SJ_EIO. The caller closes `*database`
 * with sqlite3_close, also after an error. Blocking. */
SJ_MUST_CHECK sj_status sj_database_open_unchanging(const char *path, sqlite3 **database,
                                                    sj_error *error);

/* sj_database_create_at makes the empty file `path` a store of schema `version`, 1 to
 * sj_database_version(), that has no log. The connection neither enforces foreign keys nor keeps a
 * journal: a file that is cut is thrown away. SJ_EIO, SJ_EFULL. The caller closes `*database` with
 * sqlite3_close, also after an error. Blocking. */
SJ_MUST_CHECK sj_status sj_database_create_at(const char *path, int version, sqlite3 **database,
                                              sj_error *error);

/* sj_database_check returns whether an open connection shows a store of this build's schema.
 * SJ_ENOTFOUND: the file is empty; SJ_ECORRUPT: it is not a Sojourn store; SJ_EVERSION: it was
 * written by a newer Sojourn, or an older one; SJ_EIO. `path` is for the message. */
SJ_MUST_CHECK sj_status sj_database_check(sqlite3 *database, const char *path, sj_error *error);

/* Returns SJ_OK if `application`, the application_id of a database, is that of a Sojourn store.
 * SJ_EUNSUPPORTED: it is that of development versions before 0.1.0, whose schemas no release reads.
 * SJ_ECORRUPT: another program wrote the file. `path` is for the message. Thread-safe. */
SJ_MUST_CHECK sj_status sj_database_check_application(int64_t application, const char *path,
                                                      sj_error *error);

/* sj_database_set_patience makes a connection wait for locks that others hold, up to five seconds,
 * and look twice a millisecond: SQLite's own waiting sleeps longer and longer, and would miss the
 * pauses that a removal makes for those who are sending. Not patient: it fails at once. */
void sj_database_set_patience(sqlite3 *database, bool patient);

/* sj_database_version is the schema version of this build. */
int sj_database_version(void);

/* Returns true if an SQLite result code, extended or not, says that the file is damaged or is not a
 * database. Thread-safe. */
bool sj_database_is_damaged(int result);

/* sj_database_status turns an SQLite result code into a status: SJ_EFULL, SJ_ENOMEM, SJ_ECORRUPT,
 * SJ_EAGAIN (busy), else SJ_EIO. */
sj_status sj_database_status(int result);

#endif
