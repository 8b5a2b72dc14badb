-- Statements of cli/unrecorded_code.c. ?1 is the session.

-- name: unrecorded_code_samples
SELECT json_extract(payload, '$.sampled_ns'), json_extract(payload, '$.generated_ns')
FROM reports
WHERE session_id = ?1
AND monitor = 'code'
AND kind = 'samples'
ORDER BY number DESC
LIMIT 1

-- name: unrecorded_code_files
-- The files with the most time first.
SELECT json_extract(f.value, '$.path'), json_extract(f.value, '$.ns') AS ns
FROM reports r, json_each(r.payload, '$.files') f
WHERE r.session_id = ?1
AND r.monitor = 'code'
AND r.kind = 'samples'
ORDER BY ns DESC

-- name: unrecorded_code_recorded
-- The files with recorded functions.
SELECT DISTINCT coalesce(s.path, m.path)
FROM session_modules s
JOIN modules m USING (module_id)
WHERE s.session_id = ?1
AND s.hooked_count > 0

-- name: unrecorded_code_command
SELECT command
FROM sessions
WHERE session_id = ?1
