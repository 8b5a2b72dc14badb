-- Stores modules and their functions.

-- name: module_find
-- bind: build_id blob, functions_digest blob
-- row: module_id, first_function_id, function_count
SELECT module_id, first_function_id, function_count
FROM modules
WHERE build_id = :build_id
AND functions_digest = :functions_digest

-- name: module_disown
UPDATE modules SET functions_digest = randomblob(24)
WHERE module_id = :module_id

-- name: module_next_function
-- row: function_id
{next_function}

-- name: module_add
-- bind: build_id blob, functions_digest blob, path text, machine text
INSERT INTO modules (build_id, functions_digest, path, machine, first_function_id, function_count)
VALUES (:build_id, :functions_digest, :path, :machine, :first_function_id, :function_count)

-- name: function_add
-- bind: offset count, name text, symbol text, source text
INSERT INTO functions (function_id, module_id, offset, size_bytes, name, symbol, symbol_key, source,
    fingerprint)
VALUES (:function_id, :module_id, :offset, :size_bytes, :name, :symbol, :symbol_key, :source,
    nullif(:fingerprint, 0))

-- name: plan_find
-- bind: digest blob
-- row: hook_plan_id
SELECT hook_plan_id
FROM hook_plans
WHERE module_id = :module_id
AND digest = :digest

-- name: plan_add
-- bind: digest blob
INSERT INTO hook_plans (module_id, digest)
VALUES (:module_id, :digest)

-- name: plan_function_add
-- bind: technique text, reason text
INSERT INTO hook_plan_functions (hook_plan_id, function_id, technique, reason)
VALUES (:hook_plan_id, :function_id, :technique, :reason)

-- name: session_module_add
-- bind: path text
INSERT INTO session_modules (session_id, number, module_id, hook_plan_id, first_function, function_count,
    hooked_count, path)
VALUES (:session_id, :number, :module_id, :hook_plan_id, :first_function, :function_count, :hooked_count,
    :path)
ON CONFLICT DO UPDATE SET hook_plan_id = excluded.hook_plan_id, hooked_count = excluded.hooked_count
WHERE module_id = excluded.module_id
AND hook_plan_id <> excluded.hook_plan_id

-- name: session_module_list
-- row: number, first_function, function_count, first_function_id
SELECT s.number, s.first_function, s.function_count, m.first_function_id
FROM session_modules AS s
JOIN modules AS m ON m.module_id = s.module_id
WHERE s.session_id = :session_id
ORDER BY s.first_function

-- name: part_add
-- bind: data blob
INSERT OR REPLACE INTO module_parts (session_id, number, first, function_count, raw_bytes, data)
VALUES (:session_id, :number, :first, :function_count, :raw_bytes, :data)

-- name: part_list
-- row: first count, function_count count, raw_bytes count, data blob
SELECT first, function_count, raw_bytes, data
FROM module_parts
WHERE session_id = :session_id
AND number = :number
ORDER BY first

-- name: part_delete
DELETE FROM module_parts
WHERE session_id = :session_id
AND number = :number

-- name: mapping_put
-- bind: process_number count, bias count, unloaded_ns optional
INSERT INTO mappings (session_id, process_number, module_number, bias, loaded_ns, unloaded_ns)
VALUES (:session_id, :process_number, :module_number, :bias, :loaded_ns, :unloaded_ns)
ON CONFLICT DO UPDATE SET unloaded_ns = coalesce(excluded.unloaded_ns, unloaded_ns)

-- name: refused_add
-- bind: process_number count, reason text
INSERT OR IGNORE INTO refused_functions
VALUES (:session_id, :process_number, :function_id, :reason)

-- name: first_lines_add
-- bind: payload device_text
-- For a report that lists methods by offset, each with its lines.
INSERT OR IGNORE INTO function_lines (function_id, file, line)
SELECT f.function_id, cast(json_extract(:payload, '$.file') AS TEXT), min(l.value)
FROM session_modules AS s, json_each(:payload, '$.methods') AS m, json_each(m.value) AS l
JOIN functions AS f ON f.module_id = s.module_id AND f.offset = json_extract(m.value, '$[0]')
WHERE s.session_id = :session_id
AND s.number = json_extract(:payload, '$.module')
AND m.type = 'array'
AND l.key > 0
AND l.type = 'integer'
GROUP BY f.function_id
