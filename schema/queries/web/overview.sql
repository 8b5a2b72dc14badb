-- The overview of a session: where its time went, slow calls, threads, marks, triggers and losses.

-- name: hot
-- row: function_id, name text, self_ns, total_ns, calls, share real, is_self_estimate
SELECT f.function_id, f.name, s.self_ns, s.total_ns, s.calls, CAST(s.self_ns AS REAL) / sum(s.self_ns) OVER () AS share,
       {is_self_estimate(:session, s.function_id)} AS is_self_estimate
FROM function_stats s JOIN functions f USING (function_id)
WHERE s.session_id = :session AND s.calls > 0 AND {matches(f.name)} ORDER BY s.self_ns DESC LIMIT 10

-- name: selected_hot
-- row: function_id, name text, self_ns, total_ns, calls, share real, is_self_estimate
WITH {picked}
SELECT f.function_id, f.name, sum(a.self_ns) AS self_ns, sum(a.total_ns) AS total_ns, sum(a.calls) AS calls,
       CAST(sum(a.self_ns) AS REAL) / sum(sum(a.self_ns)) OVER () AS share,
       {is_self_estimate(:session, a.function_id)} AS is_self_estimate
FROM picked p JOIN call_aggregate(:session, p.from_ns, p.to_ns, p.stream_id) a JOIN functions f USING (function_id)
WHERE {matches(f.name)} GROUP BY a.function_id ORDER BY 3 DESC LIMIT 10

-- part: slow_calls(source)
-- The ten single calls of `source` with the most self time, of at least 1 us. The tenth of the stored slow calls
-- gives a lower bound, so that the query skips blocks that cannot contain a slower call. If the calls are not stored
-- here (copies from a cluster), the result is the stored slow calls.
WITH {picked},
stored AS MATERIALIZED (SELECT s.call_id, s.function_id, x.thread_id, s.start_ns, s.duration_ns, s.self_ns,
        iif(s.ending = 2, 'open', '') AS ending, s.flags
    FROM slow_calls s JOIN functions f USING (function_id) LEFT JOIN streams x ON x.stream_id = s.call_id >> 38
    WHERE s.session_id = :session AND {matches(f.name)} AND {is_picked(s.call_id >> 38, s.start_ns)}
    ORDER BY s.self_ns DESC LIMIT 10),
least AS (SELECT max(1000, coalesce((SELECT self_ns FROM stored ORDER BY self_ns DESC LIMIT 1 OFFSET 9), 0)) AS ns),
found AS MATERIALIZED (SELECT c.call_id, c.function_id, c.thread_id, c.start_ns, c.duration_ns, c.self_ns, c.ending, c.flags
    FROM {source} CROSS JOIN functions f ON f.function_id = c.function_id
    WHERE c.session_id = :session AND c.duration_ns >= (SELECT ns FROM least) AND c.self_ns >= (SELECT ns FROM least)
      AND {matches(f.name)} ORDER BY c.self_ns DESC LIMIT 10)
SELECT c.call_id, c.function_id, f.name, t.name AS thread, c.start_ns, c.duration_ns, c.self_ns, c.ending, c.flags,
       {self_untimed(c.flags, c.function_id, :session)} AS is_self_estimate,
       (SELECT group_concat(value, ', ') FROM (SELECT value FROM arguments a
                 WHERE a.call_id = c.call_id AND a.position > 0 ORDER BY a.position)) AS given
FROM (SELECT * FROM found UNION ALL SELECT * FROM stored
      WHERE NOT EXISTS (SELECT 1 FROM found) AND self_ns >= (SELECT ns FROM least)) c
JOIN functions f ON f.function_id = c.function_id LEFT JOIN threads t ON t.thread_id = c.thread_id
ORDER BY c.self_ns DESC LIMIT 10

-- part: picked_calls
picked p CROSS JOIN calls c ON c.stream_id = p.stream_id AND c.start_ns >= p.from_ns AND c.start_ns < p.to_ns

-- name: slow
-- row: call_id id, function_id, name text, thread optional_text, start_ns, duration_ns, self_ns, ending text, flags
-- row: is_self_estimate, given optional_text
{slow_calls(calls c)}

-- name: selected_slow
-- row: call_id id, function_id, name text, thread optional_text, start_ns, duration_ns, self_ns, ending text, flags
-- row: is_self_estimate, given optional_text
{slow_calls({picked_calls})}

-- part: slow_with_callers(calls)
-- Slow calls with their callers, because an offline page cannot ask for callers later.
SELECT x.name, x.given, x.thread, x.start_ns, x.duration_ns, x.self_ns, x.ending, x.flags, x.is_self_estimate,
    (SELECT group_concat(f.name, ' ← ') FROM ancestors(x.call_id) a LEFT JOIN functions f USING (function_id)) AS callers
FROM ({calls}) x

-- name: slow_with_callers
-- row: name text, given optional_text, thread optional_text, start_ns, duration_ns, self_ns, ending text, flags
-- row: is_self_estimate, callers optional_text
{slow_with_callers({slow_calls(calls c)})}

-- name: selected_slow_with_callers
-- row: name text, given optional_text, thread optional_text, start_ns, duration_ns, self_ns, ending text, flags
-- row: is_self_estimate, callers optional_text
{slow_with_callers({slow_calls({picked_calls})})}

-- name: callers_of_call
-- row: name text, duration_ns optional, start_ns, call_id id, is_estimate
SELECT f.name, a.duration_ns, a.start_ns, a.call_id, {untimed(a.flags)} AS is_estimate FROM ancestors(:call) a
LEFT JOIN functions f USING (function_id)

-- name: open_at_end
-- row: thread optional_text, tid, depth, name optional_text, start_ns
WITH {picked}
SELECT t.name AS thread, t.tid, o.depth, f.name, o.start_ns FROM open_calls o
JOIN streams s USING (stream_id) LEFT JOIN threads t USING (thread_id)
LEFT JOIN functions f USING (function_id)
WHERE s.session_id = :session AND {matches(f.name)} AND {is_picked(o.stream_id, o.start_ns)}
ORDER BY t.is_main DESC, o.stream_id, o.depth DESC

-- name: last_calls
-- row: thread optional_text, call_id id, depth, name optional_text, start_ns, duration_ns optional, ending text
-- row: is_estimate
-- The last 100 calls of each stream. Call ids also count lost calls, so the call counts of the blocks tell where the
-- last 100 stored calls begin.
WITH {picked},
counted AS (
    SELECT s.stream_id, s.thread_id, b.first_call,
           sum(b.call_count) OVER (PARTITION BY b.stream_id ORDER BY b.first_call DESC) - b.call_count AS later_calls
    FROM streams s JOIN blocks b USING (stream_id)
    WHERE s.session_id = :session AND b.kind = 1 AND b.quarantined IS NULL),
begins AS (
    SELECT stream_id, thread_id, (stream_id << 38) + min(first_call) AS call_id
    FROM counted WHERE later_calls < 100 GROUP BY stream_id),
latest AS (
    SELECT b.thread_id, b.stream_id, c.call_id, c.depth, c.function_id, c.start_ns, c.duration_ns, c.ending, c.flags,
           row_number() OVER (PARTITION BY c.stream_id ORDER BY c.call_id DESC) AS nth
    FROM begins b CROSS JOIN calls c ON c.stream_id = b.stream_id AND c.call_id >= b.call_id)
SELECT t.name AS thread, n.call_id, n.depth, f.name, n.start_ns, n.duration_ns, n.ending, {untimed(n.flags)} AS is_estimate
FROM latest n LEFT JOIN threads t USING (thread_id) LEFT JOIN functions f USING (function_id)
WHERE n.nth <= 100 AND {matches(f.name)} AND {is_picked(n.stream_id, n.start_ns)}
ORDER BY n.start_ns DESC LIMIT 3000

-- name: threads
-- row: number, name text, tid, is_main, calls optional, run_ns optional, deepest optional, dropped_calls, waited_ns
-- row: cpu_ns optional, ready_ns optional, waiting_ns optional
-- The last three are NULL if the scheduler's times were not recorded.
WITH {picked}
SELECT t.number, t.name, t.tid, t.is_main, sum(s.calls) AS calls,
       max(s.last_leave_ns) - min(s.first_enter_ns) AS run_ns, max(s.max_depth) AS deepest,
       t.dropped_calls, t.waited_ns, w.cpu_ns, w.ready_ns, w.waiting_ns
FROM threads t LEFT JOIN streams s USING (thread_id)
LEFT JOIN (SELECT thread_number, sum(cpu_ns) AS cpu_ns, sum(ready_ns) AS ready_ns, sum(waiting_ns) AS waiting_ns
           FROM thread_times WHERE session_id = :session GROUP BY thread_number) w ON w.thread_number = t.number
WHERE t.session_id = :session AND (:threads IS NULL OR t.thread_id IN (SELECT thread_id FROM picked))
GROUP BY t.thread_id ORDER BY t.is_main DESC, calls DESC LIMIT 100

-- name: unhooked
-- row: reason text, functions, bytes, example text
SELECT reason, count(*) AS functions, sum(size_bytes) AS bytes, min(name) AS example
FROM unhooked_functions WHERE session_id = :session AND {matches(name)} GROUP BY reason ORDER BY functions DESC

-- name: marks
-- row: name text, at_ns, source text, end_ns optional
WITH {picked}
SELECT b.name, b.at_ns, b.source, (SELECT min(e.at_ns) FROM marks e
       WHERE e.session_id = b.session_id AND e.name = b.name AND e.is_end = 1 AND e.at_ns >= b.at_ns) AS end_ns
FROM marks b WHERE b.session_id = :session AND b.is_end = 0 AND {is_then(b.at_ns)} ORDER BY b.at_ns LIMIT 200

-- name: decisions
-- row: at_ns, what text, name optional_text, reason text, total_calls, overhead_ppm, budget_ppm
WITH {picked}
SELECT d.at_ns, d.what, f.name, d.reason, d.total_calls, d.overhead_ppm, d.budget_ppm
FROM decisions d LEFT JOIN functions f USING (function_id)
WHERE d.session_id = :session AND {is_then(d.at_ns)} ORDER BY d.number LIMIT 200

-- name: triggers
-- row: at_ns, event text, subject text, value, actions text, suppressed, dump optional
WITH {picked}
SELECT t.at_ns, t.event, t.subject, t.value, t.actions, t.suppressed,
       (SELECT s.session_id FROM sessions s WHERE s.uuid = t.child_session_uuid) AS dump
FROM triggers t WHERE t.session_id = :session AND {is_then(t.at_ns)} ORDER BY t.number LIMIT 200

-- name: notes
-- row: note text, author text, start_ns optional, end_ns optional, written text
SELECT note, author, start_ns, end_ns,
       strftime('%Y-%m-%d %H:%M UTC', created_realtime_ns / 1000000000, 'unixepoch') AS written
FROM annotations WHERE session_id = :session ORDER BY annotation_id DESC LIMIT 200

-- name: filtered
-- row: name optional_text, reason text, calls, total_ns
SELECT f.name, c.reason, c.calls, c.total_ns FROM filtered_calls c LEFT JOIN functions f USING (function_id)
WHERE c.session_id = :session AND {matches(f.name)} ORDER BY c.calls DESC LIMIT 50

-- name: findings_of_session
-- row: zombie_id, kind text, used_in text, freed_in text, allocated_in text, reports
-- Without selected threads, reports of threads without recorded calls count.
WITH {picked}
SELECT z.zombie_id, z.kind, z.used_in, z.freed_in, z.allocated_in, count(*) AS reports
FROM zombie_reports r JOIN zombies z USING (zombie_id) WHERE r.session_id = :session
  AND iif(:threads IS NULL, {is_then(r.at_ns)}, EXISTS (SELECT 1 FROM picked p JOIN threads t USING (thread_id)
       WHERE t.tid = r.tid AND r.at_ns >= p.from_ns AND r.at_ns < p.to_ns))
GROUP BY z.zombie_id ORDER BY reports DESC
