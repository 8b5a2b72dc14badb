/* A question: an SQL statement of a user and its limits, as JSON, so that another process can
 * answer it.
 *
 *   {"sql": one statement that reads,
 *    "query": name of the shipped query whose defaults apply, or of the question of the dashboard
 *             whose types apply (optional),
 *    "rows": maximum number of rows, "ms": maximum processor time in milliseconds,
 *    "values": {NAME: text of the parameter :NAME},
 *    "warning": text that replaces the warnings in the answer (optional)}
 *
 * The answer is the response of /api/v1/sql (openapi.json). */
#ifndef SJ_COLLECTOR_SERVER_HTTP_QUESTION_H
#define SJ_COLLECTOR_SERVER_HTTP_QUESTION_H

#include "collector-server/query/sql_guard.h"

#include <jansson.h>

/* On a busy machine, a question of low priority waits for the processor. It may take this many
 * times as long as its processor time. */
enum { SJ_QUESTION_WAITING_FACTOR = 4 };

/* Runs a question on `database`, which gets a guard (sql_guard.h) and must be closed afterwards.
 * Meanwhile, SQLite may use at most `heap_bytes` in this process; 0: no limit. `watch` (NULL: none)
 * is called at intervals and can interrupt the statement. The caller owns `*body`. Blocks until the
 * statement ends. Returns errors of sj_sql_guard_run, SJ_ENOMEM, or SJ_EINVAL if a parameter has
 * neither a value nor a default. The default of :session is the latest session. */
SJ_MUST_CHECK sj_status sj_question_run(sqlite3 *database, const json_t *question,
                                        int64_t heap_bytes, sj_sql_watch watch, void *watch_context,
                                        json_t **body, sj_error *error);

#endif
