-- Statements of cli/thread_sums.c.

-- part: thread_sums_sums
sum(p.inside_ns), CAST(sum(1.0 * p.cpu_ns * p.inside_ns / p.length_ns) AS INTEGER),
    CAST(sum(1.0 * p.ready_ns * p.inside_ns / p.length_ns) AS INTEGER)

-- part: thread_sums_chosen_parts
-- The steps of the chosen threads, with the part of each step inside a window.
WITH chosen AS MATERIALIZED (SELECT DISTINCT t.number AS thread_number, w.value ->> 1 AS from_ns,
    w.value ->> 2 AS to_ns FROM json_each(?11) AS w JOIN streams AS s ON s.stream_id = w.value ->> 0
    JOIN threads AS t USING (thread_id) UNION ALL SELECT number, -9223372036854775807, 9223372036854775807
    FROM threads WHERE session_id = ?1 AND ?11 IS NULL), parts AS (SELECT x.thread_number, x.cpu_ns,
    x.ready_ns, x.to_ns - x.from_ns AS length_ns, min(x.to_ns, c.to_ns) - max(x.from_ns,
    c.from_ns) AS inside_ns FROM thread_times AS x CROSS JOIN chosen AS c USING (thread_number)
    WHERE x.session_id = ?1 AND x.reported_ns >= (SELECT min(from_ns) FROM chosen) AND x.from_ns < c.to_ns
    AND x.to_ns > c.from_ns AND x.to_ns > x.from_ns)

-- name: thread_sums_whole
-- The sums of a whole session: the totals of its processes' last reports.
WITH last AS (SELECT max(number) AS number FROM reports WHERE session_id = ?1 AND monitor = 'threads'
    AND kind = 'times' GROUP BY process_number)
SELECT sum(r.payload ->> '$.watched_ns'), sum(r.payload ->> '$.cpu_ns'), sum(r.payload ->> '$.ready_ns')
FROM last
JOIN reports AS r ON r.session_id = ?1 AND r.number = last.number

-- name: thread_sums_chosen
{thread_sums_chosen_parts}
SELECT {thread_sums_sums}
FROM parts AS p

-- name: thread_sums_threads
{thread_sums_chosen_parts}
SELECT {thread_sums_sums}, t.number, t.tid, t.name, count(*) OVER ()
FROM parts AS p
JOIN threads AS t ON t.session_id = ?1 AND t.number = p.thread_number
GROUP BY p.thread_number
ORDER BY 2 DESC, t.number
LIMIT ?2
