/* The fields of a session wherever the API shows one. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SESSION_COLUMNS_H
#define SJ_COLLECTOR_SERVER_QUERY_SESSION_COLUMNS_H

/* True for a gap `g` without losses: its thread waited for the recorder. */
#define SJ_GAP_IS_WAIT "g.reason = 'waited'"

/* While a session is being recorded, its duration is the time that its calls have reached. */
#define SJ_SESSION_SELECT                                                                          \
    "SELECT s.session_id AS id, s.uuid, s.name, s.command, s.mode, s.state, s.cause,"              \
    " s.parent_session_id, s.started_realtime_ns, s.ended_realtime_ns,"                            \
    " CASE WHEN s.ended_realtime_ns IS NOT NULL"                                                   \
    "  THEN max(s.ended_realtime_ns - s.started_realtime_ns, 0)"                                   \
    "  ELSE (SELECT max(t.last_leave_ns) FROM streams t WHERE t.session_id = s.session_id)"        \
    " END AS duration_ns, s.pinned AS is_pinned, s.tags,"                                          \
    " s.stored_calls, s.stored_events, s.stored_blocks, s.missing_blocks, s.stored_bytes,"         \
    " max(s.lost_calls, coalesce(s.device_lost_calls, 0)) AS lost_calls,"                          \
    " max(s.lost_events, coalesce(s.device_lost_events, 0)) AS lost_events,"                       \
    " (SELECT count(*) FROM triggers t WHERE t.session_id = s.session_id) AS trigger_count,"       \
    " (SELECT count(*) FROM marks m WHERE m.session_id = s.session_id) AS mark_count,"             \
    " s.sent_calls, s.clock_name, s.clock_step, s.traced_cpu_ns, s.estimated_probe_ns,"            \
    " d.device_id, d.name AS device_name, d.model AS device_model, d.os AS device_os,"             \
    " d.machine AS device_machine"                                                                 \
    " FROM sessions s JOIN devices d ON d.device_id = s.device_id"

#endif
