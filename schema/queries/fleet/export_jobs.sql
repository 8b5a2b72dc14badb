-- Statements of fleet/export_jobs.c.

-- name: export_jobs_session
SELECT session_id, {session_has_come}
FROM sessions
WHERE device_id = ?1
AND (?2 = 'last' OR (length(?2) >= 4 AND ?2 NOT GLOB '*[^0-9a-fA-F]*' AND hex(uuid) LIKE ?2 || '%'))
ORDER BY session_id DESC
LIMIT 2
