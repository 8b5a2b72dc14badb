-- Statements of maintenance/block_move.c.

-- name: block_move_note_unneeded
UPDATE block_files SET is_needed = 0
WHERE session_uuid = (SELECT uuid FROM sessions WHERE session_id = ?1)
AND is_needed
AND NOT EXISTS (SELECT 1 FROM streams JOIN blocks USING (stream_id) WHERE session_id = ?1
    AND storage GLOB 'file:' || file_id || ':*')

-- name: block_move_note_file
INSERT INTO block_files(place_id, session_uuid, name, is_needed)
SELECT ?2, uuid, lower(hex(uuid)) || '-' || lower(hex(randomblob(8))) || '.blocks', 0
FROM sessions
WHERE session_id = ?1
RETURNING file_id, name
