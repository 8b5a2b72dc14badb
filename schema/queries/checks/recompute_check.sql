-- Statements of store/recompute_check.c.

-- name: recompute_check_is_comparable
-- Selects a row if a session's aggregates must follow from its blocks, by the rules of this version.
SELECT 1
FROM main.sessions AS s
WHERE session_id = ?1
AND state <> 'removing'
AND aggregates_valid_before_block IS NULL
AND quarantine_reason IS NULL
AND stored_blocks > 0
AND NOT EXISTS (SELECT 1 FROM profiles AS p WHERE p.session_id = s.session_id)
AND EXISTS (SELECT 1 FROM main.timeline JOIN main.streams USING (stream_id) WHERE session_id = ?1)
AND NOT EXISTS (SELECT 1 FROM main.streams JOIN blocks USING (stream_id) WHERE session_id = ?1
    AND quarantined IS NOT NULL)
