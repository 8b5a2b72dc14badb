/* From SQL to JSON: the names of a statement's columns are the names of the API's fields. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_JSON_ROWS_H
#define SJ_COLLECTOR_SERVER_QUERY_JSON_ROWS_H

#include "proto/base/error.h"

#include <jansson.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* sj_rows_prepare compiles a statement (finalised by the caller, or given to sj_rows_take). */
SJ_MUST_CHECK sj_status sj_rows_prepare(sqlite3 *database, const char *sql,
                                        sqlite3_stmt **statement, sj_error *error);

/* sj_rows_plain_value makes JSON of one value whatever its column is called: integers beyond 2^53
 * become decimal strings, blobs hexadecimal. NULL: no memory. */
json_t *sj_rows_plain_value(sqlite3_stmt *statement, int column);

/* sj_rows_take runs a bound statement, finalises it in every case, and makes an array with one
 * object a row. Numbers that may pass 2^53 (columns `id`, `..._id`, `..._realtime_ns`) become
 * decimal strings; blobs become hexadecimal; bytes that are not UTF-8 become U+FFFD; columns
 * `is_...` become booleans. At most `limit` rows are taken; `*truncated` (NULL is allowed) says
 * whether there were more. SJ_ETIMEDOUT when the request's deadline interrupted it. */
SJ_MUST_CHECK sj_status sj_rows_take(sqlite3_stmt *statement, size_t limit, json_t **rows,
                                     bool *truncated, sj_error *error);

/* sj_rows_list is sj_rows_take into {"items": [...], "truncated": bool}. */
SJ_MUST_CHECK sj_status sj_rows_list(sqlite3_stmt *statement, size_t limit, json_t **list,
                                     sj_error *error);

/* sj_rows_list_of_session is sj_rows_list of a text whose ?1 is a session's id and ?2 `limit` + 1;
 * the list becomes `body[name]`. */
SJ_MUST_CHECK sj_status sj_rows_list_of_session(sqlite3 *database, const char *sql, int64_t session,
                                                size_t limit, json_t *body, const char *name,
                                                sj_error *error);

/* sj_rows_require_session returns SJ_ENOTFOUND when there is no such session. */
SJ_MUST_CHECK sj_status sj_rows_require_session(sqlite3 *database, int64_t session,
                                                sj_error *error);

#endif
