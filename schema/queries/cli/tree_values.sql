-- Statements of cli/tree_values.c.

-- name: tree_values
SELECT call_id, position, kind, CASE typeof(value) WHEN 'text' THEN quote(value)
    WHEN 'blob' THEN quote(value) WHEN 'null' THEN coalesce(note, 'NULL') ELSE value END || iif(note = 'cut',
    '...', '')
FROM arguments
WHERE session_id = ?1
ORDER BY call_id, position, kind
