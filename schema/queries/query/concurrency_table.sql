-- Statements of query/concurrency_table.c.

-- name: concurrency_spans
SELECT c.%s AS at
FROM calls AS c
WHERE c.session_id = ?1
AND c.function_id IN (SELECT ?2 WHERE typeof(?2) = 'integer' UNION SELECT function_id FROM functions
    WHERE name = ?2 AND typeof(?2) = 'text')
AND c.start_ns >= ?3
AND c.start_ns <= ?4
UNION ALL
SELECT c.%s
FROM calls AS c
WHERE c.session_id = ?1
AND c.depth = 0
AND ?2 IS NULL
AND c.start_ns >= ?3
AND c.start_ns <= ?4
ORDER BY at
