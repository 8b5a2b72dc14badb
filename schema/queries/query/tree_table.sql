-- Statements of query/tree_table.c.

-- part: tree_table_tree_columns
path_id INTEGER, parent_path_id INTEGER, function_id INTEGER, name TEXT, depth INTEGER, calls INTEGER,
    total_ns INTEGER, self_ns INTEGER, min_ns INTEGER, max_ns INTEGER, share REAL, left_ns INTEGER,
    open_calls INTEGER, cpu_ns INTEGER, cpu_self_ns INTEGER, allocations INTEGER, allocated_bytes INTEGER,
    frees INTEGER, freed_bytes INTEGER, net_bytes INTEGER, allocated_self_bytes INTEGER, session_id HIDDEN,
    selection HIDDEN, callees_of HIDDEN, callers_of HIDDEN)

-- name: tree_table_paths
SELECT p.path_id, coalesce(p.parent_path_id, 0), p.function_id, p.calls, p.total_ns, p.self_ns,
    coalesce(p.min_ns, 0), coalesce(p.max_ns, 0), p.depth, dense_rank() OVER (ORDER BY f.name), p.rare,
    p.cpu_ns, p.cpu_self_ns, p.allocations, p.allocated_bytes, p.frees, p.freed_bytes, p.allocated_self_bytes
FROM call_paths AS p
LEFT JOIN functions AS f ON f.function_id = p.function_id
WHERE p.session_id = ?1
ORDER BY p.path_id

-- name: tree_table_frames
SELECT call_id, physical_parent_id, function_id, physical_duration_ns, ending = 'open'
FROM calls
WHERE session_id = ?1
ORDER BY call_id

-- name: tree_physical_columns
CREATE TABLE physical_tree({tree_table_tree_columns}

-- name: tree_call_columns
CREATE TABLE call_tree({tree_table_tree_columns}

-- name: tree_flame_columns
CREATE TABLE flame({tree_table_tree_columns}
