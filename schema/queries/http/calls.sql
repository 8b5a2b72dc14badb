-- Statements of http/calls_picture.c.

-- part: calls_call_columns
call_id, function_id, depth, start_ns, end_ns, self_ns, ending = 'unwound', flags, ending = 'open',
    caller_function_id = function_id

-- name: calls_touched
-- Counts calls of the blocks that the window overlaps, and finds the largest number of levels in one. ?1 session, ?2 stream, ?3 from, ?4 to.
WITH s AS (SELECT started_ticks AS zero, tick_ns_numerator AS n, tick_ns_denominator AS d FROM sessions
    WHERE session_id = ?1)
SELECT coalesce(sum(b.call_count), 0) AS calls, coalesce(max(b.max_depth), 0) AS levels
FROM blocks AS b, s
WHERE b.stream_id = ?2
AND b.kind = 1
AND (b.last_ticks - s.zero) * 1.0 * s.n / s.d >= ?3
AND (b.first_ticks - s.zero) * 1.0 * s.n / s.d <= ?4

-- name: calls_before
-- Finds the last call that began before the window.
WITH s AS (SELECT started_ticks AS zero, tick_ns_numerator AS n, tick_ns_denominator AS d FROM sessions
    WHERE session_id = ?1), b AS (SELECT first_call, call_count FROM blocks, s WHERE stream_id = ?2
    AND kind = 1 AND call_count > 0 AND (first_ticks - s.zero) * 1.0 * s.n / s.d < ?3
    ORDER BY first_event DESC LIMIT 1)
SELECT max(c.call_id)
FROM b
JOIN calls AS c
WHERE c.call_id BETWEEN (?2 << 38) + b.first_call AND (?2 << 38) + b.first_call + b.call_count - 1
AND c.start_ns < ?3

-- name: calls_open
-- ?1: the call that calls_before found; ?2: from.
SELECT {calls_call_columns}
FROM (SELECT call_id, function_id, depth, start_ns, end_ns, self_ns, ending, flags,
    caller_function_id FROM ancestors(?1) UNION ALL SELECT call_id, function_id, depth, start_ns, end_ns,
    self_ns, ending, flags, caller_function_id FROM calls
    WHERE call_id = ?1)
WHERE end_ns IS NULL OR end_ns >= ?2
ORDER BY depth

-- name: calls_begun
-- ?5 and ?6: the first and the last depth that is wanted.
SELECT {calls_call_columns}
FROM calls
WHERE session_id = ?1
AND stream_id = ?2
AND start_ns >= ?3
AND start_ns <= ?4
AND depth BETWEEN ?5 AND ?6

-- name: calls_function
-- ?1: the function; ?2: the session.
SELECT name, {calls_counted(?2, ?1)} AS is_counting
FROM functions
WHERE function_id = ?1
