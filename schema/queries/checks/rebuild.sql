-- Statements of store/rebuild.c.

-- name: rebuild_forget
-- %1$lld: session_id
UPDATE forwarded_sessions SET content = 'rebuilt'
WHERE content <> ''
AND session_uuid = (SELECT uuid FROM sessions WHERE session_id = %1$lld);
DELETE FROM slow_calls
WHERE session_id = %1$lld;
DELETE FROM call_edges
WHERE session_id = %1$lld;
DELETE FROM function_stats
WHERE session_id = %1$lld;
DELETE FROM call_paths
WHERE session_id = %1$lld;
DELETE FROM timeline
WHERE stream_id IN (SELECT stream_id FROM streams WHERE session_id = %1$lld);
UPDATE streams SET calls = 0, first_enter_ns = NULL, last_leave_ns = NULL, max_depth = 0
WHERE session_id = %1$lld;
UPDATE sessions SET stored_blocks = 0, stored_bytes = 0, stored_calls = 0, stored_events = 0,
    folded_paths = 0, folded_calls = 0, (lost_calls, lost_events) = (SELECT coalesce(sum(calls), 0),
    coalesce(sum(events), 0) FROM gaps WHERE session_id = %1$lld AND block_id IS NULL),
    aggregates_valid_before_block = (SELECT min(block_id) FROM streams JOIN blocks USING (stream_id)
    WHERE session_id = %1$lld)
WHERE session_id = %1$lld

-- name: rebuild_has_end
-- ?1: session_id
SELECT sent_calls IS NOT NULL
FROM sessions
WHERE session_id = ?1

-- name: rebuild_sent
-- ?1: session_id, ?2: blocks that the store has added
UPDATE sessions SET sent_blocks = sent_blocks + ?2
WHERE session_id = ?1
