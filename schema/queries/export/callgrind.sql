-- Statements of export/callgrind.c.

-- name: callgrind
SELECT s.function_id, m.path, l.file, f.name, coalesce(l.line, 0), s.self_ns, cm.path, cl.file, cf.name,
    coalesce(cl.line, 0), e.calls, e.total_ns
FROM function_stats AS s
LEFT JOIN functions AS f USING (function_id)
LEFT JOIN modules AS m USING (module_id)
LEFT JOIN function_lines AS l USING (function_id)
LEFT JOIN call_edges AS e ON e.session_id = ?1 AND e.caller_function_id = s.function_id
LEFT JOIN functions AS cf ON cf.function_id = e.callee_function_id
LEFT JOIN modules AS cm ON cm.module_id = cf.module_id
LEFT JOIN function_lines AS cl ON cl.function_id = e.callee_function_id
WHERE s.session_id = ?1
ORDER BY s.function_id, e.callee_function_id
