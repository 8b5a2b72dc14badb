/* Rows are figures of a database that contradict each other; every database has to give none. Sums
 * of single calls may differ from sums of ticks by the rounding of each call, 1 ns. Times of calls
 * are kept in steps of the clock, times of threads are not. Sums are asked of call_groups, which
 * steps no rows; single calls are looked at one by one, of a large database the first 50,000. Calls
 * that began before the first block of their stream, as in a dump, are in sums and in open_before.
 * Copies of a cluster have no blocks, and so no single calls. While a session is recorded, or
 * its contact lost, sums count what open calls have called, and not the open calls: `running`. */
WITH of_calls AS MATERIALIZED (SELECT session_id, function_id, sum(calls) AS calls, sum(self_ns) AS self_ns,
    sum(before) AS before FROM (SELECT session_id, function_id, calls, self_ns, 0 AS before
        FROM call_groups('session,function') UNION ALL
        SELECT s.session_id, b.function_id, 1, 0, 1 FROM sessions AS s JOIN open_before(s.session_id) AS b)
    GROUP BY 1, 2),
of_paths AS MATERIALIZED (SELECT session_id, function_id, sum(calls) AS calls, sum(self_ns) AS self_ns,
    count(*) AS paths FROM call_paths GROUP BY 1, 2),
of_edges AS MATERIALIZED (SELECT session_id, callee_function_id AS function_id, sum(calls) AS calls,
    max(total_ns) AS longest_ns FROM call_edges GROUP BY 1, 2),
below AS MATERIALIZED (SELECT parent_path_id AS path_id, sum(total_ns) AS total_ns, count(*) AS paths FROM call_paths
    WHERE parent_path_id IS NOT NULL GROUP BY 1),
functions_of AS MATERIALIZED (SELECT f.*, s.mode <> 'profile' AND s.state NOT IN ('recording', 'lost contact') AND EXISTS (SELECT 1 FROM blocks)
    AND s.session_id NOT IN (SELECT session_id FROM policies WHERE mode = 'profile') AS has_calls
    FROM function_stats AS f JOIN sessions AS s USING (session_id)),
running AS MATERIALIZED (SELECT DISTINCT s.session_id, o.function_id FROM sessions AS s JOIN open_now(s.session_id) AS o
    WHERE NOT o.is_counted),
outermost AS MATERIALIZED (SELECT stream_id, sum(duration_ns) AS total_ns FROM call_groups('stream') AS g
    WHERE g.greatest_depth = 0 GROUP BY 1),
lives AS (SELECT t.session_id, t.thread_id, t.ended_ns - t.started_ns + s.clock_step * s.tick_ns_numerator
    / s.tick_ns_denominator + 1 AS lived_ns FROM threads AS t JOIN sessions AS s USING (session_id)),
singles AS MATERIALIZED (SELECT stream_id, call_id, depth, self_ns, duration_ns, flags FROM calls LIMIT 50000),
next AS (SELECT *, lead(depth) OVER (PARTITION BY stream_id ORDER BY call_id) AS next_depth FROM singles)
SELECT 'own time of a call exceeds its duration' AS what, call_id AS of, self_ns AS one, duration_ns AS other FROM singles
WHERE self_ns > duration_ns OR self_ns < 0
UNION ALL
SELECT 'own time of a call without callees is not its duration', call_id, self_ns, duration_ns FROM next
WHERE next_depth <= depth AND self_ns <> duration_ns
UNION ALL
SELECT 'own time of a path exceeds its total', path_id, self_ns, total_ns FROM call_paths
WHERE self_ns > total_ns AND NOT rare
UNION ALL
SELECT 'own time of a path without callees is not its total', path_id, p.self_ns, p.total_ns FROM call_paths AS p
LEFT JOIN below AS b USING (path_id) WHERE b.path_id IS NULL AND p.self_ns <> p.total_ns AND NOT p.rare
AND p.session_id NOT IN (SELECT session_id FROM sessions WHERE folded_paths > 0)
UNION ALL
SELECT 'callees of a path took longer than its calls', path_id, b.total_ns, p.total_ns FROM below AS b
JOIN call_paths AS p USING (path_id) WHERE b.total_ns > p.total_ns + b.paths AND NOT p.rare AND p.calls > 0
AND p.session_id NOT IN (SELECT session_id FROM sessions WHERE folded_paths > 0)
AND p.session_id NOT IN (SELECT session_id FROM gaps WHERE events > 0)
AND (p.session_id, p.function_id) NOT IN (SELECT session_id, function_id FROM running)
AND p.session_id NOT IN (SELECT session_id FROM sessions WHERE state IN ('recording', 'lost contact') AND aggregates_valid_before_block)
UNION ALL
SELECT 'own time of a function exceeds its total', function_id, self_ns, total_ns FROM functions_of
WHERE self_ns > total_ns AND (session_id, function_id) NOT IN (SELECT session_id, function_id FROM running)
UNION ALL
SELECT 'calls of functions and of paths differ', function_id, f.calls, p.calls FROM functions_of AS f
LEFT JOIN of_paths AS p USING (session_id, function_id) WHERE p.calls IS NOT f.calls
UNION ALL
SELECT 'own time of a function and of its paths differ', function_id, f.self_ns, p.self_ns FROM functions_of AS f
LEFT JOIN of_paths AS p USING (session_id, function_id) WHERE abs(f.self_ns - p.self_ns) > p.paths
UNION ALL
SELECT 'calls of a function differ from those by its callers', function_id, f.calls, e.calls FROM functions_of AS f
LEFT JOIN of_edges AS e USING (session_id, function_id) WHERE e.calls IS NOT f.calls
UNION ALL
SELECT 'calls by one caller took longer than all calls', function_id, e.longest_ns, f.total_ns FROM functions_of AS f
JOIN of_edges AS e USING (session_id, function_id) WHERE e.longest_ns > f.total_ns
AND (session_id, function_id) NOT IN (SELECT session_id, function_id FROM running)
UNION ALL
SELECT 'calls of a function differ from its single calls', function_id, f.calls, c.calls FROM functions_of AS f
LEFT JOIN of_calls AS c USING (session_id, function_id) WHERE f.has_calls AND coalesce(c.calls, 0) <> f.calls
UNION ALL
SELECT 'own time of a function differs from its single calls', function_id, f.self_ns, c.self_ns FROM functions_of AS f
JOIN of_calls AS c USING (session_id, function_id) WHERE f.has_calls AND (abs(f.self_ns - c.self_ns) > f.calls AND c.before = 0 OR f.self_ns < c.self_ns - f.calls)
UNION ALL
SELECT 'single calls are of no function', function_id, c.calls, f.calls FROM of_calls AS c
JOIN sessions AS s USING (session_id) LEFT JOIN functions_of AS f USING (session_id, function_id)
WHERE c.calls <> 0 AND f.calls IS NULL AND s.state NOT IN ('recording', 'lost contact')
UNION ALL
SELECT 'calls of a thread took longer than it lived', thread_id, sum(c.total_ns), l.lived_ns FROM outermost AS c
JOIN streams AS x USING (stream_id) JOIN lives AS l USING (thread_id) WHERE x.own_stack
GROUP BY thread_id HAVING sum(c.total_ns) > l.lived_ns
UNION ALL
SELECT 'calls of a function took longer than all threads lived', function_id, f.total_ns, l.lived_ns FROM function_stats AS f
JOIN (SELECT session_id, sum(lived_ns) AS lived_ns, count(*) AS threads, count(lived_ns) AS known FROM lives GROUP BY 1)
AS l USING (session_id) WHERE f.total_ns > l.lived_ns AND l.threads = l.known
AND NOT EXISTS (SELECT 1 FROM streams AS x WHERE x.session_id = f.session_id AND NOT x.own_stack)
UNION ALL
SELECT 'calls or blocks were sent and are not stored', session_id, missing_calls, missing_blocks FROM sessions
WHERE missing_calls <> 0 OR missing_blocks <> 0
UNION ALL
SELECT 'calls of the agent are recorded', function_id, f.calls, 0 FROM function_stats AS f JOIN functions USING (function_id)
JOIN modules AS m USING (module_id) WHERE m.path LIKE '%/libsojourn-%' AND f.calls > 0
UNION ALL
SELECT 'a frame of the agent counts as the program''s', report_id, depth, is_own FROM zombie_frames
WHERE module LIKE '%/libsojourn-%' AND (is_own OR depth = 0)
UNION ALL
SELECT 'a finding names a function of the agent', zombie_id, NULL, NULL FROM zombies AS z JOIN (SELECT function FROM zombie_frames
    WHERE function <> '' GROUP BY 1 HAVING min(module LIKE '%/libsojourn-%')) AS a
ON a.function IN (z.used_in, z.freed_in, z.allocated_in)
