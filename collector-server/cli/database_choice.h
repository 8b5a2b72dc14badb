/* Which database a command reads, and which session of it. */
#ifndef SJ_COLLECTOR_SERVER_CLI_DATABASE_CHOICE_H
#define SJ_COLLECTOR_SERVER_CLI_DATABASE_CHOICE_H

#include "proto/base/error.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdint.h>

#define SJ_ENV_DATABASE "SOJOURN_DATABASE"

/* sj_database_path copies the path of the database: `named`, else $SOJOURN_DATABASE, else the
 * newest sojourn-*.db of the current directory. SJ_ENOTFOUND: none of them; SJ_EINVAL: too long. */
SJ_MUST_CHECK sj_status sj_database_path(const char *named, char path[PATH_MAX], sj_error *error);

/* sj_database_choose opens for reading: `named`, else $SOJOURN_DATABASE, else the newest
 * sojourn-*.db of the current directory. SJ_ENOTFOUND with what to do, or why it cannot be opened.
 * A file of an older version stays as it is: a copy is read, which is brought up to date and has no
 * name (sqlite3_db_filename is not the file); SJ_EVERSION when it is too large for that. The caller
 * closes with sqlite3_close. */
SJ_MUST_CHECK sj_status sj_database_choose(const char *named, sqlite3 **database, sj_error *error);

/* sj_session_choose finds a session: `wanted` is NULL or "last" for the newest, a session_id, or
 * the beginning of its uuid (at least 4 hexadecimal digits). SJ_ENOTFOUND, SJ_EINVAL (more than
 * one). */
SJ_MUST_CHECK sj_status sj_session_choose(sqlite3 *database, const char *wanted,
                                          int64_t *session_id, sj_error *error);

#endif
