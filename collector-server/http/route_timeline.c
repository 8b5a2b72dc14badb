/* Returns what the threads of a session did over time. For each stream, it reads the
 * coarsest level that has a step for at least every second pixel, or else the finest level. Steps
 * that begin in the same pixel are merged into one row, so a response has at most `width` rows for
 * each stream. It also
 * contains the call paths that were open at the start of rows, with all their callers. So one
 * response is enough to draw. */
#include "collector-server/http/parameters.h"
#include "collector-server/query/json_rows.h"

#include <stdlib.h>

enum { WIDTH_DEFAULT = 1000, WIDTH_MAX = 4000, ROWS_MAX = 20000, PATHS_MAX = 20000 };

#define TIME_MAX_NS INT64_C(999999999999999999)

static const char steps_sql[] =
    "WITH RECURSIVE levels(stream_id, level) AS ("
    "  SELECT s.stream_id, (SELECT max(t.level) FROM timeline AS t WHERE t.stream_id = s.stream_id)"
    "  FROM streams AS s WHERE s.session_id = ?1"
    "  UNION ALL SELECT l.stream_id, (SELECT max(t.level) FROM timeline AS t"
    "   WHERE t.stream_id = l.stream_id AND t.level < l.level)"
    "  FROM levels AS l WHERE l.level IS NOT NULL),"
    " counted AS (SELECT l.stream_id, l.level, (SELECT count(*) FROM (SELECT 1 FROM timeline AS t"
    "   WHERE t.stream_id = l.stream_id AND t.level = l.level AND t.end_ns >= ?2"
    "   AND t.start_ns <= ?3 LIMIT (?4 + 1) / 2)) AS steps"
    "  FROM levels AS l WHERE l.level IS NOT NULL),"
    " chosen AS MATERIALIZED (SELECT stream_id,"
    "  coalesce(max(iif(steps >= (?4 + 1) / 2, level, NULL)), min(iif(steps > 0, level, NULL)))"
    "  AS level FROM counted GROUP BY stream_id),"
    " picked AS NOT MATERIALIZED (SELECT t.* FROM chosen CROSS JOIN timeline AS t"
    "  USING (stream_id, level) WHERE t.end_ns >= ?2 AND t.start_ns <= ?3),"
    " span AS MATERIALIZED (SELECT max(min(start_ns), ?2) AS from_ns,"
    "  max(min(max(end_ns), ?3) - max(min(start_ns), ?2), 0) + 1 AS length_ns FROM picked),"
    " merged AS (SELECT stream_id, level, min(number) AS number, count(*) AS steps,"
    "  min(start_ns) AS start_ns, max(end_ns) AS end_ns, sum(calls) AS calls,"
    "  max(max_depth) AS max_depth FROM span CROSS JOIN picked GROUP BY stream_id, level,"
    "  min(CAST(max(start_ns - from_ns, 0) * 1.0 * ?4 / length_ns AS INTEGER), ?4 - 1))"
    " SELECT m.stream_id, th.number AS thread_number, th.name AS thread_name, m.level, m.steps,"
    "  m.start_ns, m.end_ns, m.calls, m.max_depth, head.path_id, p.function_id,"
    "  f.name AS function"
    " FROM merged AS m JOIN timeline AS head USING (stream_id, level, number)"
    " JOIN streams AS s ON s.stream_id = m.stream_id"
    " LEFT JOIN threads AS th ON th.thread_id = s.thread_id"
    " LEFT JOIN call_paths AS p ON p.path_id = head.path_id"
    " LEFT JOIN functions AS f ON f.function_id = p.function_id"
    " ORDER BY m.stream_id, m.start_ns LIMIT ?5";

/* ?1: a JSON array of path ids. */
static const char paths_sql[] =
    "WITH RECURSIVE up(path_id) AS (SELECT CAST(value AS INTEGER) FROM json_each(?1) UNION"
    "  SELECT p.parent_path_id FROM up JOIN call_paths AS p ON p.path_id = up.path_id"
    "  WHERE p.parent_path_id IS NOT NULL)"
    " SELECT p.path_id, p.parent_path_id, p.depth, p.function_id, f.name AS function"
    " FROM up JOIN call_paths AS p ON p.path_id = up.path_id"
    " LEFT JOIN functions AS f ON f.function_id = p.function_id LIMIT ?2";

/* Adds the call paths of the rows, and those of their callers, to the response. */
static sj_status add_paths(sqlite3 *database, json_t *body, sj_error *error)
{
    size_t index;
    json_t *row;
    json_t *paths = NULL;
    json_t *seen = json_object();
    json_t *ids = json_array();
    sqlite3_stmt *statement = NULL;
    json_array_foreach(json_object_get(body, "items"), index, row)
    {
        const char *id = json_string_value(json_object_get(row, "path_id"));
        if (id != NULL && json_object_get(seen, id) == NULL) {
            json_object_set_new(seen, id, json_true());
            json_array_append(ids, json_object_get(row, "path_id"));
        }
    }
    char *text = json_dumps(ids, JSON_COMPACT);
    json_decref(ids);
    json_decref(seen);
    sj_status status = text != NULL ? sj_rows_prepare(database, paths_sql, &statement, error)
                                    : sj_fail(error, SJ_ENOMEM, "out of memory");
    if (status == SJ_OK) {
        sqlite3_bind_text(statement, 1, text, -1, SQLITE_TRANSIENT);
        sqlite3_bind_int64(statement, 2, PATHS_MAX + 1);
        status = sj_rows_take(statement, PATHS_MAX, &paths, NULL, error);
    }
    free(text);
    return status == SJ_OK && json_object_set_new(body, "paths", paths) != 0
               ? sj_fail(error, SJ_ENOMEM, "out of memory")
               : status;
}

static sj_status answer_timeline(sj_request *request, json_t **body, sj_error *error)
{
    int64_t from_ns;
    int64_t to_ns;
    int64_t width;
    sqlite3_stmt *statement = NULL;
    SJ_TRY(sj_parameter_number(request, "from_ns", (sj_parameter_range){0, TIME_MAX_NS, 0},
                               &from_ns, error));
    SJ_TRY(sj_parameter_number(request, "to_ns", (sj_parameter_range){0, TIME_MAX_NS, TIME_MAX_NS},
                               &to_ns, error));
    SJ_TRY(sj_parameter_number(request, "width", (sj_parameter_range){1, WIDTH_MAX, WIDTH_DEFAULT},
                               &width, error));
    SJ_TRY(sj_rows_require_session(request->database, request->id, error));
    SJ_TRY(sj_rows_prepare(request->database, steps_sql, &statement, error));
    sqlite3_bind_int64(statement, 1, request->id);
    sqlite3_bind_int64(statement, 2, from_ns);
    sqlite3_bind_int64(statement, 3, to_ns);
    sqlite3_bind_int64(statement, 4, width);
    sqlite3_bind_int64(statement, 5, ROWS_MAX + 1);
    SJ_TRY(sj_rows_list(statement, ROWS_MAX, body, error));
    return add_paths(request->database, *body, error);
}

const sj_route sj_route_timeline = {.pattern = "/api/v1/sessions/{id}/timeline",
                                    .role = SJ_ROLE_READER,
                                    .is_slow = true,
                                    .run = answer_timeline};
