-- Statements of cli/cmd_tree.c.

-- part: tree_estimates
{is_estimate(?1, t.function_id)} AS is_estimate, {is_self_estimate(?1, t.function_id)} AS is_self_estimate

-- name: tree_table_rows
SELECT depth, total_ns, self_ns, share, calls, name, open_calls, (SELECT m.path FROM functions AS f
    JOIN modules AS m USING (module_id) WHERE f.function_id = t.function_id), function_id, cpu_ns,
    cpu_self_ns, allocated_bytes, net_bytes, path_id, {tree_estimates}
FROM %s(?1, ?11, ?12, ?13) AS t

-- name: tree_data_rows
SELECT path_id, parent_path_id, depth, calls, total_ns, self_ns, min_ns, max_ns, share, function_id, name,
    open_calls, cpu_ns, cpu_self_ns, allocations, allocated_bytes, frees, freed_bytes, net_bytes,
    allocated_self_bytes, {tree_estimates}
FROM %s(?1, ?11, ?12, ?13) AS t
WHERE share >= ?2
AND depth <= ?3
