/* Converts SQL rows to JSON objects. The names of a statement's columns become the names of
 * fields. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_JSON_ROWS_H
#define SJ_COLLECTOR_SERVER_QUERY_JSON_ROWS_H

#include "proto/base/error.h"

#include <jansson.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Compiles a statement. The caller finalizes it or passes it to sj_rows_read. The errors of this
 * and the following functions are:
 * - SJ_ETIMEDOUT: the request's deadline interrupted the statement, or the database was locked.
 * - SJ_ENOMEM.
 * - SJ_EIO: the database cannot be read. */
SJ_MUST_CHECK sj_status sj_rows_prepare(sqlite3 *database, const char *sql,
                                        sqlite3_stmt **statement, sj_error *error);

/* Converts a value to JSON, independently of its column's name. Integers beyond 2^53 become decimal
 * strings, blobs become hexadecimal, bytes that are not UTF-8 become U+FFFD. Returns NULL if out of
 * memory. */
json_t *sj_rows_plain_value(sqlite3_stmt *statement, int column);

/* Runs a bound statement, and finalizes it even on an error. Stores an array with one object per
 * row in `*rows`. Values are converted like sj_rows_plain_value, except integers: columns `id`,
 * `..._id` and `..._realtime_ns` become decimal strings, columns `is_...` become booleans, others
 * become numbers. Reads at most `limit` rows. Sets `*truncated` (NULL is allowed) if there are
 * more. Returns an error of sj_rows_prepare. */
SJ_MUST_CHECK sj_status sj_rows_read(sqlite3_stmt *statement, size_t limit, json_t **rows,
                                     bool *truncated, sj_error *error);

/* Like sj_rows_read, but stores {"items": [...], "truncated": bool}. Returns the same errors. */
SJ_MUST_CHECK sj_status sj_rows_list(sqlite3_stmt *statement, size_t limit, json_t **list,
                                     sj_error *error);

/* Compiles `sql`, binds ?1 to the session's id and ?2 to `limit` + 1, and runs it like
 * sj_rows_list. Stores the list as the member `name` of `body`. Returns the same errors. */
SJ_MUST_CHECK sj_status sj_rows_list_of_session(sqlite3 *database, const char *sql, int64_t session,
                                                size_t limit, json_t *body, const char *name,
                                                sj_error *error);

/* Fails with SJ_ENOTFOUND if the session does not exist. */
SJ_MUST_CHECK sj_status sj_rows_require_session(sqlite3 *database, int64_t session,
                                                sj_error *error);

#endif
