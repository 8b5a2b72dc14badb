-- Statements of export/chrome_json.c.

-- part: chrome_json_track
-- Tracks that are not the own stack of a known thread get numbers above every thread id of Linux.
iif(s.own_stack AND t.tid > 0, t.tid, 4194304 + s.stream_id)

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
SELECT 'thread_name', t.name || ', stack ' || s.number, coalesce(p.pid, ?1), {chrome_json_track}
FROM streams AS s
JOIN threads AS t ON t.thread_id = s.thread_id
LEFT JOIN processes AS p ON p.session_id = t.session_id
AND p.number = t.process_number
WHERE s.session_id = ?1
AND NOT s.own_stack

-- name: chrome_json_calls
SELECT f.name, c.start_ns, c.end_ns, coalesce(p.pid, ?1), {chrome_json_track}, c.function_id, c.call_id,
    c.flags, c.ending, c.stream_id, c.depth
FROM calls AS c
LEFT JOIN functions AS f ON f.function_id = c.function_id
LEFT JOIN streams AS s ON s.stream_id = c.stream_id
LEFT JOIN threads AS t ON t.thread_id = c.thread_id
LEFT JOIN processes AS p ON p.session_id = t.session_id AND p.number = t.process_number
WHERE c.session_id = ?1
ORDER BY c.call_id
