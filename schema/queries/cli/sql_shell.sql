-- Statements of cli/sql_shell.c.

-- name: sql_shell_tables
SELECT name, type
FROM sqlite_schema
WHERE type IN ('table', 'view')
AND name NOT LIKE 'sqlite_%'
UNION ALL
SELECT value, 'function'
FROM json_each('["calls", "call_aggregate", "call_groups", "descendants", "ancestors", "siblings", "sequence", "contains", "intervals_intersect", "concurrency", "coverage", "call_tree", "physical_tree", "flame", "open_paths", "open_now", "open_before", "histogram", "session_set", "diff_functions", "diff_tree"]')
ORDER BY 1
