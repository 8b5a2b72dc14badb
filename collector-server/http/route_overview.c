#include "collector-server/http/route.h"

#include "collector-server/query/json_rows.h"
#include "collector-server/query/session_columns.h"

enum { LIST_MAX = 500 };

typedef struct overview_list {
    const char *name;
    const char *sql; /* ?1 session, ?2 limit */
} overview_list;

static const overview_list lists[] = {
    {"processes",
     "SELECT number, pid, parent_number, executable, command, how, started_ns, ended_ns, exit_code,"
     " exit_signal, core_dumped AS is_core_dumped, disarm_reason FROM processes"
     " WHERE session_id = ?1 ORDER BY number LIMIT ?2"},
    {"threads",
     "SELECT t.number, t.process_number, t.tid, t.name, t.is_main,"
     " coalesce(sum(s.calls), 0) AS calls, min(s.first_enter_ns) AS first_enter_ns,"
     " max(s.last_leave_ns) AS last_leave_ns,"
     " max(s.last_leave_ns) - min(s.first_enter_ns) AS run_time_ns,"
     " coalesce(max(s.max_depth), 0) AS max_depth, t.dropped_calls, t.dropped_events, t.waited_ns"
     " FROM threads t LEFT JOIN streams s ON s.thread_id = t.thread_id"
     " WHERE t.session_id = ?1 GROUP BY t.thread_id ORDER BY calls DESC, t.number LIMIT ?2"},
    {"modules",
     "SELECT sm.number, m.module_id, coalesce(sm.path, m.path) AS path, m.machine, m.build_id AS "
     "build, sm.function_count,"
     " sm.hooked_count FROM session_modules sm JOIN modules m ON m.module_id = sm.module_id"
     " WHERE sm.session_id = ?1 ORDER BY sm.hooked_count DESC, sm.number LIMIT ?2"},
    {"marks", "SELECT number, name, is_end, at_ns, thread_number, source FROM marks"
              " WHERE session_id = ?1 ORDER BY at_ns, mark_id LIMIT ?2"},
    {"loss", "SELECT reason, count(*) AS gaps, sum(calls) AS calls, sum(events) AS events,"
             " min(start_ns) AS first_ns, max(end_ns) AS last_ns FROM gaps AS g"
             " WHERE session_id = ?1 AND NOT " SJ_GAP_IS_WAIT
             " GROUP BY reason ORDER BY calls DESC, reason LIMIT ?2"},
};

static const char counts_sql[] =
    "SELECT (SELECT count(*) FROM function_stats WHERE session_id = ?1) AS functions,"
    " (SELECT count(*) FROM call_paths WHERE session_id = ?1) AS call_paths,"
    " (SELECT count(*) FROM threads WHERE session_id = ?1) AS threads,"
    " (SELECT count(*) FROM gaps AS g WHERE session_id = ?1 AND NOT " SJ_GAP_IS_WAIT ") AS gaps,"
    " (SELECT count(*) FROM gaps AS g WHERE session_id = ?1 AND " SJ_GAP_IS_WAIT ") AS waits,"
    " (SELECT coalesce(sum(end_ns - start_ns), 0) FROM gaps AS g WHERE session_id = ?1"
    "  AND " SJ_GAP_IS_WAIT ") AS waits_ns,"
    " (SELECT count(*) FROM sessions WHERE parent_session_id = ?1) AS dumps,"
    " (SELECT count(*) FROM unhooked_functions WHERE session_id = ?1) AS unhooked,"
    " (SELECT coalesce(sum(untrusted), 0) FROM function_stats WHERE session_id = ?1)"
    "  AS untrusted_calls,"
    " (SELECT coalesce(sum(untimed_calls), 0) FROM function_stats WHERE session_id = ?1)"
    "  AS untimed_calls,"
    " (SELECT count(*) FROM blocks b JOIN streams s ON s.stream_id = b.stream_id"
    "  WHERE s.session_id = ?1 AND b.quarantined IS NOT NULL) AS quarantined_blocks,"
    " (SELECT count(*) FROM open_before(?1)) AS before_calls,"
    " o.open_calls, o.running_calls, o.running_since_ns FROM (SELECT count(*) FILTER (WHERE"
    " is_counted) AS open_calls, count(*) FILTER (WHERE NOT is_counted) AS running_calls,"
    " min(start_ns) FILTER (WHERE NOT is_counted) AS running_since_ns FROM open_now(?1)) AS o";

static sj_status take_one(sqlite3 *database, const char *sql, int64_t session, json_t **row,
                          sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    json_t *rows = NULL;
    SJ_TRY(sj_rows_prepare(database, sql, &statement, error));
    sqlite3_bind_int64(statement, 1, session);
    SJ_TRY(sj_rows_take(statement, 1, &rows, NULL, error));
    *row = json_incref(json_array_get(rows, 0));
    json_decref(rows);
    return *row != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
}

static sj_status add_parts(sqlite3 *database, int64_t session, json_t *body, sj_error *error)
{
    json_t *counts = NULL;
    SJ_TRY(take_one(database, counts_sql, session, &counts, error));
    json_object_set_new(body, "counts", counts);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        SJ_TRY(sj_rows_list_of_session(database, lists[i].sql, session, LIST_MAX, body,
                                       lists[i].name, error));
    }
    return SJ_OK;
}

static sj_status answer_overview(sj_request *request, json_t **body, sj_error *error)
{
    json_t *overview = NULL;
    SJ_TRY(sj_rows_require_session(request->database, request->id, error));
    SJ_TRY(take_one(request->database, SJ_SESSION_SELECT " WHERE s.session_id = ?1", request->id,
                    &overview, error));
    const sj_status status = add_parts(request->database, request->id, overview, error);
    if (status != SJ_OK) {
        json_decref(overview);
        return status;
    }
    *body = overview;
    return SJ_OK;
}

const sj_route sj_route_overview = {
    .pattern = "/api/v1/sessions/{id}", .role = SJ_ROLE_READER, .run = answer_overview};
