/* A question: SQL that others wrote, and its limits, as JSON, so that another process can answer
 * it.
 *
 *   {"sql": one statement that reads, "query": the shipped question whose defaults hold (optional),
 *    "rows": most rows, "ms": most milliseconds, "values": {NAME: text of the parameter :NAME},
 *    "warning": what the answer's warning has to be (optional)}
 *
 * The answer is what /api/v1/sql answers (openapi.json). */
#ifndef SJ_COLLECTOR_SERVER_HTTP_QUESTION_H
#define SJ_COLLECTOR_SERVER_HTTP_QUESTION_H

#include "collector-server/query/sql_guard.h"

#include <jansson.h>

/* sj_question_answer asks `database`, which gets a guard (sql_guard.h) and has to be closed then.
 * SQLite may use `heap_bytes` in this process meanwhile; 0: no limit. `watch` (NULL: none) is asked
 * now and then whether to go on. `*body` is owned by the caller. Blocks until it is answered.
 * Errors of sj_sql_guard_run; SJ_EINVAL: a parameter lacks its value. */
SJ_MUST_CHECK sj_status sj_question_answer(sqlite3 *database, const json_t *question,
                                           int64_t heap_bytes, sj_sql_watch watch,
                                           void *watch_context, json_t **body, sj_error *error);

#endif
