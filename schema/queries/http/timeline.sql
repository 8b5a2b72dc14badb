-- Statements of http/route_timeline.c.

-- name: timeline_steps
-- ?6: a JSON array of stream ids, or NULL for all streams.
WITH RECURSIVE levels(stream_id, level) AS ( SELECT s.stream_id, (SELECT max(t.level) FROM timeline AS t
    WHERE t.stream_id = s.stream_id) FROM streams AS s WHERE s.session_id = ?1
    AND (?6 IS NULL OR s.stream_id IN (SELECT value FROM json_each(?6))) UNION ALL SELECT l.stream_id,
    (SELECT max(t.level) FROM timeline AS t WHERE t.stream_id = l.stream_id AND t.level < l.level)
    FROM levels AS l WHERE l.level IS NOT NULL), counted AS (SELECT l.stream_id, l.level, (SELECT count(*)
    FROM (SELECT 1 FROM timeline AS t WHERE t.stream_id = l.stream_id AND t.level = l.level
    AND t.end_ns >= ?2 AND t.start_ns <= ?3 LIMIT (?4 + 1) / 2)) AS steps FROM levels AS l
    WHERE l.level IS NOT NULL), chosen AS MATERIALIZED (SELECT stream_id,
    coalesce(max(iif(steps >= (?4 + 1) / 2, level, NULL)), min(iif(steps > 0, level, NULL))) AS level
    FROM counted GROUP BY stream_id), picked AS NOT MATERIALIZED (SELECT t.* FROM chosen CROSS
    JOIN timeline AS t USING (stream_id, level) WHERE t.end_ns >= ?2 AND t.start_ns <= ?3),
    span AS MATERIALIZED (SELECT max(min(start_ns), ?2) AS from_ns,
    max(min(max(end_ns), ?3) - max(min(start_ns), ?2), 0) + 1 AS length_ns FROM picked),
    merged AS (SELECT stream_id, level, min(number) AS number, count(*) AS steps, min(start_ns) AS start_ns,
    max(end_ns) AS end_ns, sum(calls) AS calls, max(max_depth) AS max_depth FROM span CROSS JOIN picked
    GROUP BY stream_id, level, min(CAST(max(start_ns - from_ns, 0) * 1.0 * ?4 / length_ns AS INTEGER),
    ?4 - 1))
SELECT m.stream_id, th.number AS thread_number, th.name AS thread_name, m.level, m.steps, m.start_ns,
    m.end_ns, m.calls, m.max_depth, head.path_id, p.function_id, f.name AS function
FROM merged AS m
JOIN timeline AS head USING (stream_id, level, number)
JOIN streams AS s ON s.stream_id = m.stream_id
LEFT JOIN threads AS th ON th.thread_id = s.thread_id
LEFT JOIN call_paths AS p ON p.path_id = head.path_id
LEFT JOIN functions AS f ON f.function_id = p.function_id
ORDER BY m.stream_id, m.start_ns
LIMIT ?5

-- name: timeline_paths
-- ?1: a JSON array of path ids.
WITH RECURSIVE up(path_id) AS (SELECT CAST(value AS INTEGER) FROM json_each(?1) UNION SELECT p.parent_path_id
    FROM up JOIN call_paths AS p ON p.path_id = up.path_id WHERE p.parent_path_id IS NOT NULL)
SELECT p.path_id, p.parent_path_id, p.depth, p.function_id, f.name AS function
FROM up
JOIN call_paths AS p ON p.path_id = up.path_id
LEFT JOIN functions AS f ON f.function_id = p.function_id
LIMIT ?2
