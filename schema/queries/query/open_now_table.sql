-- Statements of query/open_now_table.c.

-- name: open_now_table_last
SELECT b.stream_id, b.block_id, b.storage, b.data
FROM sessions AS e
JOIN streams AS s USING (session_id)
JOIN blocks AS b ON b.block_id = (SELECT l.block_id FROM blocks AS l WHERE l.stream_id = s.stream_id
    AND l.kind = 1 AND l.quarantined IS NULL ORDER BY l.first_event DESC, l.block_id DESC LIMIT 1)
WHERE e.session_id = ?1
AND e.state IN ('recording', 'lost contact')
AND s.ended = 0
ORDER BY s.stream_id

-- name: open_now_table_first
SELECT b.stream_id, b.block_id, b.storage, b.data
FROM streams AS s
JOIN blocks AS b ON b.block_id = (SELECT f.block_id FROM blocks AS f WHERE f.stream_id = s.stream_id
    AND f.kind = 1 AND f.quarantined IS NULL ORDER BY f.first_event, f.block_id LIMIT 1)
WHERE s.session_id = ?1
AND b.open_depth > 0
ORDER BY s.stream_id
