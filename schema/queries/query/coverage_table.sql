-- Statements of query/coverage_table.c.

-- name: coverage_functions
SELECT f.function_id, f.symbol_key, f.name, coalesce(sm.path, m.path), m.module_id, h.technique, h.reason
FROM session_modules AS sm
JOIN modules AS m USING (module_id)
JOIN functions AS f USING (module_id)
LEFT JOIN hook_plan_functions AS h ON h.hook_plan_id = sm.hook_plan_id AND h.function_id = f.function_id
WHERE sm.session_id = ?1
ORDER BY sm.number, f.function_id

-- name: coverage_columns
CREATE TABLE coverage(name TEXT, module TEXT, functions INTEGER, unwatched INTEGER, entered INTEGER,
    share REAL, calls INTEGER, missing TEXT, sessions HIDDEN, by_what HIDDEN)
