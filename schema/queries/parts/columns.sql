-- Columns and conditions that statements of several components share.

-- part: next_function
-- The first free function id of the schema `main`. Ids that the store never assigned do not count.
-- Otherwise a forged file could use up all ids.
SELECT max(coalesce((SELECT max(first_function_id + function_count) FROM main.modules
    WHERE first_function_id BETWEEN 1 AND 1 << 60 AND function_count BETWEEN 0 AND 4294967295), 1),
    coalesce((SELECT max(function_id) + 1 FROM main.functions WHERE function_id <= 1 << 60), 1))

-- part: session_has_come
-- True if a session is complete: its device said how many blocks it sent, and each is stored or known to be
-- permanently missing.
(state <> 'recording' AND sent_blocks IS NOT NULL AND stored_blocks + missing_blocks >= sent_blocks)

-- part: session_select
-- The fields of a session wherever the API shows one. While a session is being recorded, its duration is
-- the time that its calls have reached.
SELECT s.session_id AS id, s.uuid, s.name, s.command, s.mode, s.state, s.cause, s.parent_session_id,
    s.started_realtime_ns, s.ended_realtime_ns, CASE WHEN s.ended_realtime_ns IS NOT NULL
    THEN max(s.ended_realtime_ns - s.started_realtime_ns, 0) ELSE (SELECT max(t.last_leave_ns) FROM streams t
    WHERE t.session_id = s.session_id) END AS duration_ns, s.pinned AS is_pinned, s.tags, s.stored_calls,
    s.stored_events, s.stored_blocks, s.missing_blocks, s.stored_bytes, max(s.lost_calls,
    coalesce(s.device_lost_calls, 0)) AS lost_calls, max(s.lost_events, coalesce(s.device_lost_events,
    0)) AS lost_events, (SELECT count(*) FROM triggers t WHERE t.session_id = s.session_id) AS trigger_count,
    (SELECT count(*) FROM marks m WHERE m.session_id = s.session_id) AS mark_count, s.sent_calls,
    s.clock_name, s.clock_step, s.traced_cpu_ns, s.estimated_probe_ns, d.device_id, d.name AS device_name,
    d.model AS device_model, d.os AS device_os, d.machine AS device_machine
FROM sessions s
JOIN devices d ON d.device_id = s.device_id

-- part: mean_ns(session_id, function_id)
-- Mean of all calls that ended, in ns; NULL without any. total_ns of function_stats excludes calls inside
-- calls of the same function, so it cannot be divided by their number. The sum over call paths can, because
-- each call has its own path there.
(SELECT sum(mp.total_ns) / nullif(sum(mp.calls), 0) FROM call_paths AS mp WHERE mp.session_id = {session_id}
    AND mp.function_id = {function_id})

-- part: is_self_estimate(session_id, function_id)
-- 1 if the self time of the function is an estimate, even if only because of its callees.
{estimate_column({session_id}, {function_id}, is_self_estimate)}

-- part: estimate_column(session_id, function_id, column)
-- Whether times are estimates, because calls were counted without a clock. The view function_estimates
-- alone defines the rule.
EXISTS (SELECT 1 FROM function_estimates AS fe WHERE fe.session_id = {session_id}
    AND fe.function_id = {function_id} AND fe.{column})

-- part: is_estimate(session_id, function_id)
-- 1 if all times of the function are estimates.
{estimate_column({session_id}, {function_id}, is_estimate)}

-- part: calls_counted(session_id, function_id)
-- 1 if calls that the function made were counted, so that self times of its calls are estimates.
{estimate_column({session_id}, {function_id}, calls_counted)}

-- part: gap_is_wait
-- True for a gap `g` without losses: its thread waited for the recorder.
g.reason = 'waited'

-- part: session_tags
-- The tags of sessions `s`. An imported session may have anything there.
iif(json_valid(s.tags), s.tags, '{}')

-- part: session_matches
-- A condition on sessions `s` of devices `d`. Its parameters ?1 to ?9 are the filters.
(?1 IS NULL OR instr(lower(s.command || char(10) || s.name || char(10) || s.state || char(10) || s.tags ||
    char(10) || d.name || char(10) || d.model || char(10) || d.os), lower(?1)) > 0)
    AND (?2 IS NULL OR s.device_id = ?2) AND (?3 IS NULL OR s.state = ?3)
    AND (?4 IS NULL OR s.session_id IN (SELECT p.session_id FROM processes p WHERE p.number = 1
    AND {file_name(p.executable)} = ?4)) AND (?5 IS NULL OR s.session_id IN (SELECT sm.session_id
    FROM session_modules sm JOIN modules m USING (module_id) WHERE lower(hex(m.build_id)) = lower(?5)))
    AND (?6 IS NULL OR EXISTS (SELECT 1 FROM json_each({session_tags}) t WHERE t.key || '=' || t.value = ?6))
    AND (?7 IS NULL OR s.session_id IN (SELECT k.session_id FROM marks k WHERE k.name = ?7))
    AND (?8 IS NULL OR s.started_realtime_ns >= ?8 * 1000000)
    AND (?9 IS NULL OR s.started_realtime_ns < ?9 * 1000000)

-- part: file_name(path)
-- The file name of a path.
replace({path}, rtrim({path}, replace({path}, '/', '')), '')

-- part: track_number
-- The number of a track. Tracks that are not the own stack of a known thread get numbers above every
-- thread id of Linux.
iif(s.own_stack AND t.tid > 0, t.tid, 4194304 + s.stream_id)

-- part: zombie_coverage_sums
-- How much of the heap was watched for uses of freed memory. ?1 is a session, or 0 for all of them.
SELECT CAST(total(c.allocations) AS INTEGER) AS allocations, CAST(total(c.guarded) AS INTEGER) AS guarded,
    CAST(total(c.recycled) AS INTEGER) AS recycled, CAST(total(c.not_sampled) AS INTEGER) AS not_sampled,
    CAST(total(c.bad_size) AS INTEGER) AS bad_size, CAST(total(c.no_block) AS INTEGER) AS no_block,
    CAST(total(c.over_memory) AS INTEGER) AS over_memory, CAST(total(c.refused) AS INTEGER) AS refused,
    CAST(total(a.delayed) AS INTEGER) AS delayed, CAST(total(a.kept) AS INTEGER) AS kept,
    CAST(total(a.not_kept) AS INTEGER) AS not_kept
FROM zombie_accounts a
LEFT JOIN zombie_coverage c ON c.session_id = a.session_id AND c.process_number IS a.process_number
WHERE ?1 IN (0, a.session_id)
