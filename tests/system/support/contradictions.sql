/* Rows are figures of a database that contradict each other; every database has to give none. Sums
 * of single calls may differ from sums of ticks by the rounding of each call, 1 ns. Times of calls
 * are kept in steps of the clock, times of threads are not. Single calls are summed by call_groups,
 * which walks over the stored blocks: GROUP BY over `calls` sorts every call. */
WITH c AS MATERIALIZED (SELECT session_id, function_id, sum(calls) AS calls, sum(self_ns) AS self_ns
FROM call_groups('session,function') GROUP BY 1, 2)
SELECT 'own time of a call exceeds its duration' AS what, call_id AS of, self_ns, duration_ns FROM calls
WHERE self_ns > duration_ns OR self_ns < 0
UNION ALL
SELECT 'own time of a path exceeds its total', path_id, self_ns, total_ns FROM call_paths
WHERE self_ns > total_ns AND NOT rare
UNION ALL
SELECT 'own time of a function exceeds its total', function_id, self_ns, total_ns FROM function_stats
WHERE self_ns > total_ns
UNION ALL
SELECT 'callees of a path took longer than its calls', p.path_id, sum(c.total_ns), p.total_ns FROM call_paths AS c
JOIN call_paths AS p ON p.path_id = c.parent_path_id WHERE NOT p.rare AND p.calls > 0
AND p.session_id NOT IN (SELECT session_id FROM gaps WHERE events > 0)
GROUP BY p.path_id HAVING sum(c.total_ns) > p.total_ns + count(*)
UNION ALL
SELECT 'calls of functions and of paths differ', function_id, f.calls, p.calls FROM function_stats AS f
LEFT JOIN (SELECT session_id, function_id, sum(calls) AS calls FROM call_paths GROUP BY 1, 2) AS p
USING (session_id, function_id) WHERE p.calls IS NOT f.calls
UNION ALL
SELECT 'own time of a function and of its paths differ', function_id, f.self_ns, p.self_ns FROM function_stats AS f
LEFT JOIN (SELECT session_id, function_id, sum(self_ns) AS self_ns, count(*) AS paths FROM call_paths GROUP BY 1, 2)
AS p USING (session_id, function_id) WHERE abs(f.self_ns - p.self_ns) > p.paths
UNION ALL
SELECT 'calls of a function differ from its single calls', function_id, f.calls, c.calls FROM function_stats AS f
JOIN sessions AS s USING (session_id) LEFT JOIN c USING (session_id, function_id) WHERE s.mode <> 'profile' AND f.calls <> 0 AND c.calls IS NOT f.calls
UNION ALL
SELECT 'own time of a function differs from its single calls', function_id, f.self_ns, c.self_ns FROM function_stats
AS f JOIN c USING (session_id, function_id) WHERE abs(f.self_ns - c.self_ns) > f.calls
UNION ALL
SELECT 'calls of a thread took longer than it lived', thread_id, c.total_ns, t.ended_ns - t.started_ns FROM threads AS t
JOIN sessions AS s USING (session_id) JOIN (SELECT thread_id, sum(duration_ns) AS total_ns FROM calls JOIN streams USING (stream_id, thread_id)
WHERE own_stack AND depth = 0 GROUP BY 1) AS c USING (thread_id) WHERE c.total_ns >
t.ended_ns - t.started_ns + s.clock_step * s.tick_ns_numerator / s.tick_ns_denominator + 1
