#include "collector-server/http/list_route.h"
#include "collector-server/query/session_columns.h"

/* A gap has its stream, or the thread's number in the session, or neither. Losses are sorted before
 * waits. */
static const char sql[] =
    "SELECT g.gap_id AS id, coalesce(t.number, g.thread_number) AS thread_number,"
    " t.name AS thread_name, g.reason, g.calls, g.events, g.start_ns, g.end_ns,"
    " " SJ_GAP_IS_WAIT " AS is_wait"
    " FROM gaps g LEFT JOIN streams s ON s.stream_id = g.stream_id"
    " LEFT JOIN threads t ON t.thread_id = coalesce(s.thread_id, (SELECT n.thread_id"
    "  FROM threads n WHERE n.session_id = g.session_id AND n.number = g.thread_number))"
    " WHERE g.session_id = ?1 ORDER BY is_wait, g.start_ns, g.gap_id LIMIT ?2 OFFSET ?3";

static sj_status answer_gaps(sj_request *request, json_t **body, sj_error *error)
{
    return sj_list_route_run(request, sql, body, error);
}

const sj_route sj_route_gaps = {
    .pattern = "/api/v1/sessions/{id}/gaps", .role = SJ_ROLE_READER, .run = answer_gaps};
