-- The functions of a session or of a selection, and one function.

-- part: open_by_function
-- For each function: how many of its calls were open when recording ended.
(SELECT o.function_id, count(*) AS open_calls FROM streams x JOIN open_calls o USING (stream_id)
    WHERE x.session_id = :session AND {is_picked(o.stream_id, o.start_ns)} GROUP BY o.function_id)

-- part: function_table
SELECT f.function_id AS id, f.name, coalesce(m.path, '') AS module, s.calls, s.total_ns, s.self_ns,
       (SELECT sum(p.total_ns) / nullif(sum(p.calls), 0) FROM call_paths p
        WHERE p.session_id = s.session_id AND p.function_id = s.function_id) AS mean_ns,
       s.min_ns, s.max_ns, {stored_quantile(0.5)} AS p50_ns, {stored_quantile(0.9)} AS p90_ns,
       {stored_quantile(0.95)} AS p95_ns, {stored_quantile(0.99)} AS p99_ns,
       coalesce(e.open_calls, 0) AS open_calls, s.unwound, s.untrusted, coalesce(s.untimed_calls, 0) AS untimed_calls,
       s.error_ns, {is_self_estimate(:session, s.function_id)} AS is_self_estimate
FROM function_stats s JOIN functions f USING (function_id) LEFT JOIN modules m USING (module_id)
LEFT JOIN (SELECT o.function_id, count(*) AS open_calls FROM streams x JOIN open_calls o USING (stream_id)
    WHERE x.session_id = :session GROUP BY o.function_id) e ON e.function_id = s.function_id
WHERE s.session_id = :session AND {matches(f.name)}

-- part: selected_function_table
-- The sums come from call_aggregate, which counts recursive time once. The percentiles come from call_groups.
WITH {picked},
  sums AS (SELECT a.function_id, sum(a.calls) AS calls, sum(a.total_ns) AS total_ns, sum(a.self_ns) AS self_ns,
      sum(a.duration_ns) AS duration_ns, min(a.min_ns) AS min_ns, max(a.max_ns) AS max_ns
    FROM picked p JOIN call_aggregate(:session, p.from_ns, p.to_ns, p.stream_id) a GROUP BY a.function_id),
  spread AS (SELECT g.function_id, histogram_merge(g.histogram) AS histogram
    FROM (SELECT DISTINCT thread_id, from_ns, to_ns FROM picked) p
    JOIN call_groups('function', :session, p.from_ns, p.to_ns, p.thread_id) g GROUP BY g.function_id)
SELECT f.function_id AS id, f.name, coalesce(m.path, '') AS module, s.calls, s.total_ns, s.self_ns,
       s.duration_ns / nullif(s.calls, 0) AS mean_ns, s.min_ns, s.max_ns,
       {merged_quantile(0.5)} AS p50_ns, {merged_quantile(0.9)} AS p90_ns,
       {merged_quantile(0.95)} AS p95_ns, {merged_quantile(0.99)} AS p99_ns,
       coalesce(e.open_calls, 0) AS open_calls, 0 AS unwound, 0 AS untrusted,
       (SELECT coalesce(max(u.untimed_calls), 0) FROM function_stats u
        WHERE u.session_id = :session AND u.function_id = s.function_id) AS untimed_calls, NULL AS error_ns,
       {is_self_estimate(:session, s.function_id)} AS is_self_estimate
FROM sums s JOIN functions f USING (function_id) LEFT JOIN modules m USING (module_id)
LEFT JOIN {open_by_function} e ON e.function_id = s.function_id
LEFT JOIN spread h ON h.function_id = s.function_id WHERE {matches(f.name)}

-- name: functions
-- row: id, name text, module text, calls, total_ns, self_ns, mean_ns optional, min_ns optional, max_ns optional
-- row: p50_ns optional, p90_ns optional, p95_ns optional, p99_ns optional, open_calls, unwound, untrusted, untimed_calls
-- row: error_ns optional, is_self_estimate
{function_table}

-- name: selected_functions
-- row: id, name text, module text, calls, total_ns, self_ns, mean_ns optional, min_ns optional, max_ns optional
-- row: p50_ns optional, p90_ns optional, p95_ns optional, p99_ns optional, open_calls, unwound, untrusted, untimed_calls
-- row: error_ns optional, is_self_estimate
{selected_function_table}

-- part: functions_of_page(table)
SELECT name, module, calls, total_ns, self_ns, mean_ns, min_ns, p50_ns, p95_ns, p99_ns, max_ns, untimed_calls, error_ns,
    is_self_estimate
FROM ({table}) ORDER BY self_ns DESC

-- name: functions_of_page
-- row: name text, module text, calls, total_ns, self_ns, mean_ns optional, min_ns optional, p50_ns optional
-- row: p95_ns optional, p99_ns optional, max_ns optional, untimed_calls, error_ns optional, is_self_estimate
{functions_of_page({function_table})}

-- name: selected_functions_of_page
-- row: name text, module text, calls, total_ns, self_ns, mean_ns optional, min_ns optional, p50_ns optional
-- row: p95_ns optional, p99_ns optional, max_ns optional, untimed_calls, error_ns optional, is_self_estimate
{functions_of_page({selected_function_table})}

-- name: function
-- row: name text, module text, calls, total_ns, self_ns, min_ns optional, max_ns optional, unwound, untrusted
-- row: p50_ns optional, p90_ns optional, p95_ns optional, p99_ns optional, untimed_calls, error_ns optional
-- row: is_self_estimate, file optional_text, line optional
SELECT f.name, m.path AS module, s.calls, s.total_ns, s.self_ns, s.min_ns, s.max_ns, s.unwound, s.untrusted,
       {stored_quantile(0.5)} AS p50_ns, {stored_quantile(0.9)} AS p90_ns,
       {stored_quantile(0.95)} AS p95_ns, {stored_quantile(0.99)} AS p99_ns,
       coalesce(s.untimed_calls, 0) AS untimed_calls, s.error_ns,
       {is_self_estimate(:session, :function)} AS is_self_estimate, l.file, l.line
FROM function_stats s JOIN functions f USING (function_id) JOIN modules m USING (module_id)
LEFT JOIN function_lines l USING (function_id)
WHERE s.session_id = :session AND s.function_id = :function

-- name: selected_function
-- row: name text, module text, calls, total_ns, self_ns, min_ns optional, max_ns optional, unwound, untrusted
-- row: p50_ns optional, p90_ns optional, p95_ns optional, p99_ns optional, untimed_calls, error_ns optional
-- row: is_self_estimate, file optional_text, line optional
WITH {picked},
  sums AS (SELECT sum(a.calls) AS calls, sum(a.total_ns) AS total_ns, sum(a.self_ns) AS self_ns,
      min(a.min_ns) AS min_ns, max(a.max_ns) AS max_ns
    FROM picked p JOIN call_aggregate(:session, p.from_ns, p.to_ns, p.stream_id) a WHERE a.function_id = :function),
  spread AS ({merged_durations})
SELECT f.name, m.path AS module, s.calls, s.total_ns, s.self_ns, s.min_ns, s.max_ns, 0 AS unwound, 0 AS untrusted,
       {merged_quantile(0.5)} AS p50_ns, {merged_quantile(0.9)} AS p90_ns,
       {merged_quantile(0.95)} AS p95_ns, {merged_quantile(0.99)} AS p99_ns,
       (SELECT coalesce(max(u.untimed_calls), 0) FROM function_stats u
        WHERE u.session_id = :session AND u.function_id = :function) AS untimed_calls, NULL AS error_ns,
       {is_self_estimate(:session, :function)} AS is_self_estimate, l.file, l.line
FROM sums s, spread h JOIN functions f ON f.function_id = :function LEFT JOIN modules m USING (module_id)
LEFT JOIN function_lines l ON l.function_id = f.function_id WHERE s.calls > 0

-- name: durations
-- row: low, high, count
SELECT h.low, h.high, h.count FROM function_stats s, histogram(s.histogram, s.session_id) h
WHERE s.session_id = :session AND s.function_id = :function

-- name: selected_durations
-- row: low, high, count
WITH {picked}
SELECT h.low, h.high, h.count FROM ({merged_durations}) s, histogram(s.histogram) h

-- name: calls_of_duration
-- row: call_id id, thread optional_text, start_ns, duration_ns, self_ns, ending text, flags, is_self_estimate
WITH {picked}
SELECT c.call_id, t.name AS thread, c.start_ns, c.duration_ns, c.self_ns, c.ending, c.flags,
       {self_untimed(c.flags, :function, :session)} AS is_self_estimate
FROM calls c LEFT JOIN threads t ON t.thread_id = c.thread_id
WHERE c.session_id = :session AND c.function_id = :function AND c.duration_ns >= :least AND c.duration_ns <= :most
  AND {is_picked(c.stream_id, c.start_ns)}
LIMIT 100

-- name: callers
-- row: function_id optional, name text, calls, total_ns, is_estimate
SELECT e.caller_function_id AS function_id, coalesce(f.name, 'nothing recorded') AS name,
       e.calls, e.total_ns, {is_estimate(:session, :function)} AS is_estimate
FROM call_edges e LEFT JOIN functions f ON f.function_id = e.caller_function_id
WHERE e.session_id = :session AND e.callee_function_id = :function ORDER BY e.total_ns DESC LIMIT 50

-- name: callees
-- row: function_id optional, name text, calls, total_ns, is_estimate
SELECT e.callee_function_id AS function_id, f.name, e.calls, e.total_ns,
       {is_estimate(:session, e.callee_function_id)} AS is_estimate
FROM call_edges e LEFT JOIN functions f ON f.function_id = e.callee_function_id
WHERE e.session_id = :session AND e.caller_function_id = :function ORDER BY e.total_ns DESC LIMIT 50

-- name: selected_callers
-- row: function_id optional, name text, calls, total_ns, is_estimate
WITH {picked}
SELECT g.caller_function_id AS function_id, coalesce(f.name, 'nothing recorded') AS name, sum(g.calls) AS calls,
       sum(g.duration_ns) AS total_ns, {is_estimate(:session, :function)} AS is_estimate
FROM (SELECT DISTINCT thread_id, from_ns, to_ns FROM picked) p
JOIN call_groups('caller', :session, p.from_ns, p.to_ns, p.thread_id, :function) g
LEFT JOIN functions f ON f.function_id = g.caller_function_id GROUP BY 1 ORDER BY 4 DESC LIMIT 50

-- name: selected_callees
-- row: function_id optional, name text, calls, total_ns, is_estimate
WITH {picked}
SELECT g.function_id AS function_id, coalesce(f.name, 'nothing recorded') AS name, sum(g.calls) AS calls,
       sum(g.duration_ns) AS total_ns, {is_estimate(:session, g.function_id)} AS is_estimate
FROM (SELECT DISTINCT thread_id, from_ns, to_ns FROM picked) p
JOIN call_groups('function', :session, p.from_ns, p.to_ns, p.thread_id, NULL, :function) g
LEFT JOIN functions f ON f.function_id = g.function_id GROUP BY 1 ORDER BY 4 DESC LIMIT 50

-- name: has_values
-- row: one
SELECT 1 AS one FROM arguments WHERE session_id = :session LIMIT 1

-- name: calls_by_value
-- row: position, name optional_text, kind text, value any, note optional_text, calls, total_ns optional, p50_ns optional
-- row: duration_ns optional, cpu_ns optional, call_id id, start_ns, is_estimate
-- For each recorded value: the number of calls with it, their durations, and the slowest call.
WITH {picked},
kept AS MATERIALIZED (SELECT DISTINCT a.call_id, a.position, a.kind, a.value, a.note, c.duration_ns,
    c.cpu_ns, c.start_ns, c.flags FROM calls c JOIN arguments a ON a.session_id = c.session_id AND a.call_id = c.call_id
  WHERE c.session_id = :session AND c.function_id = :function AND {is_picked(c.stream_id, c.start_ns)})
SELECT k.position, (SELECT max(t.name) FROM value_types t WHERE t.session_id = :session AND t.function_id = :function
    AND t.position = k.position) AS name, k.kind, k.value, k.note, count(*) AS calls, sum(k.duration_ns) AS total_ns,
  percentile(k.duration_ns, 50) AS p50_ns, max(k.duration_ns) AS duration_ns, sum(k.cpu_ns) AS cpu_ns, k.call_id, k.start_ns,
  {any_untimed(k.flags)} AS is_estimate
FROM kept k GROUP BY k.position, k.kind, k.value, k.note ORDER BY k.position = 0, k.position, k.kind, total_ns DESC LIMIT 200
