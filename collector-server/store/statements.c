#include "collector-server/store/statements.h"

#include "collector-server/store/database.h"
#include "collector-server/store/stored_text.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

static const char *const texts[SJ_SQL_STATEMENTS] = {
    [SJ_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SJ_SQL_COMMIT] = "COMMIT",
    [SJ_SQL_ROLLBACK] = "ROLLBACK",
    [SJ_SQL_SAVEPOINT] = "SAVEPOINT frame",
    [SJ_SQL_RELEASE] = "RELEASE frame",
    [SJ_SQL_ROLLBACK_TO] = "ROLLBACK TO frame",
    [SJ_SQL_DEVICE_FIND] = "SELECT device_id FROM devices WHERE uuid = ?1",
    [SJ_SQL_DEVICE_HELLO] =
        "INSERT INTO devices (uuid, name, model, os, machine, agent_version, own_tags, tags,"
        " first_seen_realtime_ns, last_seen_realtime_ns, build)"
        " VALUES (?1,?2,?3,?4,?5,?6,?7,?7,?8,?8,?9)"
        " ON CONFLICT (uuid) DO UPDATE SET name = excluded.name, model = excluded.model,"
        " os = excluded.os, machine = excluded.machine, agent_version = excluded.agent_version,"
        " own_tags = excluded.own_tags, build = excluded.build,"
        " tags = json_patch(excluded.own_tags, devices.collector_tags),"
        " last_seen_realtime_ns = max(last_seen_realtime_ns, excluded.last_seen_realtime_ns)",
    [SJ_SQL_SESSION_FIND] =
        "SELECT session_id, started_ticks, tick_ns_numerator, tick_ns_denominator, device_id,"
        " stored_blocks, stored_bytes, stored_calls, stored_events, lost_calls - missing_calls,"
        " lost_events - missing_events, aggregates_valid_before_block, quarantine_reason IS NOT "
        "NULL,"
        " (SELECT d.uuid FROM devices d WHERE d.device_id = sessions.device_id), secret_digest,"
        " folded_paths, folded_calls"
        " FROM sessions WHERE uuid = ?1 AND state <> 'removing'",
    [SJ_SQL_SESSION_WAS_REMOVED] =
        "SELECT removal_id FROM removals WHERE session_uuid = ?1 LIMIT 1",
    [SJ_SQL_SESSION_IS_KEPT] = "SELECT session_id FROM sessions WHERE uuid = ?1 AND"
                               " session_id = ?2 AND state <> 'removing'",
    /* A device may announce a session again. Keep its name and tags, because a user may have
     * changed them. */
    [SJ_SQL_SESSION_PUT] =
        "INSERT INTO sessions (uuid, device_id, name, command, mode, started_realtime_ns,"
        " started_ticks, tick_ns_numerator, tick_ns_denominator, clock_step, clock_name,"
        " parent_session_id, cause, policy_version, tags, secret_digest, received_realtime_ns)"
        " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,"
        "  iif(length(?16) = 32, ?16, NULL), ?17)"
        " ON CONFLICT (uuid) DO UPDATE SET command = excluded.command,"
        " clock_step = excluded.clock_step, cause = excluded.cause,"
        " parent_session_id = coalesce(parent_session_id, excluded.parent_session_id),"
        " policy_version = max(policy_version, excluded.policy_version)",
    [SJ_SQL_SESSION_TOTALS] =
        "UPDATE sessions SET stored_blocks = ?2, stored_bytes = ?3, stored_calls = ?4,"
        " stored_events = ?5, lost_calls = ?6 + missing_calls, lost_events = ?7 + missing_events,"
        " aggregates_valid_before_block = NULL,"
        " quarantine_reason = NULL, folded_paths = ?8, folded_calls = ?9 WHERE session_id = ?1",
    [SJ_SQL_SESSION_LOST] = "UPDATE sessions SET lost_calls = lost_calls + ?2,"
                            " lost_events = lost_events + ?3 WHERE session_id = ?1",
    [SJ_SQL_SESSION_RECEIPT] =
        "UPDATE sessions SET received_realtime_ns = ?2, state ="
        " iif(state = 'lost contact', 'recording', state) WHERE session_id = ?1",
    [SJ_SQL_SESSION_SILENT_NEXT] = "SELECT uuid, session_id FROM sessions WHERE state = 'recording'"
                                   " AND received_realtime_ns < ?1 ORDER BY session_id LIMIT 1",
    [SJ_SQL_SESSION_LOSE_CONTACT] = "UPDATE sessions SET state = 'lost contact'"
                                    " WHERE session_id = ?1",
    /* Selects what was sent and is neither stored nor counted as lost by the device. */
    [SJ_SQL_MISSING_READ] =
        "SELECT sent_calls - stored_calls - (lost_calls - missing_calls),"
        " sent_blocks - stored_blocks, missing_calls + missing_blocks, ended_ticks FROM sessions"
        " WHERE session_id = ?1 AND state NOT IN ('recording', 'removing')",
    /* The streams of a flight dump begin at any event. */
    [SJ_SQL_HOLE_LIST] =
        "SELECT * FROM (SELECT b.stream_id, b.first_event - lag(b.first_event + b.event_count +"
        " b.lost_events, 1, s.first_event) OVER w AS events, b.first_call - lag(b.first_call + "
        "b.call_count +"
        " b.lost_calls, 1, iif(s.first_event = 0, 0, b.first_call)) OVER w AS calls,"
        " lag(b.last_ticks, 1, s.started_ticks) OVER w, b.first_ticks FROM (SELECT st.stream_id,"
        " e.started_ticks, iif(e.parent_session_id IS NULL, 0, (SELECT min(first_event) FROM blocks"
        " WHERE stream_id = st.stream_id AND kind = 1)) AS first_event FROM streams AS st"
        " JOIN sessions AS e USING (session_id) WHERE st.session_id = ?1) AS s"
        " JOIN blocks AS b ON b.stream_id = s.stream_id AND b.kind = 1"
        " WINDOW w AS (PARTITION BY b.stream_id ORDER BY b.first_event, b.block_id))"
        " WHERE events > 0",
    [SJ_SQL_MISSING_FORGET] = "DELETE FROM gaps WHERE session_id = ?1 AND reason = ?2",
    [SJ_SQL_MISSING_NOTE] = "UPDATE sessions SET lost_calls = lost_calls - missing_calls + ?2,"
                            " lost_events = lost_events - missing_events + ?3, missing_calls = ?2,"
                            " missing_events = ?3, missing_blocks = ?4 WHERE session_id = ?1",
    [SJ_SQL_SESSION_STALE] = "UPDATE sessions SET aggregates_valid_before_block = ?2"
                             " WHERE session_id = ?1 AND aggregates_valid_before_block IS NULL",
    [SJ_SQL_SESSION_STALE_NEXT] =
        "SELECT uuid, session_id FROM sessions"
        " WHERE aggregates_valid_before_block IS NOT NULL AND session_id > ?1"
        " AND state <> 'removing'"
        " AND (?2 OR quarantine_reason IS NULL)"
        " ORDER BY session_id LIMIT 1",
    [SJ_SQL_SESSION_QUARANTINE] =
        "UPDATE sessions SET aggregates_valid_before_block = "
        "coalesce(aggregates_valid_before_block, ?2),"
        " quarantine_reason = iif(coalesce(aggregates_valid_before_block, ?2) IS NULL, NULL, ?3)"
        " WHERE session_id = ?1",
    [SJ_SQL_BLOCK_UNCOUNTED_LIST] =
        "SELECT b.block_id FROM streams st CROSS JOIN blocks b ON b.stream_id = st.stream_id"
        " WHERE st.session_id = ?1 AND +b.block_id >= ?2 ORDER BY b.block_id",
    [SJ_SQL_BLOCK_READ] =
        "SELECT st.number, b.storage, b.data FROM blocks b"
        " JOIN streams st USING (stream_id) WHERE b.block_id = ?1 AND b.quarantined IS NULL",
    [SJ_SQL_BLOCK_QUARANTINE] = "UPDATE blocks SET quarantined = ?2 WHERE block_id = ?1",
    [SJ_SQL_SESSION_END] =
        "UPDATE sessions SET state = ?2, ended_ticks = ?3, ended_realtime_ns = ?4,"
        " sent_records = ?5, sent_calls = ?6, device_lost_calls = ?7, device_lost_events = ?8,"
        " sent_blocks = max(?9, coalesce(sent_blocks, 0)), traced_cpu_ns = ?10, estimated_probe_ns "
        "= ?11 WHERE session_id = ?1",
    [SJ_SQL_PROCESS_PUT] =
        "INSERT INTO processes (session_id, number, pid, parent_number, executable, command, how,"
        " started_ns, ended_ns, exit_code, exit_signal, core_dumped, disarm_reason)"
        " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)"
        " ON CONFLICT (session_id, number) DO UPDATE SET pid = excluded.pid,"
        " executable = iif(excluded.executable = '', executable, excluded.executable),"
        " command = iif(excluded.command = '', command, excluded.command), how = excluded.how,"
        " started_ns = excluded.started_ns, ended_ns = coalesce(excluded.ended_ns, ended_ns),"
        " exit_code = coalesce(excluded.exit_code, exit_code),"
        " exit_signal = coalesce(excluded.exit_signal, exit_signal),"
        " core_dumped = max(core_dumped, excluded.core_dumped),"
        " disarm_reason = iif(excluded.disarm_reason = '', disarm_reason, excluded.disarm_reason)",
    [SJ_SQL_THREAD_PUT] =
        "INSERT INTO threads (session_id, number, process_number, tid, name, is_main, started_ns,"
        " ended_ns, dropped_calls, dropped_events, waited_ns, cpu_ns, allocated_bytes,"
        " malloc_allocations, malloc_bytes, malloc_frees, malloc_freed_bytes)"
        " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,nullif(?12, 0) - 1,nullif(?13, 0) - 1,"
        " nullif(?14, 0) - 1,nullif(?15, 0) - 1,nullif(?16, 0) - 1,nullif(?17, 0) - 1)"
        " ON CONFLICT (session_id, number) DO UPDATE SET name = excluded.name,"
        " started_ns = excluded.started_ns, ended_ns = coalesce(excluded.ended_ns, ended_ns),"
        " dropped_calls = max(dropped_calls, excluded.dropped_calls),"
        " dropped_events = max(dropped_events, excluded.dropped_events),"
        " waited_ns = max(waited_ns, excluded.waited_ns),"
        " cpu_ns = coalesce(excluded.cpu_ns, cpu_ns),"
        " allocated_bytes = coalesce(excluded.allocated_bytes, allocated_bytes),"
        " malloc_allocations = coalesce(excluded.malloc_allocations, malloc_allocations),"
        " malloc_bytes = coalesce(excluded.malloc_bytes, malloc_bytes),"
        " malloc_frees = coalesce(excluded.malloc_frees, malloc_frees),"
        " malloc_freed_bytes = coalesce(excluded.malloc_freed_bytes, malloc_freed_bytes)"
        " RETURNING thread_id",
    [SJ_SQL_STREAM_LINK] =
        "INSERT INTO streams (session_id, number, thread_id, own_stack) VALUES (?1,?2,?3,?4)"
        " ON CONFLICT (session_id, number) DO UPDATE SET thread_id = excluded.thread_id,"
        " own_stack = excluded.own_stack",
    [SJ_SQL_STREAM_ADD] = "INSERT INTO streams (session_id, number) VALUES (?1,?2)"
                          " ON CONFLICT (session_id, number) DO UPDATE SET number = number"
                          " RETURNING stream_id",
    [SJ_SQL_STREAM_SUMS] =
        "UPDATE streams SET calls = ?2, first_enter_ns = ?3, last_leave_ns = ?4, max_depth = ?5,"
        " ended = ?6 WHERE stream_id = ?1",
    [SJ_SQL_STREAM_END] = "UPDATE streams SET ended = 1 WHERE stream_id = ?1",
    [SJ_SQL_STREAM_LAST_BLOCK] =
        "SELECT storage, data, later FROM (SELECT b.storage, b.data, b.quarantined, EXISTS (SELECT "
        "1"
        " FROM streams AS n WHERE n.session_id = s.session_id AND n.thread_id = s.thread_id AND"
        " n.own_stack AND s.own_stack AND n.number > s.number) AS later FROM streams AS s"
        " JOIN blocks AS b USING (stream_id) WHERE s.stream_id = ?1 AND b.kind = 1"
        " ORDER BY b.first_event DESC, b.block_id DESC LIMIT 1) WHERE quarantined IS NULL",
    [SJ_SQL_SESSION_LAST_TICKS] =
        "SELECT max((SELECT last_ticks FROM blocks WHERE stream_id = s.stream_id AND kind = 1"
        " ORDER BY first_event DESC LIMIT 1)) FROM streams AS s WHERE s.session_id = ?1",
    [SJ_SQL_STREAM_LIST] =
        "SELECT stream_id, number, calls, first_enter_ns, last_leave_ns, max_depth, ended"
        " FROM streams WHERE session_id = ?1 ORDER BY number",
    [SJ_SQL_STREAM_HIGHEST] = "SELECT coalesce(max(stream_id), 0) FROM streams",
    [SJ_SQL_MODULE_FIND] = "SELECT module_id, first_function_id, function_count FROM modules"
                           " WHERE build_id = ?1 AND functions_digest = ?2",
    [SJ_SQL_MODULE_DISOWN] =
        "UPDATE modules SET functions_digest = randomblob(24) WHERE module_id = ?1",
    [SJ_SQL_MODULE_NEXT_FUNCTION] = SJ_NEXT_FUNCTION_SQL,
    [SJ_SQL_MODULE_ADD] =
        "INSERT INTO modules (build_id, functions_digest, path, machine, first_function_id,"
        " function_count) VALUES (?1,?2,?3,?4,?5,?6)",
    [SJ_SQL_FUNCTION_ADD] =
        "INSERT INTO functions (function_id, module_id, offset, size_bytes, name, symbol,"
        " symbol_key, source, fingerprint) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,nullif(?9, 0))",
    [SJ_SQL_PLAN_FIND] = "SELECT hook_plan_id FROM hook_plans WHERE module_id = ?1 AND digest = ?2",
    [SJ_SQL_PLAN_ADD] = "INSERT INTO hook_plans (module_id, digest) VALUES (?1,?2)",
    [SJ_SQL_PLAN_FUNCTION_ADD] =
        "INSERT INTO hook_plan_functions (hook_plan_id, function_id, technique, reason)"
        " VALUES (?1,?2,?3,?4)",
    [SJ_SQL_SESSION_MODULE_ADD] =
        "INSERT INTO session_modules (session_id, number, module_id, hook_plan_id, first_function,"
        " function_count, hooked_count, path) VALUES (?1,?2,?3,?4,?5,?6,?7,?8)"
        " ON CONFLICT DO UPDATE SET hook_plan_id = excluded.hook_plan_id,"
        " hooked_count = excluded.hooked_count WHERE module_id = excluded.module_id"
        " AND hook_plan_id <> excluded.hook_plan_id",
    [SJ_SQL_SESSION_MODULE_LIST] =
        "SELECT s.number, s.first_function, s.function_count, m.first_function_id"
        " FROM session_modules AS s JOIN modules AS m ON m.module_id = s.module_id"
        " WHERE s.session_id = ?1 ORDER BY s.first_function",
    [SJ_SQL_PART_ADD] =
        "INSERT OR REPLACE INTO module_parts (session_id, number, first, function_count, raw_bytes,"
        " data) VALUES (?1,?2,?3,?4,?5,?6)",
    [SJ_SQL_PART_LIST] = "SELECT first, function_count, raw_bytes, data FROM module_parts"
                         " WHERE session_id = ?1 AND number = ?2 ORDER BY first",
    [SJ_SQL_PART_DELETE] = "DELETE FROM module_parts WHERE session_id = ?1 AND number = ?2",
    [SJ_SQL_MAPPING_PUT] =
        "INSERT INTO mappings (session_id, process_number, module_number, bias, loaded_ns,"
        " unloaded_ns) VALUES (?1,?2,?3,?4,?5,?6)"
        " ON CONFLICT DO UPDATE SET unloaded_ns = coalesce(excluded.unloaded_ns, unloaded_ns)",
    [SJ_SQL_REFUSED_ADD] = "INSERT OR IGNORE INTO refused_functions VALUES (?1,?2,?3,?4)",
    [SJ_SQL_BLOCK_BEFORE] =
        "SELECT first_event, event_count, block_id, quarantined IS NULL FROM blocks"
        " WHERE stream_id = ?1 AND kind = ?2"
        " AND first_event < ?3 AND event_count > 0"
        " ORDER BY first_event DESC, event_count DESC LIMIT 1",
    [SJ_SQL_BLOCK_FIND] = "SELECT block_id FROM blocks WHERE stream_id = ?1 AND kind = ?2"
                          " AND first_event = ?3 AND event_count = ?4",
    [SJ_SQL_BLOCK_STACK] = "SELECT storage, data FROM blocks WHERE stream_id = ?1 AND kind = 2"
                           " AND first_event = ?2 AND quarantined IS NULL",
    [SJ_SQL_BLOCK_ADD] =
        "INSERT INTO blocks (stream_id, kind, first_event, event_count, first_call, call_count,"
        " first_ticks, last_ticks, open_depth, max_depth, max_duration_ticks, lost_calls,"
        " lost_events, functions, late_first_call, late_last_call, late, data)"
        " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18)",
    [SJ_SQL_OUTLINE_PUT] =
        "INSERT OR REPLACE INTO block_outlines (block_id, stream_id, floor_ticks, calls)"
        " VALUES (?1,?2,?3,?4)",
    [SJ_SQL_REFUSED_NOTE] =
        "INSERT INTO refused_frames (session_id, sender_uuid, frames, reason, first_realtime_ns,"
        " last_realtime_ns) SELECT ?1,?2,1,?3,?4,?4"
        " WHERE (SELECT count(*) FROM refused_frames) < 1000"
        " OR EXISTS (SELECT 1 FROM refused_frames WHERE session_id = ?1 AND sender_uuid = ?2)"
        " ON CONFLICT DO UPDATE SET frames = frames + 1, reason = excluded.reason,"
        " last_realtime_ns = excluded.last_realtime_ns",
    [SJ_SQL_BLOCK_KEEP_ASIDE] =
        "INSERT INTO quarantined_blocks (session_id, stream, first_event, event_count, sender_uuid,"
        " reason, arrived_realtime_ns, data) SELECT ?1,?2,?3,?4,iif(length(?5) = 16, ?5, NULL),?6,"
        "?7,?8 WHERE (SELECT count(*) FROM quarantined_blocks) < 256"
        " AND (SELECT count(*) FROM quarantined_blocks WHERE session_id = ?1) < 16"
        " AND (SELECT coalesce(sum(length(data)), 0) FROM quarantined_blocks) < 67108864",
    [SJ_SQL_BLOCK_IS_ASIDE] = "SELECT 1 FROM quarantined_blocks WHERE session_id = ?1"
                              " AND stream = ?2 AND first_event = ?3 AND event_count = ?4"
                              " AND data = ?5",
    [SJ_SQL_GAP_ADD] =
        "INSERT OR IGNORE INTO gaps (session_id, stream_id, thread_number, block_id, number,"
        " reason, calls, events, start_ns, end_ns) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)",
    [SJ_SQL_VALUE_ADD] =
        "INSERT OR IGNORE INTO arguments (session_id, call_id, position, kind, rule,"
        " value, note) VALUES (?1,?2,?3,?4,?5,?6,?7)",
    [SJ_SQL_COST_ADD] = "INSERT OR IGNORE INTO call_costs (session_id, call_id, function_id,"
                        " is_nested, cpu_ns, cpu_self_ns, allocations, allocated_bytes, frees,"
                        " freed_bytes, allocations_self, allocated_self_bytes, frees_self,"
                        " freed_self_bytes) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,"
                        "?14)",
    [SJ_SQL_OPEN_CALL_ADD] = "INSERT OR REPLACE INTO open_calls (stream_id, call_index,"
                             " function_id, depth, start_ns, flags) VALUES (?1,?2,?3,?4,?5,?6)",
    [SJ_SQL_MARK_ADD] =
        "INSERT OR IGNORE INTO marks (session_id, number, name, is_end, at_ns, thread_number,"
        " source) VALUES (?1,?2,?3,?4,?5,?6,?7)",
    [SJ_SQL_CLOCK_ADD] = "INSERT OR IGNORE INTO clock_pairs VALUES (?1,?2,?3,?4,?5,?6,?7)",
    [SJ_SQL_DEVICE_CLOCK_ADD] = "INSERT OR IGNORE INTO device_clocks (device_id, boot_id,"
                                " boottime_ns, offset_ns, uncertainty_ns) VALUES (?1,?2,?3,?4,?5)",
    [SJ_SQL_PATH_LIST] =
        "SELECT path_id, parent_path_id, depth, recursive, calls, unwound, untrusted, histogram,"
        " state, rare FROM call_paths WHERE path_id > ?1 AND path_id < ?2 ORDER BY path_id",
    [SJ_SQL_PATH_PUT] =
        "INSERT INTO call_paths (path_id, session_id, parent_path_id, function_id, depth,"
        " recursive, calls, total_ns, self_ns, min_ns, max_ns, unwound, untrusted, histogram,"
        " state, rare, cpu_ns, cpu_self_ns, allocations, allocated_bytes, frees, freed_bytes,"
        " allocated_self_bytes) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,"
        "?17,?18,?19,?20,?21,?22,?23)"
        " ON CONFLICT (path_id) DO UPDATE SET calls = ?7, total_ns = ?8, self_ns = ?9,"
        " min_ns = ?10, max_ns = ?11, unwound = ?12, untrusted = ?13, histogram = ?14,"
        " state = ?15, cpu_ns = ?17, cpu_self_ns = ?18, allocations = ?19, allocated_bytes = ?20,"
        " frees = ?21, freed_bytes = ?22, allocated_self_bytes = ?23",
    [SJ_SQL_PATH_FORGET] = "DELETE FROM call_paths WHERE path_id > ?1 AND path_id < ?2",
    [SJ_SQL_FUNCTION_STATS_PUT] =
        "INSERT INTO function_stats (session_id, function_id, calls, total_ns, self_ns, min_ns,"
        " max_ns, unwound, untrusted, histogram, cpu_ns, cpu_self_ns, allocations,"
        " allocated_bytes, frees, freed_bytes, allocated_self_bytes)"
        " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17)"
        " ON CONFLICT (session_id, function_id) DO UPDATE SET calls = ?3, total_ns = ?4,"
        " self_ns = ?5, min_ns = ?6, max_ns = ?7, unwound = ?8, untrusted = ?9, histogram = ?10,"
        " cpu_ns = ?11, cpu_self_ns = ?12, allocations = ?13, allocated_bytes = ?14, frees = ?15,"
        " freed_bytes = ?16, allocated_self_bytes = ?17",
    [SJ_SQL_ESTIMATE_LIST] = "SELECT function_id, untimed_calls, sampled_calls, error_ns"
                             " FROM function_stats WHERE session_id = ?1 AND untimed_calls > 0"
                             " ORDER BY function_id",
    [SJ_SQL_ESTIMATE_PUT] =
        "UPDATE function_stats SET untimed_calls = ?3, sampled_calls = ?4, error_ns = ?5"
        " WHERE session_id = ?1 AND function_id = ?2",
    [SJ_SQL_EDGE_PUT] =
        "INSERT INTO call_edges (session_id, caller_function_id, callee_function_id, calls,"
        " total_ns, self_ns) VALUES (?1,?2,?3,?4,?5,?6)"
        " ON CONFLICT (session_id, caller_function_id, callee_function_id)"
        " DO UPDATE SET calls = ?4, total_ns = ?5, self_ns = ?6",
    [SJ_SQL_POLICY_ADD] =
        "INSERT INTO policies (session_id, number, name, version, mode, budget_ppm,"
        " document, not_applied, applied_ns) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)"
        " ON CONFLICT DO UPDATE SET not_applied = excluded.not_applied",
    [SJ_SQL_PROFILE_ADD] = "INSERT OR IGNORE INTO profiles (session_id, number, start_ns, end_ns,"
                           " calls, events, bytes) VALUES (?1,?2,?3,?4,?5,?6,?7)",
    [SJ_SQL_DECISION_ADD] =
        "INSERT OR IGNORE INTO decisions (session_id, number, at_ns, process_number, function_id,"
        " what, reason, calls, total_calls, overhead_ppm, budget_ppm)"
        " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)",
    [SJ_SQL_TRIGGER_ADD] =
        "INSERT OR IGNORE INTO triggers (session_id, number, at_ns, thread_number, place, event,"
        " subject, value, actions, suppressed, child_session_uuid)"
        " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)",
    [SJ_SQL_STACK_ADD] =
        "INSERT OR IGNORE INTO stacks (session_id, number, level, taken, at_ns, process_number,"
        " tid, thread_name, cause, function, module, offset, is_cut)"
        " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)",
    [SJ_SQL_REPORT_ADD] =
        "INSERT OR IGNORE INTO reports (session_id, number, at_ns, process_number, thread_number,"
        " monitor, kind, payload) VALUES (?1,?2,?3,?4,?5,?6,?7,?8)",
    /* For a report that lists methods by offset, each with its lines. */
    [SJ_SQL_FIRST_LINES_ADD] =
        "INSERT OR IGNORE INTO function_lines (function_id, file, line)"
        " SELECT f.function_id, cast(json_extract(?2, '$.file') AS TEXT), min(l.value)"
        " FROM session_modules AS s, json_each(?2, '$.methods') AS m, json_each(m.value) AS l"
        " JOIN functions AS f ON f.module_id = s.module_id"
        " AND f.offset = json_extract(m.value, '$[0]')"
        " WHERE s.session_id = ?1 AND s.number = json_extract(?2, '$.module')"
        " AND m.type = 'array' AND l.key > 0 AND l.type = 'integer' GROUP BY f.function_id",
    [SJ_SQL_ZOMBIE_PUT] =
        "INSERT INTO zombies (fingerprint, kind, used_in, freed_in, allocated_in, reports,"
        " first_seen_realtime_ns, last_seen_realtime_ns, state, class, selector)"
        " SELECT ?1,?2,?3,?4,?5,1,started_realtime_ns + ?7,started_realtime_ns + ?7,'open',?8,?9"
        " FROM sessions WHERE session_id = ?6"
        " ON CONFLICT (fingerprint) DO UPDATE SET reports = reports + 1,"
        " first_seen_realtime_ns = min(first_seen_realtime_ns, excluded.first_seen_realtime_ns),"
        " last_seen_realtime_ns = max(last_seen_realtime_ns, excluded.last_seen_realtime_ns),"
        " state = CASE WHEN state = 'resolved'"
        " AND excluded.last_seen_realtime_ns > resolved_realtime_ns THEN 'reopened' ELSE state END",
    [SJ_SQL_ZOMBIE_FIND] = "SELECT zombie_id FROM zombies WHERE fingerprint = ?1",
    [SJ_SQL_ZOMBIE_REPORT_ADD] =
        "INSERT INTO zombie_reports (report_id, zombie_id, session_id, at_ns, thread_name, tid,"
        " access, size, offset) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)",
    [SJ_SQL_ZOMBIE_REPORT_KNOWN] =
        "SELECT 1 FROM zombie_reports WHERE session_id = ?1 AND at_ns = ?2 AND tid = ?3 AND size ="
        " ?4 AND offset = ?5",
    [SJ_SQL_REPORT_REMOVE] = "DELETE FROM reports WHERE report_id = ?1",
    [SJ_SQL_ZOMBIE_FRAME_ADD] =
        "INSERT INTO zombie_frames (report_id, stack, depth, tid, function, module, offset, is_own)"
        " VALUES (?1,?2,?3,?4,?5,?6,?7,?8)",
    [SJ_SQL_ZOMBIE_ACCOUNT_KNOWN] =
        "SELECT 1 FROM zombie_accounts WHERE session_id = ?1 AND process_number = ?2",
    [SJ_SQL_ZOMBIE_ACCOUNT_ADD] =
        "INSERT INTO zombie_accounts (report_id, session_id, process_number, not_watched, one_in,"
        " guarded, released, evicted, refused_size, refused_room, refused_memory, uses, suppressed,"
        " kept, kept_full, kept_old, kept_pressure, kept_left, kept_used, not_kept, emptied,"
        " quarantined, quarantine_full, quarantine_pressure, quarantine_left, not_quarantined,"
        " methods_without_door, one_in_most, history_pauses, pressure_unseen,"
        " quarantine_one_in_most)"
        " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,"
        "?23,?24,?25,?26,?27,?28,?29,?30,?31)",
    [SJ_SQL_ZOMBIE_EVENT_ADD] = "INSERT INTO zombie_events (report_id, number, event, owners, tid, "
                                "ticks, function, partner)"
                                " VALUES (?1,?2,?3,?4,?5,?6,?7,?8)",
    [SJ_SQL_FILTERED_FRAME_ADD] =
        "INSERT OR IGNORE INTO filtered_frames (session_id, number) VALUES (?1,?2)",
    [SJ_SQL_FILTERED_ADD] =
        "INSERT INTO filtered_calls (session_id, function_id, reason, calls, total_ns)"
        " VALUES (?1,?2,?3,?4,?5) ON CONFLICT (session_id, function_id, reason)"
        " DO UPDATE SET calls = calls + excluded.calls, total_ns = total_ns + excluded.total_ns",
    [SJ_SQL_SLOW_LIST] =
        "SELECT function_id, call_id, path_id, start_ns, duration_ns, self_ns, ending, flags"
        " FROM slow_calls WHERE session_id = ?1 ORDER BY function_id, place",
    [SJ_SQL_SLOW_CUT] =
        "DELETE FROM slow_calls WHERE session_id = ?1 AND function_id = ?2 AND place > ?3",
    [SJ_SQL_SLOW_PUT] =
        "INSERT INTO slow_calls (session_id, function_id, place, call_id, path_id, start_ns,"
        " duration_ns, self_ns, ending, flags) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)"
        " ON CONFLICT (session_id, function_id, place) DO UPDATE SET call_id = ?4, path_id = ?5,"
        " start_ns = ?6, duration_ns = ?7, self_ns = ?8, ending = ?9, flags = ?10",
    [SJ_SQL_TIMELINE_ADD] =
        "INSERT INTO timeline (stream_id, level, number, start_ns, end_ns, calls, max_depth,"
        " path_id) VALUES (?1,?2,?3,?4,?5,?6,?7,?8) ON CONFLICT (stream_id, level, number)"
        " DO UPDATE SET path_id = iif(excluded.start_ns < start_ns, excluded.path_id, path_id),"
        " start_ns = min(start_ns, excluded.start_ns), end_ns = max(end_ns, excluded.end_ns),"
        " calls = calls + excluded.calls, max_depth = max(max_depth, excluded.max_depth)",
    [SJ_SQL_TIMELINE_PATH] = "UPDATE timeline SET path_id = ?5"
                             " WHERE stream_id = ?1 AND level = ?2 AND number = ?3"
                             " AND start_ns = ?4 AND path_id IS NOT ?5",
    [SJ_SQL_TIMELINE_PATH_LIST] =
        "SELECT stream_id, level, t.number, path_id FROM streams JOIN timeline t USING (stream_id)"
        " WHERE session_id = ?1 AND path_id IS NOT NULL",
    [SJ_SQL_TIMELINE_PATH_MOVE] = "UPDATE timeline SET path_id = ?4"
                                  " WHERE stream_id = ?1 AND level = ?2 AND number = ?3",
    [SJ_SQL_TIMELINE_SUM] =
        "INSERT OR REPLACE INTO timeline (stream_id, level, number, start_ns, end_ns, calls,"
        " max_depth, path_id) SELECT stream_id, ?2, number >> 4, min(start_ns), max(end_ns),"
        " sum(calls), max(max_depth), (SELECT f.path_id FROM timeline AS f WHERE f.stream_id = ?1"
        "  AND f.level = ?2 - 4 AND f.number >= t.number >> 4 << 4 ORDER BY f.number LIMIT 1)"
        " FROM timeline AS t WHERE stream_id = ?1 AND level = ?2 - 4 AND number BETWEEN ?3 AND ?4"
        " GROUP BY number >> 4",
};

sj_status sj_statements_prepare(sj_statements *statements, sqlite3 *database, sj_error *error)
{
    *statements = (sj_statements){.database = database};
    for (int i = 0; i < SJ_SQL_STATEMENTS; ++i) {
        const int result = sqlite3_prepare_v3(database, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                              &statements->prepared[i], NULL);
        if (result != SQLITE_OK) {
            return sj_fail(error, sj_database_status(result), "cannot prepare %.80s: %s", texts[i],
                           sqlite3_errmsg(database));
        }
    }
    return SJ_OK;
}

void sj_statements_finalize(sj_statements *statements)
{
    for (int i = 0; i < SJ_SQL_STATEMENTS; ++i) {
        sqlite3_finalize(statements->prepared[i]);
        statements->prepared[i] = NULL;
    }
}

static sj_status fail(sj_statements *statements, int result, sj_error *error)
{
    /* forged frames and damaged rows violate constraints; a full disk does not */
    const bool is_constraint = (result & 0xff) == SQLITE_CONSTRAINT;
    statements->met_damage = statements->met_damage || sj_database_is_damaged(result);
    return sj_fail(error, is_constraint ? SJ_ECORRUPT : sj_database_status(result),
                   "the database refused: %s", sqlite3_errmsg(statements->database));
}

static int bind_slice(sqlite3_stmt *statement, int position, const sj_slice *slice)
{
    if (slice->data == NULL) {
        return sqlite3_bind_zeroblob(statement, position, 0);
    }
    return sqlite3_bind_blob64(statement, position, slice->data, slice->size, SQLITE_STATIC);
}

static int bind_string(sqlite3_stmt *statement, int position, const char *text)
{
    return sj_stored_text_bind(statement, position, text, text != NULL ? strlen(text) : 0);
}

static int bind_optional(sqlite3_stmt *statement, int position, const int64_t *value)
{
    return value != NULL ? sqlite3_bind_int64(statement, position, *value)
                         : sqlite3_bind_null(statement, position);
}

static int bind_all(sqlite3_stmt *statement, const char *format, va_list arguments)
{
    const sj_slice *text;
    int result = SQLITE_OK;
    for (int i = 1; format[i - 1] != '\0' && result == SQLITE_OK; ++i) {
        switch (format[i - 1]) {
        case 'i':
            result = sqlite3_bind_int64(statement, i, va_arg(arguments, int64_t));
            break;
        case 'u': {
            const uint64_t value = va_arg(arguments, uint64_t);
            result =
                sqlite3_bind_int64(statement, i, value > INT64_MAX ? INT64_MAX : (int64_t)value);
            break;
        }
        case 't':
            result = bind_string(statement, i, va_arg(arguments, const char *));
            break;
        case 'b':
            result = bind_slice(statement, i, va_arg(arguments, const sj_slice *));
            break;
        case 's':
            text = va_arg(arguments, const sj_slice *);
            result = sj_stored_text_bind(statement, i, (const char *)text->data, text->size);
            break;
        case 'o':
            result = bind_optional(statement, i, va_arg(arguments, const int64_t *));
            break;
        default:
            result = SQLITE_MISUSE;
            break;
        }
    }
    return result;
}

sj_status sj_sql_bind(sj_statements *statements, sj_statement which, sj_error *error,
                      const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    sqlite3_reset(statements->prepared[which]);
    const int result = bind_all(statements->prepared[which], format, arguments);
    va_end(arguments);
    return result == SQLITE_OK ? SJ_OK : fail(statements, result, error);
}

sj_status sj_sql_step(sj_statements *statements, sj_statement which, sj_error *error)
{
    const int result = sqlite3_step(statements->prepared[which]);
    if (result == SQLITE_ROW) {
        return SJ_OK;
    }
    const sj_status status = result == SQLITE_DONE ? SJ_ENOTFOUND : fail(statements, result, error);
    sqlite3_reset(statements->prepared[which]);
    return status;
}

sj_status sj_sql_run(sj_statements *statements, sj_statement which, sj_error *error,
                     const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    sqlite3_stmt *statement = statements->prepared[which];
    int result = bind_all(statement, format, arguments);
    va_end(arguments);
    if (result == SQLITE_OK) {
        result = sqlite3_step(statement);
    }
    sj_status status = SJ_OK;
    if (result != SQLITE_DONE && result != SQLITE_ROW) {
        status = fail(statements, result, error);
    }
    sqlite3_reset(statement);
    return status;
}

sj_status sj_sql_get_number(sj_statements *statements, sj_statement which, int64_t *number,
                            sj_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int result = bind_all(statements->prepared[which], format, arguments);
    va_end(arguments);
    if (result != SQLITE_OK) {
        return fail(statements, result, error);
    }
    SJ_TRY(sj_sql_step(statements, which, error));
    *number = sqlite3_column_int64(statements->prepared[which], 0);
    sqlite3_reset(statements->prepared[which]);
    return SJ_OK;
}

void sj_sql_reset(sj_statements *statements, sj_statement which)
{
    sqlite3_reset(statements->prepared[which]);
}
