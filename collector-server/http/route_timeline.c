/* What the threads of a session did over time: of each stream the steps of the coarsest level that
 * still gives one a pixel, or of the finest. Steps that begin in the same pixel are merged into one
 * row, so an answer has at most `width` rows a stream. */
#include "collector-server/http/parameters.h"
#include "collector-server/query/json_rows.h"

enum { WIDTH_DEFAULT = 1000, WIDTH_MAX = 4000, ROWS_MAX = 20000 };

#define TIME_MAX_NS INT64_C(999999999999999999)

static const char sql[] =
    "WITH shown AS (SELECT t.* FROM streams AS s JOIN timeline AS t USING (stream_id)"
    "  WHERE s.session_id = ?1 AND t.end_ns >= ?2 AND t.start_ns <= ?3),"
    " counted AS (SELECT stream_id, level, count(*) AS steps FROM shown GROUP BY stream_id, level),"
    " chosen AS (SELECT stream_id, coalesce(max(iif(steps >= ?4, level, NULL)), min(level)) AS "
    "level"
    "  FROM counted GROUP BY stream_id),"
    " picked AS (SELECT w.* FROM chosen JOIN shown AS w USING (stream_id, level)),"
    " span AS (SELECT max(min(start_ns), ?2) AS from_ns,"
    "  max(min(max(end_ns), ?3) - max(min(start_ns), ?2), 0) + 1 AS length_ns FROM picked),"
    " placed AS (SELECT picked.*, CAST(max(start_ns - from_ns, 0) * 1.0 * ?4 / length_ns AS "
    "INTEGER) AS pixel FROM picked, span),"
    " merged AS (SELECT stream_id, level, min(number) AS number, count(*) AS steps,"
    "  min(start_ns) AS start_ns, max(end_ns) AS end_ns, sum(calls) AS calls,"
    "  max(max_depth) AS max_depth FROM placed GROUP BY stream_id, level, min(pixel, ?4 - 1))"
    " SELECT m.stream_id, th.number AS thread_number, th.name AS thread_name, m.level, m.steps,"
    "  m.start_ns, m.end_ns, m.calls, m.max_depth, head.path_id, p.function_id,"
    "  f.name AS function"
    " FROM merged AS m JOIN timeline AS head USING (stream_id, level, number)"
    " JOIN streams AS s ON s.stream_id = m.stream_id"
    " LEFT JOIN threads AS th ON th.thread_id = s.thread_id"
    " LEFT JOIN call_paths AS p ON p.path_id = head.path_id"
    " LEFT JOIN functions AS f ON f.function_id = p.function_id"
    " ORDER BY m.stream_id, m.start_ns LIMIT ?5";

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
    SJ_TRY(sj_rows_prepare(request->database, sql, &statement, error));
    sqlite3_bind_int64(statement, 1, request->id);
    sqlite3_bind_int64(statement, 2, from_ns);
    sqlite3_bind_int64(statement, 3, to_ns);
    sqlite3_bind_int64(statement, 4, width);
    sqlite3_bind_int64(statement, 5, ROWS_MAX + 1);
    return sj_rows_list(statement, ROWS_MAX, body, error);
}

const sj_route sj_route_timeline = {
    .pattern = "/api/v1/sessions/{id}/timeline", .is_slow = true, .run = answer_timeline};
