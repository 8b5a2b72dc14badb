-- Statements of export/chrome_json.c.

-- name: chrome_json_names
SELECT DISTINCT 'process_name', p.executable, p.pid, p.pid
FROM processes AS p
WHERE p.session_id = ?1
AND p.executable <> ''
UNION ALL
SELECT DISTINCT 'thread_name', t.name, coalesce(p.pid, ?1), t.tid
FROM threads AS t
LEFT JOIN processes AS p ON p.session_id = t.session_id
AND p.number = t.process_number
WHERE t.session_id = ?1
AND t.name <> ''
AND t.tid <> 0
UNION ALL
SELECT 'thread_name', t.name || ', stack ' || s.number, coalesce(p.pid, ?1), {track_number}
FROM streams AS s
JOIN threads AS t ON t.thread_id = s.thread_id
LEFT JOIN processes AS p ON p.session_id = t.session_id
AND p.number = t.process_number
WHERE s.session_id = ?1
AND NOT s.own_stack
