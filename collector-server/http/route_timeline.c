/* What the threads of a session did over time: of each stream the steps of the coarsest level that
 * still gives one a pixel, or of the finest. */
#include "collector-server/http/parameters.h"
#include "collector-server/http/rows.h"

enum { WIDTH_DEFAULT = 1000, WIDTH_MAX = 4000, ROWS_MAX = 20000 };

#define TIME_MAX_NS INT64_C(999999999999999999)

static const char sql[] =
    "WITH shown AS (SELECT t.* FROM streams AS s JOIN timeline AS t USING (stream_id)"
    "  WHERE s.session_id = ?1 AND t.end_ns >= ?2 AND t.start_ns <= ?3),"
    " counted AS (SELECT stream_id, level, count(*) AS steps FROM shown GROUP BY stream_id, level),"
    " chosen AS (SELECT stream_id, coalesce(max(iif(steps >= ?4, level, NULL)), min(level)) AS "
    "level"
    "  FROM counted GROUP BY stream_id)"
    " SELECT w.stream_id, th.number AS thread_number, th.name AS thread_name, w.level, w.start_ns,"
    "  w.end_ns, w.calls, w.max_depth, w.path_id, p.function_id, f.name AS function"
    " FROM chosen JOIN shown AS w USING (stream_id, level)"
    " JOIN streams AS s ON s.stream_id = w.stream_id"
    " LEFT JOIN threads AS th ON th.thread_id = s.thread_id"
    " LEFT JOIN call_paths AS p ON p.path_id = w.path_id"
    " LEFT JOIN functions AS f ON f.function_id = p.function_id"
    " ORDER BY w.stream_id, w.start_ns LIMIT ?5";

static sj_status run(sj_request *request, json_t **body, sj_error *error)
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

const sj_route sj_route_timeline = {.pattern = "/api/v1/sessions/{id}/timeline", .run = run};
