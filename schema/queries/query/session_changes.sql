-- Statements of query/session_changes.c.

-- name: session_changes_watched
{session_select}
WHERE s.state = 'recording' OR s.session_id IN (SELECT session_id FROM sessions
    ORDER BY session_id DESC LIMIT ?1) OR s.session_id IN (SELECT CAST(value AS INTEGER) FROM json_each(?2))
ORDER BY s.session_id DESC
LIMIT ?3
