-- Statements of export/ctf.c.

-- name: ctf_losses
SELECT start_ns, end_ns, calls
FROM gaps
WHERE session_id = ?1
AND calls > 0
AND coalesce(stream_id, 0) = ?2
ORDER BY start_ns, gap_id
