-- One call, and why it was slow.

-- name: call_costs
-- row: duration_ns optional, cpu_ns optional, cpu_self_ns optional
SELECT duration_ns, cpu_ns, cpu_self_ns FROM calls WHERE call_id = :call

-- name: call
-- The columns of `calls`, and those that are named here.
-- open_row: call_id id, function_id, name text, module text, thread optional_text, depth, start_ns, end_ns optional
-- open_row: duration_ns optional, self_ns optional, cpu_ns optional, cpu_self_ns optional, ending text, flags
-- open_row: is_self_estimate
SELECT c.*, {self_untimed(c.flags, c.function_id, c.session_id)} AS is_self_estimate, k.allocated_bytes, f.name,
       m.path AS module, t.name AS thread
FROM calls c LEFT JOIN call_costs k ON k.session_id = c.session_id AND k.call_id = c.call_id
LEFT JOIN functions f USING (function_id) LEFT JOIN modules m USING (module_id)
LEFT JOIN threads t ON t.thread_id = c.thread_id WHERE c.call_id = :call

-- name: callers_and_costs
-- row: call_id id, function_id, name text, start_ns, duration_ns optional, self_ns optional, is_estimate, is_self_estimate
SELECT a.call_id, a.function_id, f.name, a.start_ns, a.duration_ns, a.self_ns, {untimed(a.flags)} AS is_estimate,
       {self_untimed(a.flags, a.function_id, a.session_id)} AS is_self_estimate
FROM ancestors(:call) a LEFT JOIN functions f USING (function_id)

-- name: callees_of_call
-- row: function_id, name text, calls, total_ns optional, longest_ns optional, is_estimate
SELECT d.function_id, f.name, count(*) AS calls, sum(d.duration_ns) AS total_ns,
       max(d.duration_ns) AS longest_ns, {any_untimed(d.flags)} AS is_estimate
FROM calls d LEFT JOIN functions f USING (function_id) WHERE d.parent_id = :call
GROUP BY d.function_id ORDER BY total_ns DESC LIMIT 20

-- name: values_of_call
-- row: position, name optional_text, kind text, type optional_text, value any, note optional_text, rule text
-- Names come from debug data or from a rule's signature.
SELECT a.position, max(t.name) AS name, a.kind, max(t.type) AS type, a.value, a.note, a.rule
FROM arguments a LEFT JOIN value_types t
  ON t.session_id = :session AND t.function_id = :function AND t.position = a.position
WHERE a.session_id = :session AND a.call_id = :call
GROUP BY a.position, a.kind, a.rule ORDER BY a.position = 0, a.position, a.kind = 'errno', a.rule

-- name: typical_call
-- row: call_id id, function_id, start_ns, duration_ns optional, self_ns optional, flags, is_self_estimate
-- Its duration is within 10 % of the median, and its time is exact.
SELECT c.call_id, c.function_id, c.start_ns, c.duration_ns, c.self_ns, c.flags,
       {self_untimed(c.flags, c.function_id, c.session_id)} AS is_self_estimate FROM calls c,
    (SELECT x.function_id, x.session_id,
            histogram_quantile(s.histogram, 0.5, s.session_id, s.min_ns, s.max_ns) AS p50
     FROM calls x JOIN function_stats s ON s.session_id = x.session_id AND s.function_id = x.function_id
     WHERE x.call_id = :call) AS o
WHERE c.session_id = o.session_id AND c.function_id = o.function_id AND c.call_id <> :call
  AND c.duration_ns BETWEEN o.p50 * 0.9 AND o.p50 * 1.1 AND c.flags = 0
LIMIT 1

-- name: slow_call
-- row: call_id id, function_id, name text, start_ns, duration_ns optional, self_ns optional, flags, is_self_estimate
-- row: thread optional_text
SELECT c.call_id, c.function_id, f.name, c.start_ns, c.duration_ns, c.self_ns, c.flags,
       {self_untimed(c.flags, c.function_id, c.session_id)} AS is_self_estimate,
       t.name AS thread FROM calls c LEFT JOIN functions f USING (function_id)
LEFT JOIN threads t ON t.thread_id = c.thread_id WHERE c.call_id = :call

-- name: subtree
-- row: function_id, level, calls, self_ns optional, longest_ns optional, is_estimate, is_self_estimate, name text
-- The subtree of a call, summed by function and depth below the call. Names are joined last: they can be long, and
-- SQLite would sort them in temporary files.
SELECT g.*, f.name FROM (SELECT d.function_id, d.depth - c.depth AS level, count(*) AS calls,
       sum(d.self_ns) AS self_ns, max(d.duration_ns) AS longest_ns, {any_untimed(d.flags)} AS is_estimate,
       {any_self_untimed(d.flags, d.function_id, c.session_id)} AS is_self_estimate
FROM calls c JOIN descendants(c.call_id) d
WHERE c.call_id = :call GROUP BY d.function_id, level) AS g LEFT JOIN functions f USING (function_id)

-- name: thread_states
-- row: cpu_ns optional, is_cpu_estimate, ready_ns optional, blocked_ns optional, recorder_ns, below_ns optional
-- row: self_ns optional, duration_ns optional
-- Splits the time of a call by what its thread did. The scheduler's counters come in steps, which are longer than most
-- calls. A step counts in proportion to its overlap with the call, so the result is an estimate. CPU time that was
-- measured for the call itself is exact. ready_ns is NULL if the recording has no steps of the thread for this time.
WITH asked AS (
    SELECT c.session_id, c.stream_id, c.start_ns, c.end_ns, c.duration_ns, c.self_ns, c.cpu_ns, t.number AS thread_number
    FROM calls c LEFT JOIN threads t USING (thread_id) WHERE c.call_id = :call),
steps AS (
    SELECT x.cpu_ns, x.ready_ns, x.waiting_ns, x.to_ns - x.from_ns AS step_ns,
           min(x.to_ns, a.end_ns) - max(x.from_ns, a.start_ns) AS shared_ns
    FROM asked a JOIN thread_times x ON x.session_id = a.session_id AND x.thread_number = a.thread_number
    WHERE x.from_ns < a.end_ns AND x.to_ns > a.start_ns),
recorder AS (
    SELECT sum(min(g.end_ns, a.end_ns) - max(g.start_ns, a.start_ns)) AS ns
    FROM asked a JOIN gaps g ON g.session_id = a.session_id AND g.reason = 'waited'
      AND (g.thread_number = a.thread_number OR g.stream_id = a.stream_id)
    WHERE g.start_ns < a.end_ns AND g.end_ns > a.start_ns)
SELECT coalesce(a.cpu_ns, (SELECT CAST(sum(1.0 * cpu_ns * shared_ns / step_ns) AS INTEGER) FROM steps)) AS cpu_ns,
       a.cpu_ns IS NULL AS is_cpu_estimate,
       (SELECT CAST(sum(1.0 * ready_ns * shared_ns / step_ns) AS INTEGER) FROM steps) AS ready_ns,
       (SELECT CAST(max(0, sum(1.0 * waiting_ns * shared_ns / step_ns) - coalesce((SELECT ns FROM recorder), 0)) AS INTEGER)
        FROM steps) AS blocked_ns,
       coalesce((SELECT ns FROM recorder), 0) AS recorder_ns, a.duration_ns - a.self_ns AS below_ns, a.self_ns,
       a.duration_ns
FROM asked a

-- name: values_that_differ
-- row: position, this any, typical any
SELECT a.position, a.value AS this, b.value AS typical
FROM arguments a JOIN arguments b ON b.session_id = a.session_id AND b.position = a.position AND b.kind = a.kind AND b.rule = a.rule
WHERE a.session_id = :session AND a.call_id = :call AND b.call_id = :typical AND a.value IS NOT b.value
GROUP BY a.position ORDER BY a.position = 0, a.position
