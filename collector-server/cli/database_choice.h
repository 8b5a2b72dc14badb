/* Chooses the database that a command reads, and the session in it. */
#ifndef SJ_COLLECTOR_SERVER_CLI_DATABASE_CHOICE_H
#define SJ_COLLECTOR_SERVER_CLI_DATABASE_CHOICE_H

#include "proto/base/error.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdint.h>

#define SJ_ENV_DATABASE "SOJOURN_DATABASE"

/* Copies the path of the database: `named`, else $SOJOURN_DATABASE, else the newest sojourn-*.db of
 * the current directory. Fails with SJ_ENOTFOUND if there is none, and with SJ_EINVAL if the path
 * is too long. */
SJ_MUST_CHECK sj_status sj_database_path(const char *named, char path[PATH_MAX], sj_error *error);

/* Opens a database for reading: `named`, else $SOJOURN_DATABASE, else the newest sojourn-*.db of
 * the current directory. The caller closes the database with sqlite3_close.
 *
 * Does not change a file of an older version: copies the file, upgrades the copy and opens the
 * copy. The copy has no name, so sqlite3_db_filename does not return the path of the file.
 *
 * Fails with SJ_ENOTFOUND if there is no database or the file cannot be opened; the message says
 * why. Fails with SJ_EVERSION if an older file is too large to copy. */
SJ_MUST_CHECK sj_status sj_database_choose(const char *named, sqlite3 **database, sj_error *error);

/* Finds a session. `wanted` is NULL or "last" for the newest session, a session_id, or the
 * beginning of a uuid (at least 4 hexadecimal digits). Fails with SJ_ENOTFOUND if no session
 * matches, and with SJ_EINVAL if more than one does. */
SJ_MUST_CHECK sj_status sj_session_choose(sqlite3 *database, const char *wanted,
                                          int64_t *session_id, sj_error *error);

#endif
