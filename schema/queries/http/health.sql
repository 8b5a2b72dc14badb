-- Statements of http/route_health.c.

-- name: health
SELECT 'ok' AS status, ?1 AS version, (SELECT count(*) FROM sessions) AS sessions, (SELECT count(*)
    FROM sessions WHERE state = 'recording') AS recording_sessions
