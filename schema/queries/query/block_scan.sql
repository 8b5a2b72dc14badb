-- Statements of query/block_scan.c.

-- name: block_scan_blocks
-- Only columns that the index blocks_by_call contains.
SELECT block_id, first_call, call_count, first_ticks, last_ticks, max_duration_ticks, quarantined, max_depth,
    lost_calls
FROM blocks
WHERE stream_id = ?1
AND kind = 1
AND first_call BETWEEN ?2 AND ?3
AND call_count > 0
ORDER BY first_call

-- name: block_scan_bounds
-- First call of the first block that may hold call ?2 or time ?3, and of the last by ?4. Without
-- INDEXED BY, SQLite computes min() and max() from blocks_by_call, through every block of the stream.
SELECT (SELECT max(first_call) FROM blocks WHERE stream_id = ?1 AND kind = 1 AND first_call <= ?2
    AND call_count > 0), (SELECT min(first_call) FROM blocks INDEXED BY blocks_by_time WHERE stream_id = ?1
    AND kind = 1 AND first_ticks = (SELECT first_ticks FROM blocks INDEXED BY blocks_by_time
    WHERE stream_id = ?1 AND kind = 1 AND call_count > 0 AND first_ticks <= ?3
    ORDER BY first_ticks DESC LIMIT 1)), (SELECT max(first_call) FROM blocks INDEXED BY blocks_by_time
    WHERE stream_id = ?1 AND kind = 1 AND first_ticks = (SELECT first_ticks
    FROM blocks INDEXED BY blocks_by_time WHERE stream_id = ?1 AND kind = 1 AND first_ticks <= ?4
    ORDER BY first_ticks DESC LIMIT 1))

-- name: block_scan_outlasting
-- The lists of late exits from the block on that runs just before time ?2, and that block's first call.
-- Earlier blocks ended before that time.
WITH running AS MATERIALIZED (SELECT coalesce((SELECT min(first_call) FROM blocks INDEXED BY blocks_by_time
    WHERE stream_id = ?1 AND kind = 1 AND first_ticks = (SELECT first_ticks
    FROM blocks INDEXED BY blocks_by_time WHERE stream_id = ?1 AND kind = 1 AND first_ticks < ?2
    ORDER BY first_ticks DESC LIMIT 1)), 0) AS first)
SELECT r.first, b.late, b.first_ticks
FROM running AS r
LEFT JOIN blocks AS b INDEXED BY blocks_late ON b.stream_id = ?1 AND b.kind = 1 AND b.late IS NOT NULL
    AND b.first_call >= r.first AND b.late_first_call < r.first

-- name: block_scan_count
SELECT count(*)
FROM streams
JOIN blocks USING (stream_id)
WHERE stream_id BETWEEN ?1 AND ?2
AND session_id BETWEEN ?3 AND ?4
AND (?5 = 0 OR thread_id = ?6)
AND kind = 1
AND call_count > 0
AND last_ticks >= ?7
AND first_ticks <= ?8
