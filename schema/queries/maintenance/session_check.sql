-- Statements of maintenance/session_check.c.

-- part: session_check_has_sums
EXISTS (SELECT 1 FROM source.sessions WHERE session_id = ?1 AND aggregates_valid_before_block IS NULL)

-- part: session_check_is_its_function(f)
-- SQL condition: the function id `f` is in one of the session's modules.
EXISTS (SELECT 1 FROM source.session_modules AS s JOIN source.modules AS m USING (module_id)
    WHERE s.session_id = ?1 AND {f} BETWEEN m.first_function_id AND m.first_function_id + m.function_count -
    1)

-- part: session_check_its_modules
-- Modules of the session, as they came in the file.
source.session_modules AS s
LEFT JOIN source.modules AS m ON m.module_id = s.module_id
WHERE s.session_id = ?1

-- name: session_check_function_count
SELECT 1
FROM {session_check_its_modules} AND (m.module_id IS NULL OR m.function_count NOT BETWEEN 0 AND 4294967295
    OR m.first_function_id NOT BETWEEN 1 AND 1 << 60 OR m.function_count <> s.function_count
    OR m.function_count <> (SELECT count(*) FROM source.functions AS f WHERE f.module_id = m.module_id
    AND f.function_id BETWEEN m.first_function_id AND m.first_function_id + m.function_count - 1))

-- name: session_check_outside_module
SELECT 1
FROM {session_check_its_modules} AND EXISTS (SELECT 1 FROM source.functions AS f
    WHERE f.module_id = m.module_id AND f.function_id NOT BETWEEN m.first_function_id
    AND m.first_function_id + m.function_count - 1)

-- name: session_check_shared_numbers
SELECT 1
FROM (SELECT first_function, function_count, lead(first_function) OVER (ORDER BY first_function,
    number) AS next FROM source.session_modules WHERE session_id = ?1)
WHERE first_function < 1 OR first_function + function_count > 4294967295 OR first_function + function_count
    > next

-- name: session_check_block_range
SELECT 1
FROM source.streams
JOIN source.blocks USING (stream_id)
WHERE session_id = ?1
AND (first_ticks < 0 OR last_ticks < 0 OR first_event NOT BETWEEN 0 AND 1 << 62 OR event_count NOT BETWEEN 0
    AND 4294967295 OR first_call < 0 OR call_count < 0 OR first_call + call_count > 1 << 38
    OR lost_calls NOT BETWEEN 0 AND 1 << 38 OR lost_events NOT BETWEEN 0 AND 1 << 62)

-- name: session_check_paths
SELECT 1
FROM source.call_paths
WHERE session_id = ?1
AND (path_id >> 32 <> ?1 OR parent_path_id >= path_id OR parent_path_id >> 32 <> ?1
    OR NOT {session_check_is_its_function(call_paths.function_id)})

-- part: session_check_its_streams
(SELECT stream_id FROM source.streams WHERE session_id = ?1)

-- name: session_check_strange_functions
-- Calls that a filter left out may have no function.
SELECT 1
FROM (SELECT function_id FROM source.function_stats WHERE session_id = ?1
    UNION ALL SELECT callee_function_id FROM source.call_edges WHERE session_id = ?1
    UNION ALL SELECT caller_function_id FROM source.call_edges WHERE session_id = ?1 AND caller_function_id <> 0
    UNION ALL SELECT function_id FROM source.slow_calls WHERE session_id = ?1
    UNION ALL SELECT function_id FROM source.call_costs WHERE session_id = ?1
    UNION ALL SELECT function_id FROM source.filtered_calls WHERE session_id = ?1 AND function_id <> 0
    UNION ALL SELECT function_id FROM source.decisions WHERE session_id = ?1 AND function_id <> 0
    UNION ALL SELECT function_id FROM source.open_calls WHERE stream_id IN {session_check_its_streams}) AS f
WHERE NOT {session_check_is_its_function(f.function_id)}

-- name: session_check_strange_paths
SELECT 1
FROM (SELECT path_id FROM source.slow_calls WHERE session_id = ?1
    UNION ALL SELECT path_id FROM source.timeline WHERE stream_id IN {session_check_its_streams}) AS x
WHERE NOT EXISTS (SELECT 1 FROM source.call_paths AS p WHERE p.path_id = x.path_id AND p.session_id = ?1)
AND x.path_id IS NOT NULL

-- name: session_check_strange_streams
SELECT 1
FROM (SELECT call_id FROM source.slow_calls WHERE session_id = ?1
    UNION ALL SELECT call_id FROM source.arguments WHERE session_id = ?1
    UNION ALL SELECT call_id FROM source.call_costs WHERE session_id = ?1)
WHERE call_id >> 38 NOT IN {session_check_its_streams}

-- name: session_check_strange_plans
SELECT 1
FROM {session_check_its_modules} AND s.hook_plan_id IS NOT NULL AND (NOT EXISTS (SELECT 1
    FROM source.hook_plans AS p WHERE p.hook_plan_id = s.hook_plan_id AND p.module_id = s.module_id)
    OR EXISTS (SELECT 1 FROM source.hook_plan_functions AS h WHERE h.hook_plan_id = s.hook_plan_id
    AND h.function_id NOT BETWEEN m.first_function_id AND m.first_function_id + m.function_count - 1))

-- name: session_check_keys
-- Selects the unique keys of all copied tables, each as a list of columns. They come from the target,
-- because the file can lack them.
-- row: name text, owner text, columns text, are_set text
WITH copied AS (SELECT t.name, (SELECT c.name FROM pragma_table_info(t.name, 'main') AS c
        WHERE c.name IN ('session_id', 'stream_id', 'report_id')
        ORDER BY c.name = 'session_id' DESC, c.name = 'stream_id' DESC LIMIT 1) AS owner
    FROM main.sqlite_schema AS t WHERE t.type = 'table'
    UNION ALL VALUES ('modules', 'module_id'), ('functions', 'module_id'), ('hook_plans', 'hook_plan_id'),
        ('hook_plan_functions', 'hook_plan_id'), ('function_lines', 'function_id'),
        ('inlined_functions', 'function_id'), ('devices', 'device_id'), ('device_clocks', 'device_id'),
        ('zombies', 'zombie_id')),
    key_columns AS (SELECT t.name, t.owner, i.name AS key, c.name AS column
    FROM copied AS t, pragma_index_list(t.name, 'main') AS i, pragma_index_info(i.name, 'main') AS c
    WHERE i."unique"
    UNION ALL SELECT t.name, t.owner, '', c.name
    FROM copied AS t, pragma_table_info(t.name, 'main') AS c WHERE c.pk = 1 AND c.type = 'INTEGER'
    AND (SELECT sum(pk > 0) FROM pragma_table_info(t.name, 'main')) = 1)
SELECT name, owner, group_concat(column, ', '), group_concat(column || ' IS NOT NULL', ' AND ')
FROM key_columns
WHERE owner IS NOT NULL
AND EXISTS (SELECT 1 FROM source.sqlite_schema AS o WHERE o.name = key_columns.name)
GROUP BY name, key

-- name: session_check_sums_differ
SELECT 1
WHERE {session_check_has_sums}
AND ((SELECT total(calls) FROM source.call_paths WHERE session_id = ?1) <> (SELECT total(calls)
    FROM source.function_stats WHERE session_id = ?1) OR (SELECT total(calls) FROM source.call_edges
    WHERE session_id = ?1) <> (SELECT total(calls) FROM source.function_stats WHERE session_id = ?1))

-- name: session_check_other_blocks
SELECT 1
FROM source.sessions AS s, (SELECT count(*) AS blocks, total(b.quarantined IS NULL) AS sound,
    total(iif(b.kind = 1, b.call_count, 0)) AS calls, total(iif(b.kind = 1 AND b.quarantined IS NULL,
    b.call_count, 0)) AS sound_calls FROM source.streams JOIN source.blocks AS b USING (stream_id)
    WHERE session_id = ?1) AS t, (SELECT total(calls) AS calls FROM source.profiles
    WHERE session_id = ?1) AS p
WHERE s.session_id = ?1
AND s.aggregates_valid_before_block IS NULL
AND (s.stored_blocks, s.stored_calls - p.calls) NOT IN (VALUES (t.blocks, t.calls), (t.sound, t.sound_calls))

-- name: session_check_digests
-- Selects modules whose digest later recordings can search for: those of this length.
-- row: module_id, functions_digest blob
SELECT module_id, functions_digest
FROM source.modules
WHERE module_id IN (SELECT module_id FROM source.session_modules WHERE session_id = ?1)
AND length(CAST(functions_digest AS BLOB)) = 16

-- name: session_check_functions
-- row: offset count, size_bytes, symbol text
SELECT offset, size_bytes, iif(source = 'symbol_file', '', symbol)
FROM source.functions
WHERE module_id = ?1
ORDER BY function_id

-- name: session_check_blocks
-- Selects the blocks that queries read: the unmarked ones.
SELECT block_id
FROM source.streams
JOIN source.blocks USING (stream_id)
WHERE session_id = ?1
AND quarantined IS NULL
