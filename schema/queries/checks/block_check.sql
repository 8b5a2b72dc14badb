-- Statements of store/block_check.c.

-- name: block_check_row
SELECT s.session_id, s.uuid, st.stream_id, st.number, b.kind, b.first_event, b.event_count, b.first_call,
    b.call_count, b.lost_calls, b.quarantined IS NOT NULL, b.storage, b.data
FROM "%w".blocks AS b
JOIN "%w".streams AS st USING (stream_id)
JOIN "%w".sessions AS s USING (session_id)
WHERE b.block_id = ?1
