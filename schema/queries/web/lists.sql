-- Names for the controls of pages.

-- name: thread_names
-- row: thread_id, name text, tid
SELECT thread_id, name, tid FROM threads WHERE session_id = :session

-- name: threads_to_select
-- row: thread_id, name text, tid, is_main
SELECT thread_id, coalesce(nullif(name, ''), 'thread ' || number) AS name, tid, is_main
FROM threads WHERE session_id = :session ORDER BY is_main DESC, number LIMIT 500

-- name: marks_to_select
-- row: name text, times
SELECT name, count(*) AS times FROM marks
WHERE session_id = :session AND NOT is_end GROUP BY name ORDER BY min(at_ns) LIMIT 500

-- name: sessions_with_text
-- bind: text text
-- row: session_id, title text, device text
SELECT s.session_id, coalesce(nullif(s.name, ''), s.command) AS title, d.name AS device
FROM sessions s JOIN devices d USING (device_id)
WHERE instr(lower(s.name || ' ' || s.command || ' ' || d.name), lower(:text)) > 0
ORDER BY s.session_id DESC LIMIT 8

-- name: functions_with_text
-- bind: text text
-- row: function_id, name text
SELECT f.function_id, f.name FROM function_stats s JOIN functions f USING (function_id)
WHERE s.session_id = :session AND instr(lower(f.name), lower(:text)) > 0
ORDER BY length(f.name), s.self_ns DESC LIMIT 12

-- name: tables
-- row: table text, columns text
SELECT t.name AS "table", group_concat(c.name, ' ') AS columns
FROM pragma_table_list t JOIN pragma_table_xinfo(t.name) c
WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite_%' GROUP BY t.name ORDER BY t.name
