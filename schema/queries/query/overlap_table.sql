-- Statements of query/overlap_table.c.

-- name: overlap_spans
SELECT c.call_id, c.stream_id, c.start_ns, c.end_ns, c.depth
FROM calls AS c
WHERE c.session_id = ?1
AND c.function_id IN (SELECT ?2 WHERE typeof(?2) = 'integer' UNION SELECT function_id FROM functions
    WHERE name = ?2 AND typeof(?2) = 'text')
AND c.start_ns >= ?3
AND c.start_ns <= ?4
AND c.call_id > ?5
ORDER BY c.%s

-- name: overlap_columns
CREATE TABLE contains(call_id INTEGER, duration_ns INTEGER, inner_calls INTEGER, inner_ns INTEGER,
    first_call_id INTEGER, first_after_ns INTEGER, longest_call_id INTEGER, longest_ns INTEGER,
    session_id HIDDEN, outer_function HIDDEN, inner_function HIDDEN, from_ns HIDDEN, to_ns HIDDEN)
