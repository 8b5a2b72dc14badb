/* A question: an SQL statement of a user and its limits, as JSON, so that another process can
 * answer it.
 *
 *   {"sql": one statement that reads,
 *    "query": name of the shipped query whose defaults apply (optional),
 *    "rows": maximum of rows, "ms": maximum of milliseconds,
 *    "values": {NAME: text of the parameter :NAME},
 *    "warning": warning of the answer, instead of the query's own (optional)}
 *
 * The answer is the response of /api/v1/sql (openapi.json). */
#ifndef SJ_COLLECTOR_SERVER_HTTP_QUESTION_H
#define SJ_COLLECTOR_SERVER_HTTP_QUESTION_H

#include "collector-server/query/sql_guard.h"

#include <jansson.h>

/* Runs a question on `database`, which gets a guard (sql_guard.h) and must be closed afterwards.
 * SQLite may use `heap_bytes` in this process meanwhile; 0: no limit. `watch` (NULL: none) is
 * called at intervals and can interrupt the statement. The caller owns `*body`. Blocks until the
 * statement ends. Returns errors of sj_sql_guard_run, or SJ_EINVAL if a parameter has no value. */
SJ_MUST_CHECK sj_status sj_question_run(sqlite3 *database, const json_t *question,
                                        int64_t heap_bytes, sj_sql_watch watch, void *watch_context,
                                        json_t **body, sj_error *error);

#endif
