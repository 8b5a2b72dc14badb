-- The mirror of a cluster: which sessions have changed there, and which rows here are out of date (cluster_mirror.c).
-- Each text is several statements.

-- name: list_changes
-- The answer has the newest version of each session.
DELETE FROM temp.changed; DELETE FROM temp.gone; DELETE FROM temp.answer_size;INSERT INTO temp.answer_size
    SELECT count(*) FROM temp.answer;INSERT INTO temp.changed SELECT a.session, a.version, 0 FROM
    temp.answer AS a LEFT JOIN temp.mirrored AS m ON m.session = a.session WHERE m.version IS NOT
    a.version;INSERT INTO temp.gone SELECT session_id, lower(hex(uuid)) AS session FROM sessions WHERE
    session IN (SELECT session FROM temp.changed) OR session NOT IN (SELECT session FROM temp.answer)

-- name: forget_gone
-- No other session uses the modules of a session.
DELETE FROM temp.modules_gone;INSERT INTO temp.modules_gone SELECT module_id FROM session_modules WHERE
    number > 0 AND session_id IN (SELECT session_id FROM temp.gone);DELETE FROM sessions WHERE session_id IN
    (SELECT session_id FROM temp.gone);DELETE FROM functions WHERE module_id IN (SELECT module_id FROM
    temp.modules_gone);DELETE FROM hook_plans WHERE module_id IN (SELECT module_id FROM
    temp.modules_gone);DELETE FROM modules WHERE module_id IN (SELECT module_id FROM
    temp.modules_gone);DELETE FROM temp.mirrored WHERE session IN (SELECT session FROM temp.gone)

-- name: create_mirror
CREATE TEMP TABLE mirrored(session TEXT PRIMARY KEY, version TEXT);CREATE TEMP TABLE changed(session TEXT
    PRIMARY KEY, version TEXT, taken INTEGER);CREATE TEMP TABLE answer_size(sessions INTEGER);CREATE TEMP
    TABLE gone(session_id INTEGER PRIMARY KEY, session TEXT);CREATE TEMP TABLE modules_gone(module_id
    INTEGER PRIMARY KEY)
