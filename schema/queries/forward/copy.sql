-- Copies sums of a cluster to this database (cluster_copy.c). Questions to the cluster, which are in ClickHouse's
-- SQL, end in _question; in them, %s stands for the sessions. Each answer is in temp.answer. In the statements, ?1 is
-- the session_id. Keys have 64 bits, and SQLite's numbers are signed.

-- name: lab_sessions_question
SELECT session, device, device_name, device_model, device_os, device_build, machine, device_tags, name,
    command, mode, state, cause, tags, build_id, started_realtime_ns, ended_realtime_ns, stored_calls,
    stored_events, lost_calls, lost_events, folded_paths, folded_calls, sent_calls, device_lost_calls,
    traced_cpu_ns, program FROM (SELECT * FROM sessions%s) AS s ANY LEFT JOIN (SELECT session, build_id,
    module AS program FROM coverage%s) AS c USING session, build_id

-- name: add_devices
INSERT INTO devices(uuid, name, model, os, machine, tags, build, first_seen_realtime_ns,
    last_seen_realtime_ns) SELECT from_hex(device), device_name, device_model, device_os, machine,
    device_tags, device_build, min(started_realtime_ns), max(started_realtime_ns) FROM temp.answer GROUP BY
    device ON CONFLICT (uuid) DO UPDATE SET name = excluded.name, model = excluded.model, os = excluded.os,
    tags = excluded.tags, build = excluded.build, last_seen_realtime_ns = max(last_seen_realtime_ns,
    excluded.last_seen_realtime_ns)

-- name: create_ids
CREATE TEMP TABLE IF NOT EXISTS ids(session_id INTEGER PRIMARY KEY, uuid BLOB UNIQUE)

-- name: add_ids
-- A session keeps its id while the database is open, and no other session gets it.
INSERT OR IGNORE INTO temp.ids(uuid) SELECT from_hex(session) FROM temp.answer ORDER BY started_realtime_ns,
    session

-- name: add_sessions
INSERT INTO sessions(session_id, uuid, device_id, name, command, mode, state, cause, tags,
    started_realtime_ns, ended_realtime_ns, started_ticks, tick_ns_numerator, tick_ns_denominator,
    stored_calls, stored_events, lost_calls, lost_events, folded_paths, folded_calls, sent_calls,
    device_lost_calls, traced_cpu_ns) SELECT i.session_id, i.uuid, d.device_id, a.name, a.command, a.mode,
    a.state, a.cause, a.tags, a.started_realtime_ns, a.ended_realtime_ns, 0, 1, 1, a.stored_calls,
    a.stored_events, a.lost_calls, a.lost_events, a.folded_paths, a.folded_calls, a.sent_calls,
    a.device_lost_calls, a.traced_cpu_ns FROM temp.answer AS a JOIN devices AS d ON d.uuid =
    from_hex(a.device) JOIN temp.ids AS i ON i.uuid = from_hex(a.session) ORDER BY a.started_realtime_ns,
    a.session

-- name: add_processes
INSERT INTO processes(session_id, number, pid, executable, command) SELECT s.session_id, 1, 0, a.program,
    a.command FROM temp.answer AS a JOIN sessions AS s ON s.uuid = from_hex(a.session)

-- name: add_programs
-- Stores the build of each session's program for sets and filters, until the sums are copied.
INSERT OR IGNORE INTO modules(build_id, functions_digest, path, first_function_id, function_count) SELECT
    DISTINCT from_hex(build_id), CAST(program AS BLOB), program, 0, 0 FROM temp.answer WHERE build_id <> ''

-- name: add_program_plans
INSERT OR IGNORE INTO hook_plans(module_id, digest) SELECT module_id, x'' FROM modules WHERE
    first_function_id = 0

-- name: add_program_modules
INSERT INTO session_modules SELECT s.session_id, 0, m.module_id, h.hook_plan_id, 0, 0, 0, a.program FROM
    temp.answer AS a JOIN sessions AS s ON s.uuid = from_hex(a.session) JOIN modules AS m ON m.build_id =
    from_hex(a.build_id) AND m.functions_digest = CAST(a.program AS BLOB) AND m.first_function_id = 0 JOIN
    hook_plans AS h USING (module_id)

-- name: lab_marks_question
SELECT session, number, name, is_end, at_ns, thread_number, source FROM marks%s

-- name: add_marks
INSERT INTO marks(session_id, number, name, is_end, at_ns, thread_number, source) SELECT s.session_id,
    a.number, a.name, a.is_end, a.at_ns, coalesce(a.thread_number, 0), a.source FROM temp.answer AS a JOIN
    sessions AS s ON s.uuid = from_hex(a.session) ORDER BY a.source, a.number

-- name: functions_question
SELECT toInt64(function) AS key, toInt64(symbol_key) AS symbol_key, name, build_id, toInt64(offset) AS
    place, module FROM functions WHERE session = %s

-- name: create_keys
CREATE TEMP TABLE IF NOT EXISTS keys(key INTEGER, name TEXT, function_id INTEGER, PRIMARY KEY (key, name))
    WITHOUT ROWID

-- name: clear_keys
DELETE FROM temp.keys

-- name: add_keys
INSERT INTO temp.keys SELECT key, name, (SELECT max(1, coalesce(max(first_function_id + function_count), 1))
    FROM modules) - 1 + row_number() OVER (ORDER BY build_id, module, place, name, key) FROM temp.answer

-- name: add_modules
INSERT INTO modules(build_id, functions_digest, path, first_function_id, function_count) SELECT
    from_hex(a.build_id), CAST((SELECT lower(hex(uuid)) FROM sessions WHERE session_id = ?1) || a.module AS
    BLOB), a.module, min(k.function_id), count(*) FROM temp.answer AS a JOIN temp.keys AS k USING (key,
    name) GROUP BY a.build_id, a.module ORDER BY min(k.function_id)

-- name: add_functions
INSERT INTO functions SELECT k.function_id, m.module_id, a.place, 0, a.name, iif(a.name LIKE '%+' ||
    printf('0x%x', a.place), '', a.name), a.symbol_key, '', NULL FROM temp.answer AS a JOIN temp.keys AS k
    USING (key, name) JOIN modules AS m ON k.function_id BETWEEN m.first_function_id AND m.first_function_id
    + m.function_count - 1

-- name: add_plans
INSERT INTO hook_plans(module_id, digest) SELECT module_id, x'' FROM modules WHERE first_function_id >=
    (SELECT min(function_id) FROM temp.keys)

-- name: add_session_modules
INSERT INTO session_modules SELECT ?1, row_number() OVER (ORDER BY m.module_id), m.module_id,
    h.hook_plan_id, m.first_function_id - (SELECT min(function_id) FROM temp.keys), m.function_count,
    m.function_count, m.path FROM modules AS m JOIN hook_plans AS h USING (module_id) WHERE
    m.first_function_id >= (SELECT min(function_id) FROM temp.keys)

-- name: function_stats_question
SELECT toInt64(function) AS key, name, calls, total_ns, self_ns, min_ns, max_ns, unwound, untrusted,
    untimed_calls, sampled_calls, error_ns, bins, counts FROM function_stats WHERE session = %s

-- name: add_function_stats
INSERT INTO function_stats(session_id, function_id, calls, total_ns, self_ns, min_ns, max_ns, unwound,
    untrusted, untimed_calls, sampled_calls, error_ns, histogram) SELECT ?1, k.function_id, a.calls,
    a.total_ns, a.self_ns, a.min_ns, a.max_ns, a.unwound, a.untrusted, nullif(a.untimed_calls, 0),
    a.sampled_calls, a.error_ns, histogram_of(a.bins, a.counts) FROM temp.answer AS a JOIN temp.keys AS k
    USING (key, name)

-- name: create_unknown
-- Sessions whose rows do not say whether their times are estimates.
CREATE TEMP TABLE IF NOT EXISTS unknown(session_id INTEGER PRIMARY KEY)

-- name: clear_unknown
DELETE FROM temp.unknown WHERE session_id = ?1

-- name: add_unknown
INSERT INTO temp.unknown SELECT ?1 FROM temp.answer WHERE untimed_calls IS NULL LIMIT 1

-- name: call_edges_question
SELECT toInt64(caller) AS caller, caller_name, toInt64(callee) AS callee, callee_name, calls, total_ns,
    self_ns FROM call_edges WHERE session = %s

-- name: add_call_edges
INSERT INTO call_edges SELECT ?1, coalesce(c.function_id, 0), k.function_id, a.calls, a.total_ns, a.self_ns
    FROM temp.answer AS a JOIN temp.keys AS k ON k.key = a.callee AND k.name = a.callee_name LEFT JOIN
    temp.keys AS c ON c.key = a.caller AND c.name = a.caller_name

-- name: call_paths_question
SELECT toInt64(path) AS path, toInt64(parent_path) AS parent_path, toInt64(function) AS key, depth,
    recursive, rare, calls, total_ns, self_ns, min_ns, max_ns, unwound, untrusted, bins, counts FROM
    call_paths WHERE session = %s

-- name: create_nodes
CREATE TEMP TABLE IF NOT EXISTS nodes(row INTEGER PRIMARY KEY, path INTEGER, depth INTEGER, node INTEGER)

-- name: index_nodes
CREATE INDEX IF NOT EXISTS temp.nodes_by_path ON nodes (path, depth, node)

-- name: clear_nodes
DELETE FROM temp.nodes

-- name: add_nodes
INSERT INTO temp.nodes SELECT rowid, path, depth, row_number() OVER (ORDER BY depth, path, rowid) FROM
    temp.answer

-- name: add_call_paths
INSERT INTO call_paths(path_id, session_id, parent_path_id, function_id, depth, recursive, calls, total_ns,
    self_ns, min_ns, max_ns, unwound, untrusted, histogram, state, rare) SELECT ?1 << 32 | n.node, ?1,
    (SELECT ?1 << 32 | p.node FROM temp.nodes AS p WHERE p.path = a.parent_path AND p.depth = a.depth - 1
    ORDER BY p.node LIMIT 1), (SELECT k.function_id FROM temp.keys AS k WHERE k.key = a.key ORDER BY
    k.function_id LIMIT 1), a.depth, a.recursive, a.calls, a.total_ns, a.self_ns, a.min_ns, a.max_ns,
    a.unwound, a.untrusted, histogram_of(a.bins, a.counts), x'', a.rare FROM temp.answer AS a JOIN
    temp.nodes AS n ON n.row = a.rowid

-- name: gaps_question
SELECT reason, calls, events, start_ns, end_ns, thread_number FROM gaps WHERE session = %s

-- name: add_gaps
INSERT INTO gaps(session_id, thread_number, reason, calls, events, start_ns, end_ns) SELECT ?1,
    thread_number, reason, calls, events, coalesce(start_ns, 0), coalesce(end_ns, 0) FROM temp.answer

-- name: remove_program
-- Module 0 stands for the program until the session has a module with a number above 0.
DELETE FROM session_modules WHERE session_id = ?1 AND number = 0 AND EXISTS (SELECT 1 FROM session_modules
    AS x WHERE x.session_id = ?1 AND x.number > 0)

-- name: add_profile
-- Stored like a profile: sums without blocks.
INSERT INTO profiles SELECT session_id, 1, 0, coalesce(ended_realtime_ns - started_realtime_ns, 0),
    stored_calls, stored_events, 0 FROM sessions WHERE session_id = ?1
