-- Statements of maintenance/salvage_repair.c.

-- part: salvage_repair_most_functions
-- Limit of functions of a module, so that a damaged count cannot fill the disk.
16777216

-- part: salvage_repair_lost_modules
(SELECT module_id, max(function_count) AS functions FROM session_modules AS s WHERE NOT EXISTS (SELECT 1
    FROM modules AS m WHERE m.module_id = s.module_id) GROUP BY module_id)

-- name: salvage_repair_devices
INSERT INTO devices (device_id, uuid, name, first_seen_realtime_ns, last_seen_realtime_ns)
SELECT device_id, randomblob(16), '(lost device ' || device_id || ')', min(started_realtime_ns),
    max(started_realtime_ns)
FROM sessions
WHERE device_id NOT IN (SELECT device_id FROM devices)
GROUP BY device_id

-- name: salvage_repair_whole_modules
INSERT INTO modules (module_id, build_id, functions_digest, path, first_function_id, function_count)
SELECT l.module_id, x'', randomblob(24), '(lost module ' || l.module_id || ')', min(f.function_id),
    l.functions
FROM {salvage_repair_lost_modules} AS l
JOIN functions AS f USING (module_id)
GROUP BY l.module_id
HAVING count(*) = l.functions AND max(f.function_id) - min(f.function_id) + 1 = l.functions

-- name: salvage_repair_cut_modules
INSERT INTO modules (module_id, build_id, functions_digest, path, first_function_id, function_count)
SELECT module_id, x'', randomblob(24), '(lost module ' || module_id || ')',
    1 + max(coalesce((SELECT max(function_id) FROM functions), 0),
    coalesce((SELECT max(first_function_id + function_count) FROM modules), 0)), functions
FROM {salvage_repair_lost_modules}
WHERE functions BETWEEN 0 AND {salvage_repair_most_functions}
LIMIT 1

-- name: salvage_repair_functions
WITH RECURSIVE ids (module_id, id, last) AS (SELECT module_id, first_function_id,
    first_function_id + function_count - 1 FROM modules AS m WHERE function_count BETWEEN 1
    AND {salvage_repair_most_functions} AND (SELECT count(*) FROM functions AS f
    WHERE f.module_id = m.module_id) < function_count UNION ALL SELECT module_id, id + 1, last FROM ids
    WHERE id < last) INSERT OR IGNORE INTO functions (function_id, module_id, offset, size_bytes, name,
    symbol, symbol_key)
SELECT id, module_id, 0, 0, '(lost function ' || id || ')', '', random()
FROM ids

-- name: salvage_repair_keys
SELECT k."from", k."table", coalesce(k."to", (SELECT name FROM pragma_table_info(k."table") WHERE pk = 1)),
    (SELECT c.pk = 0 AND NOT c."notnull" FROM pragma_table_info(?1) AS c WHERE c.name = k."from")
FROM pragma_foreign_key_list(?1) AS k
