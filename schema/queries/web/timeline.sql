-- The timelines: of one session, or of several (:sessions is a JSON array of ids).

-- part: of_sessions(session_id)
-- bind: sessions text
{session_id} IN (SELECT value FROM json_each(:sessions))

-- part: stream_list(which)
-- The streams `s` for which the condition `which` holds.
SELECT s.session_id, s.stream_id, s.thread_id, t.number AS thread, t.name, t.is_main,
       t.process_number AS process, s.calls, s.first_enter_ns AS from_ns,
       max(coalesce(s.last_leave_ns, 0), coalesce(s.first_enter_ns, 0),
           coalesce((SELECT max(end_ns) FROM timeline x WHERE x.stream_id = s.stream_id), 0),
           coalesce((SELECT max(start_ns) FROM open_calls o WHERE o.stream_id = s.stream_id), 0)) AS to_ns,
       s.max_depth, s.own_stack, p.pid, p.executable,
       (SELECT count(*) FROM processes q WHERE q.session_id = s.session_id) AS processes, '' AS session, '' AS clock
FROM streams s LEFT JOIN threads t USING (thread_id)
LEFT JOIN processes p ON p.session_id = s.session_id AND p.number = t.process_number
WHERE {which} ORDER BY s.session_id, p.number, t.is_main DESC, s.calls DESC, s.stream_id

-- name: streams
-- row: session_id, stream_id, thread_id optional, thread optional, name optional_text, is_main optional, process optional
-- row: calls, from_ns optional, to_ns optional, max_depth, own_stack, pid optional, executable optional_text, processes
-- row: session text, clock text
{stream_list(s.session_id = :session)}

-- name: streams_of_sessions
-- row: session_id, stream_id, thread_id optional, thread optional, name optional_text, is_main optional, process optional
-- row: calls, from_ns optional, to_ns optional, max_depth, own_stack, pid optional, executable optional_text, processes
-- row: session text, clock text
{stream_list({of_sessions(s.session_id)})}

-- part: gap_list(which)
-- The gaps `g` for which the condition `which` holds.
SELECT g.session_id, coalesce(g.stream_id, (SELECT s.stream_id FROM streams s JOIN threads t USING (thread_id)
           WHERE t.session_id = g.session_id AND t.number = g.thread_number LIMIT 1)) AS stream_id,
       g.reason = 'waited' AS is_wait, g.calls, g.start_ns, g.end_ns
FROM gaps g WHERE {which} ORDER BY g.start_ns

-- name: gaps
-- bind: from int, to int
-- row: session_id, stream_id optional, is_wait, calls, start_ns, end_ns
{gap_list(g.session_id = :session AND g.end_ns >= :from AND g.start_ns <= :to)}

-- name: gaps_of_sessions
-- row: session_id, stream_id optional, is_wait, calls, start_ns, end_ns
{gap_list({of_sessions(g.session_id)})}

-- part: mark_list(which)
-- Marks, and notes about a time, of the sessions for which the condition `which` holds.
SELECT session_id, name, at_ns, is_end, 'mark' AS what FROM marks WHERE {which}
UNION ALL SELECT session_id, note, start_ns, 0, 'note' FROM annotations
WHERE {which} AND start_ns IS NOT NULL ORDER BY at_ns

-- name: marks_and_notes
-- row: session_id, name text, at_ns, is_end, what text
{mark_list(session_id = :session)}

-- name: marks_and_notes_of_sessions
-- row: session_id, name text, at_ns, is_end, what text
{mark_list({of_sessions(session_id)})}

-- name: selected_spans
-- row: from_ns, to_ns
WITH {picked}
SELECT DISTINCT from_ns, to_ns FROM picked

-- part: area_sums(source)
SELECT f.name, a.function_id, sum(a.calls) AS calls, sum(a.self_ns) AS self_ns, sum(a.total_ns) AS total_ns,
       max(a.max_ns) AS max_ns, {is_estimate(:session, a.function_id)} AS is_estimate,
       {is_self_estimate(:session, a.function_id)} AS is_self_estimate
FROM {source} LEFT JOIN functions f USING (function_id) WHERE {matches(f.name)}
GROUP BY a.function_id ORDER BY 4 DESC, 3 DESC LIMIT 100

-- name: sums_of_time
-- bind: from int, to int
-- row: name text, function_id, calls, self_ns, total_ns, max_ns optional, is_estimate, is_self_estimate
-- The functions whose calls began between :from and :to.
{area_sums((SELECT * FROM call_aggregate(:session, :from, :to)) a)}

-- name: sums_of_selection
-- row: name text, function_id, calls, self_ns, total_ns, max_ns optional, is_estimate, is_self_estimate
WITH {picked}
{area_sums(picked p JOIN call_aggregate(:session, p.from_ns, p.to_ns, p.stream_id) a)}

-- name: sums_of_sessions
-- bind: areas text
-- row: session_id, title text, device text, name text, calls, self_ns, total_ns, max_ns optional, is_estimate
-- row: is_self_estimate
-- :areas is a JSON array of [session_id, from_ns, to_ns]: each session is asked in its own time.
SELECT a.session_id, coalesce(nullif(s.name, ''), s.command) AS title, d.name AS device, f.name,
       sum(a.calls) AS calls, sum(a.self_ns) AS self_ns, sum(a.total_ns) AS total_ns, max(a.max_ns) AS max_ns,
       {is_estimate(a.session_id, a.function_id)} AS is_estimate,
       {is_self_estimate(a.session_id, a.function_id)} AS is_self_estimate
FROM (SELECT j.value ->> 0 AS session_id, c.* FROM json_each(:areas) j
      CROSS JOIN call_aggregate(j.value ->> 0, j.value ->> 1, j.value ->> 2) c) a
JOIN sessions s USING (session_id) JOIN devices d USING (device_id) LEFT JOIN functions f USING (function_id)
WHERE {matches(f.name)}
GROUP BY a.session_id, a.function_id ORDER BY self_ns DESC, calls DESC LIMIT 100

-- name: sums_of_session
-- row: functions
-- Runs after the first picture is drawn, so that the server caches the sums of all blocks. It then reads only the
-- blocks at the edges of a selected time.
SELECT count(*) AS functions FROM call_aggregate(:session)

-- name: next_call
-- row: call_id id, start_ns, duration_ns optional
SELECT c.call_id, c.start_ns, c.duration_ns FROM calls c WHERE c.session_id = :session
  AND c.function_id = :function AND c.start_ns > :after LIMIT 1

-- name: best_match
-- bind: text text
-- row: function_id, name text
SELECT f.function_id, f.name FROM function_stats s JOIN functions f USING (function_id)
WHERE s.session_id = :session AND instr(lower(f.name), lower(:text)) > 0
ORDER BY length(f.name), s.self_ns DESC LIMIT 1

-- name: places
-- bind: align text, mark optional_text
-- row: session_id, title text, device_id, device text, offset_ns optional, uncertainty_ns optional, clock_error_ns optional_id
-- The sessions and their offsets from the first one. By clock, a session begins at its start in the collector's time
-- if the clocks were compared, else in the device's. By mark, the first marks are at the same time; offset_ns is NULL
-- if a session does not have the mark. uncertainty_ns is NULL if the clocks were never compared.
SELECT s.session_id, coalesce(nullif(s.name, ''), s.command) AS title, d.device_id, d.name AS device,
       CASE :align WHEN 'mark' THEN max(m.at_ns) OVER () - m.at_ns WHEN 'start' THEN 0
       ELSE coalesce(c.started_collector_ns, s.started_realtime_ns)
            - min(coalesce(c.started_collector_ns, s.started_realtime_ns)) OVER () END AS offset_ns,
       c.uncertainty_ns, c.clock_error_ns
FROM sessions s JOIN devices d USING (device_id) LEFT JOIN session_collector_times c ON c.session_id = s.session_id
LEFT JOIN (SELECT session_id, min(at_ns) AS at_ns FROM marks WHERE name = :mark AND NOT is_end GROUP BY session_id) m
     ON m.session_id = s.session_id
WHERE {of_sessions(s.session_id)} ORDER BY offset_ns IS NULL, offset_ns, s.session_id

-- name: marks_of_sessions
-- row: name text, sessions
SELECT name, count(DISTINCT session_id) AS sessions FROM marks
WHERE {of_sessions(session_id)} AND NOT is_end GROUP BY name ORDER BY sessions DESC, name LIMIT 200
