/* Converts SQL rows to JSON: the names of a statement's columns become the names of the API's
 * fields. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_JSON_ROWS_H
#define SJ_COLLECTOR_SERVER_QUERY_JSON_ROWS_H

#include "proto/base/error.h"

#include <jansson.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Compiles a statement. The caller finalizes it or passes it to sj_rows_read. */
SJ_MUST_CHECK sj_status sj_rows_prepare(sqlite3 *database, const char *sql,
                                        sqlite3_stmt **statement, sj_error *error);

/* Converts one value to JSON, whatever its column is called: integers beyond 2^53 to decimal
 * strings, blobs to hexadecimal. Returns NULL if out of memory. */
json_t *sj_rows_plain_value(sqlite3_stmt *statement, int column);

/* Runs a bound statement, always finalizes it, and returns an array with one object per row.
 * Numbers that may exceed 2^53 (columns `id`, `..._id`, `..._realtime_ns`) become decimal strings.
 * Blobs become hexadecimal, bytes that are not UTF-8 become U+FFFD, columns `is_...` become
 * booleans. Reads at most `limit` rows; `*truncated` (NULL is allowed) says whether there were
 * more. Returns SJ_ETIMEDOUT if the request's deadline interrupted it. */
SJ_MUST_CHECK sj_status sj_rows_read(sqlite3_stmt *statement, size_t limit, json_t **rows,
                                     bool *truncated, sj_error *error);

/* Like sj_rows_read, but returns {"items": [...], "truncated": bool}. */
SJ_MUST_CHECK sj_status sj_rows_list(sqlite3_stmt *statement, size_t limit, json_t **list,
                                     sj_error *error);

/* Like sj_rows_list, for a text whose ?1 is a session's id and ?2 is `limit` + 1. The list becomes
 * `body[name]`. */
SJ_MUST_CHECK sj_status sj_rows_list_of_session(sqlite3 *database, const char *sql, int64_t session,
                                                size_t limit, json_t *body, const char *name,
                                                sj_error *error);

/* Returns SJ_ENOTFOUND if the session does not exist. */
SJ_MUST_CHECK sj_status sj_rows_require_session(sqlite3 *database, int64_t session,
                                                sj_error *error);

#endif
