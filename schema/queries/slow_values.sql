-- title: Which values are slow
-- question: With which values of arguments, results and errno did calls of a function take how long?
-- parameter: session = last | the session
-- parameter: function = * | only functions whose name matches this glob
-- column: function | symbol
-- column: which | result, errno, thrown, or the argument: its name as debug data have it, else its number
-- column: value | the value
-- column: note | of a text: cut, unreadable, null
-- column: calls | calls that had it
-- column: total_ns | time of the calls that ended
-- column: p50_ns | half of them took no longer
-- column: max_ns | the longest
-- column: cpu_ns | CPU time of the calls that were measured; NULL: none was
-- column: slowest_call_id | the longest
-- example: sojourn sql --query slow_values --param function=open_file
WITH types AS MATERIALIZED (SELECT function_id, position, max(name) AS name FROM value_types
  WHERE session_id = :session GROUP BY function_id, position),
kept AS MATERIALIZED (
  SELECT DISTINCT session_id, call_id, position, kind, value, note FROM arguments WHERE session_id = :session)
SELECT f.name AS function,
       iif(a.kind IN ('errno', 'thrown'), a.kind, iif(a.position = 0, 'result', coalesce(nullif(t.name, ''), a.position))) AS which,
       a.value, a.note, count(*) AS calls, sum(c.duration_ns) AS total_ns, percentile(c.duration_ns, 50) AS p50_ns,
       max(c.duration_ns) AS max_ns, sum(c.cpu_ns) AS cpu_ns, c.call_id AS slowest_call_id
FROM kept AS a
JOIN calls AS c USING (session_id, call_id)
JOIN functions AS f USING (function_id)
LEFT JOIN types AS t ON t.function_id = c.function_id AND t.position = a.position
WHERE f.name GLOB :function
GROUP BY c.function_id, a.position, a.kind, a.value, a.note
ORDER BY total_ns DESC, f.name, a.position, a.value
