-- Statements of cli/call_choice.c.

-- name: call_choice_selection
-- Selects the chosen streams, each with the windows of the mark, or with all time. Cuts the windows to
-- --from and --to.
WITH phases AS (SELECT 0 AS first, 0 AS beyond WHERE 0 UNION ALL SELECT -9223372036854775807,
    9223372036854775807 WHERE ?4 IS NULL UNION ALL SELECT b.at_ns,
    coalesce((SELECT min(e.at_ns) FROM marks AS e WHERE e.session_id = ?1 AND e.name = ?4 AND e.is_end = 1
    AND e.at_ns >= b.at_ns), 9223372036854775807) FROM marks AS b WHERE b.session_id = ?1 AND b.name = ?4
    AND b.is_end = 0)
SELECT json_group_array(json_array(s.stream_id, max(w.first, ?5), min(w.beyond, ?6))), count(*),
    (SELECT count(*) FROM phases), (SELECT count(*) FROM streams WHERE session_id = ?1)
FROM phases AS w
CROSS JOIN streams AS s
LEFT JOIN threads AS t ON t.thread_id = s.thread_id
LEFT JOIN processes AS p ON p.session_id = ?1 AND p.number = t.process_number
WHERE s.session_id = ?1
AND (?2 IS NULL OR t.name = ?2 OR CAST(t.tid AS TEXT) = ?2 OR CAST(t.number AS TEXT) = ?2)
AND (?3 IS NULL OR CAST(p.pid AS TEXT) = ?3 OR CAST(p.number AS TEXT) = ?3 OR p.executable = ?3
    OR p.executable LIKE '%/' || ?3)
AND max(w.first, ?5) < min(w.beyond, ?6)

-- name: call_choice_functions
SELECT json_group_array(f.function_id), count(*)
FROM functions AS f
JOIN modules AS m ON m.module_id = f.module_id
WHERE f.function_id IN (SELECT function_id FROM call_paths WHERE session_id = ?1)
AND (?2 IS NULL OR f.name GLOB ?2 OR f.name GLOB ?2 || '(*')
AND (?3 IS NULL OR m.path GLOB ?3 OR m.path GLOB '*/' || ?3)
