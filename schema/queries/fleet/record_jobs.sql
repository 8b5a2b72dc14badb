-- Statements of fleet/record_jobs.c.

-- name: record_jobs_session
SELECT stored_blocks > 0, {session_has_come}
FROM sessions
WHERE lower(hex(uuid)) = ?1
