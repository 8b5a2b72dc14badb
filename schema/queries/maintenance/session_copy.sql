-- Statements of maintenance/session_copy.c.

-- part: session_copy_device_tags
-- Readers of tags expect an object.
iif(iif(json_valid(d.tags), json_type(d.tags), '') = 'object', d.tags, '{}')

-- name: session_copy_modules
-- a module of a file that was imported before digests were checked: see store/modules.c
CREATE TEMP TABLE moved_modules AS
SELECT sm.module_id AS old_id, 0 AS new_id, sm.first_function_id AS old_first,
    sm.function_count AS functions, 0 AS new_first,
    ({next_function}) + coalesce(sum(sm.function_count) OVER (ORDER BY sm.module_id ROWS BETWEEN UNBOUNDED
    PRECEDING AND 1 PRECEDING), 0) AS free_first
FROM source.modules AS sm
WHERE sm.module_id IN (SELECT module_id FROM source.session_modules WHERE session_id = %lld);
UPDATE main.modules AS t SET functions_digest = randomblob(24)
WHERE length(functions_digest) = 16
AND EXISTS (SELECT 1 FROM temp.moved_modules AS v JOIN source.modules AS s ON s.module_id = v.old_id
    WHERE s.build_id = t.build_id AND s.functions_digest = t.functions_digest
    AND s.function_count <> t.function_count);
INSERT INTO main.modules(build_id, functions_digest, path, machine, first_function_id, function_count)
SELECT s.build_id, s.functions_digest, s.path, s.machine, v.free_first, s.function_count
FROM temp.moved_modules AS v
JOIN source.modules AS s ON s.module_id = v.old_id
WHERE NOT EXISTS (SELECT 1 FROM main.modules AS t WHERE t.build_id = s.build_id
    AND t.functions_digest = s.functions_digest);
UPDATE temp.moved_modules SET (new_id, new_first) = (SELECT t.module_id, t.first_function_id
    FROM source.modules AS s JOIN main.modules AS t ON t.build_id = s.build_id
    AND t.functions_digest = s.functions_digest WHERE s.module_id = old_id)

-- name: session_copy_functions
INSERT OR IGNORE INTO main.functions
SELECT f.function_id - v.old_first + v.new_first, v.new_id, f.offset, f.size_bytes, f.name, f.symbol,
    f.symbol_key, f.source, f.fingerprint
FROM temp.moved_modules AS v
JOIN source.functions AS f ON f.module_id = v.old_id;
INSERT OR IGNORE INTO main.function_lines
SELECT l.function_id - v.old_first + v.new_first, l.file, l.line
FROM temp.moved_modules AS v
JOIN source.function_lines AS l ON l.function_id BETWEEN v.old_first AND v.old_first + v.functions - 1;
INSERT OR IGNORE INTO main.inlined_functions
SELECT i.function_id - v.old_first + v.new_first, i.number, i.depth, i.name, i.call_file, i.call_line
FROM temp.moved_modules AS v
JOIN source.inlined_functions AS i ON i.function_id BETWEEN v.old_first AND v.old_first + v.functions - 1

-- name: session_copy_plans
INSERT OR IGNORE INTO main.hook_plans(module_id, digest)
SELECT v.new_id, p.digest
FROM source.hook_plans AS p
JOIN temp.moved_modules AS v ON v.old_id = p.module_id
WHERE p.hook_plan_id IN (SELECT hook_plan_id FROM source.session_modules WHERE session_id = %lld);
CREATE TEMP TABLE moved_plans AS
SELECT p.hook_plan_id AS old_id, t.hook_plan_id AS new_id, v.old_first, v.new_first
FROM source.hook_plans AS p
JOIN temp.moved_modules AS v ON v.old_id = p.module_id
JOIN main.hook_plans AS t ON t.module_id = v.new_id AND t.digest = p.digest;
INSERT OR IGNORE INTO main.hook_plan_functions
SELECT p.new_id, h.function_id - p.old_first + p.new_first, h.technique, h.reason
FROM temp.moved_plans AS p
JOIN source.hook_plan_functions AS h ON h.hook_plan_id = p.old_id

-- name: session_copy_device
INSERT OR IGNORE INTO main.devices(uuid, name, model, os, machine, agent_version, tags,
    first_seen_realtime_ns, last_seen_realtime_ns)
SELECT d.uuid, d.name, d.model, d.os, d.machine, d.agent_version, {session_copy_device_tags},
    d.first_seen_realtime_ns, d.last_seen_realtime_ns
FROM source.devices AS d
JOIN source.sessions AS s USING (device_id)
WHERE s.session_id = %lld

-- name: session_copy_moved
CREATE TEMP TABLE moved AS
-- A session that the target has a part of keeps its id.
SELECT coalesce((SELECT t.session_id FROM main.sessions AS t WHERE t.uuid = s.uuid),
    (SELECT coalesce(max(session_id), 0) + 1 FROM main.sessions)) AS session_id, (SELECT t.device_id
    FROM main.devices AS t JOIN source.devices AS d ON d.uuid = t.uuid WHERE d.device_id = s.device_id) AS
    device_id, (SELECT coalesce(max(block_id), 0) FROM main.blocks) + 1 - coalesce((SELECT min(block_id)
    FROM source.blocks WHERE stream_id IN (SELECT stream_id FROM source.streams AS x
    WHERE x.session_id = s.session_id)), 1) AS block_offset
FROM source.sessions AS s
WHERE s.session_id = %lld

-- name: session_copy_threads
CREATE TEMP TABLE moved_threads (old_id INTEGER PRIMARY KEY, new_id INTEGER NOT NULL);
INSERT INTO temp.moved_threads
SELECT x.thread_id, coalesce(t.thread_id, (SELECT coalesce(max(thread_id), 0) FROM main.threads)
    + sum(t.thread_id IS NULL) OVER (ORDER BY x.thread_id ROWS UNBOUNDED PRECEDING))
FROM source.threads AS x
LEFT JOIN main.threads AS t ON t.session_id = (SELECT session_id FROM temp.moved) AND t.number = x.number
WHERE x.session_id = %lld

-- name: session_copy_streams
CREATE TEMP TABLE moved_streams (old_id INTEGER PRIMARY KEY, new_id INTEGER NOT NULL CHECK (new_id < 1 << 25));
INSERT INTO temp.moved_streams
SELECT x.stream_id, coalesce(t.stream_id, (SELECT coalesce(max(stream_id), 0) FROM main.streams)
    + sum(t.stream_id IS NULL) OVER (ORDER BY x.stream_id ROWS UNBOUNDED PRECEDING))
FROM source.streams AS x
LEFT JOIN main.streams AS t ON t.session_id = (SELECT session_id FROM temp.moved) AND t.number = x.number
WHERE x.session_id = %lld

-- name: session_copy_reports
CREATE TEMP TABLE moved_reports (old_id INTEGER PRIMARY KEY, new_id INTEGER NOT NULL);
INSERT INTO temp.moved_reports
SELECT report_id, (SELECT coalesce(max(report_id), 0) FROM main.reports) + row_number() OVER
    (ORDER BY report_id)
FROM source.reports AS r
WHERE session_id = %lld
AND NOT EXISTS (SELECT 1 FROM main.reports AS t WHERE t.session_id = (SELECT session_id FROM temp.moved)
    AND t.number = r.number)

-- name: session_copy_zombies
-- Adds the session's reports to findings that the target knows, as storing them does.
INSERT INTO main.zombies(fingerprint, kind, used_in, freed_in, allocated_in, reports,
    first_seen_realtime_ns, last_seen_realtime_ns, state, resolved_realtime_ns, note, class, selector)
SELECT z.fingerprint, z.kind, z.used_in, z.freed_in, z.allocated_in, count(*),
    s.started_realtime_ns + min(r.at_ns), s.started_realtime_ns + max(r.at_ns),
    iif(z.state IN ('resolved', 'reopened'), z.state, 'open'), z.resolved_realtime_ns, z.note, z.class,
    z.selector
FROM source.zombie_reports AS r
JOIN temp.moved_reports AS n ON n.old_id = r.report_id
JOIN source.zombies AS z USING (zombie_id)
JOIN source.sessions AS s ON s.session_id = r.session_id
WHERE r.session_id = %lld
GROUP BY z.zombie_id
ON CONFLICT (fingerprint) DO UPDATE SET reports = reports + excluded.reports,
    first_seen_realtime_ns = min(first_seen_realtime_ns, excluded.first_seen_realtime_ns),
    last_seen_realtime_ns = max(last_seen_realtime_ns, excluded.last_seen_realtime_ns), state = CASE
    WHEN state = 'resolved' AND excluded.last_seen_realtime_ns > resolved_realtime_ns THEN 'reopened'
    ELSE state END;
CREATE TEMP TABLE moved_zombies AS
SELECT z.zombie_id AS old_id, t.zombie_id AS new_id
FROM source.zombies AS z
JOIN main.zombies AS t ON t.fingerprint = z.fingerprint

-- name: session_copy_drop
DROP TABLE IF EXISTS temp.moved;
DROP TABLE IF EXISTS temp.moved_threads;
DROP TABLE IF EXISTS temp.moved_streams;
DROP TABLE IF EXISTS temp.moved_modules;
DROP TABLE IF EXISTS temp.moved_plans;
DROP TABLE IF EXISTS temp.moved_reports;
DROP TABLE IF EXISTS temp.moved_zombies;
DROP TABLE IF EXISTS temp.joined_blocks;
DROP TABLE IF EXISTS temp.replaced_blocks;
DROP TABLE IF EXISTS temp.wrong_ends;
DROP TABLE IF EXISTS temp.new_filtered;
DROP TABLE IF EXISTS temp.wanted

-- name: session_copy_tables
-- Selects the tables that belong to sessions, each with the column that says to which.
SELECT t.name, (SELECT c.name FROM pragma_table_info(t.name) AS c
    WHERE c.name IN ('session_id', 'stream_id', 'report_id')
    ORDER BY c.name = 'session_id' DESC, c.name = 'stream_id' DESC LIMIT 1) AS owner
FROM main.sqlite_schema AS t
WHERE t.type = 'table'
AND EXISTS (SELECT 1 FROM source.sqlite_schema AS o WHERE o.name = t.name)
AND owner IS NOT NULL
ORDER BY CASE t.name WHEN 'sessions' THEN 0 WHEN 'threads' THEN 1 WHEN 'streams' THEN 2 ELSE 3 END, t.name

-- name: session_copy_columns
-- bind: table text
-- row: name text, is_only_key
SELECT name, pk = 1 AND type = 'INTEGER' AND (SELECT sum(pk > 0) FROM pragma_table_info(:table)) = 1
FROM pragma_table_info(:table)
