-- Stores the sums of calls.

-- name: path_list
-- row: path_id, parent_path_id, depth, recursive, calls count, unwound count, untrusted count
-- row: histogram blob, state blob, rare
SELECT path_id, parent_path_id, depth, recursive, calls, unwound, untrusted, histogram, state, rare
FROM call_paths
WHERE path_id > :after_path_id
AND path_id < :before_path_id
ORDER BY path_id

-- name: path_put
-- bind: parent_path_id optional, min_ns optional, max_ns optional, unwound count, untrusted count
-- bind: histogram blob, state blob, cpu_ns optional, cpu_self_ns optional, allocations optional
-- bind: allocated_bytes optional, frees optional, freed_bytes optional, allocated_self_bytes optional
INSERT INTO call_paths (path_id, session_id, parent_path_id, function_id, depth, recursive, calls, total_ns,
    self_ns, min_ns, max_ns, unwound, untrusted, histogram, state, rare, cpu_ns, cpu_self_ns, allocations,
    allocated_bytes, frees, freed_bytes, allocated_self_bytes)
VALUES (:path_id, :session_id, :parent_path_id, :function_id, :depth, :recursive, :calls, :total_ns,
    :self_ns, :min_ns, :max_ns, :unwound, :untrusted, :histogram, :state, :rare, :cpu_ns, :cpu_self_ns,
    :allocations, :allocated_bytes, :frees, :freed_bytes, :allocated_self_bytes)
ON CONFLICT (path_id) DO UPDATE SET calls = :calls, total_ns = :total_ns, self_ns = :self_ns,
    min_ns = :min_ns, max_ns = :max_ns, unwound = :unwound, untrusted = :untrusted, histogram = :histogram,
    state = :state, cpu_ns = :cpu_ns, cpu_self_ns = :cpu_self_ns, allocations = :allocations,
    allocated_bytes = :allocated_bytes, frees = :frees, freed_bytes = :freed_bytes,
    allocated_self_bytes = :allocated_self_bytes

-- name: path_forget
DELETE FROM call_paths
WHERE path_id > :after_path_id
AND path_id < :before_path_id

-- name: function_stats_put
-- bind: min_ns optional, max_ns optional, unwound count, untrusted count, histogram blob, cpu_ns optional
-- bind: cpu_self_ns optional, allocations optional, allocated_bytes optional, frees optional
-- bind: freed_bytes optional, allocated_self_bytes optional
INSERT INTO function_stats (session_id, function_id, calls, total_ns, self_ns, min_ns, max_ns, unwound,
    untrusted, histogram, cpu_ns, cpu_self_ns, allocations, allocated_bytes, frees, freed_bytes,
    allocated_self_bytes)
VALUES (:session_id, :function_id, :calls, :total_ns, :self_ns, :min_ns, :max_ns, :unwound, :untrusted,
    :histogram, :cpu_ns, :cpu_self_ns, :allocations, :allocated_bytes, :frees, :freed_bytes,
    :allocated_self_bytes)
ON CONFLICT (session_id, function_id) DO UPDATE SET calls = :calls, total_ns = :total_ns, self_ns = :self_ns,
    min_ns = :min_ns, max_ns = :max_ns, unwound = :unwound, untrusted = :untrusted, histogram = :histogram,
    cpu_ns = :cpu_ns, cpu_self_ns = :cpu_self_ns, allocations = :allocations,
    allocated_bytes = :allocated_bytes, frees = :frees, freed_bytes = :freed_bytes,
    allocated_self_bytes = :allocated_self_bytes

-- name: estimate_list
-- row: function_id, untimed_calls count, sampled_calls count, error_ns real
SELECT function_id, untimed_calls, sampled_calls, error_ns
FROM function_stats
WHERE session_id = :session_id
AND untimed_calls > 0
ORDER BY function_id

-- name: estimate_put
-- bind: untimed_calls count, sampled_calls count
UPDATE function_stats SET untimed_calls = :untimed_calls, sampled_calls = :sampled_calls, error_ns = :error_ns
WHERE session_id = :session_id
AND function_id = :function_id

-- name: edge_put
INSERT INTO call_edges (session_id, caller_function_id, callee_function_id, calls, total_ns, self_ns)
VALUES (:session_id, :caller_function_id, :callee_function_id, :calls, :total_ns, :self_ns)
ON CONFLICT (session_id, caller_function_id, callee_function_id) DO UPDATE SET calls = :calls,
    total_ns = :total_ns, self_ns = :self_ns

-- name: slow_list
-- row: function_id, call_id, path_id, start_ns, duration_ns, self_ns, ending, flags
SELECT function_id, call_id, path_id, start_ns, duration_ns, self_ns, ending, flags
FROM slow_calls
WHERE session_id = :session_id
ORDER BY function_id, place

-- name: slow_cut
DELETE FROM slow_calls
WHERE session_id = :session_id
AND function_id = :function_id
AND place > :last_place

-- name: slow_put
INSERT INTO slow_calls (session_id, function_id, place, call_id, path_id, start_ns, duration_ns, self_ns,
    ending, flags)
VALUES (:session_id, :function_id, :place, :call_id, :path_id, :start_ns, :duration_ns, :self_ns, :ending,
    :flags)
ON CONFLICT (session_id, function_id, place) DO UPDATE SET call_id = :call_id, path_id = :path_id,
    start_ns = :start_ns, duration_ns = :duration_ns, self_ns = :self_ns, ending = :ending, flags = :flags

-- name: timeline_add
-- bind: number count, calls count, path_id optional
INSERT INTO timeline (stream_id, level, number, start_ns, end_ns, calls, max_depth, path_id)
VALUES (:stream_id, :level, :number, :start_ns, :end_ns, :calls, :max_depth, :path_id)
ON CONFLICT (stream_id, level, number) DO UPDATE SET path_id = iif(excluded.start_ns < start_ns,
    excluded.path_id, path_id), start_ns = min(start_ns, excluded.start_ns), end_ns = max(end_ns,
    excluded.end_ns), calls = calls + excluded.calls, max_depth = max(max_depth, excluded.max_depth)

-- name: timeline_path
-- bind: number count, path_id optional
UPDATE timeline SET path_id = :path_id
WHERE stream_id = :stream_id
AND level = :level
AND number = :number
AND start_ns = :start_ns
AND path_id IS NOT :path_id

-- name: timeline_path_list
-- row: stream_id, level, number, path_id
SELECT stream_id, level, t.number, path_id
FROM streams
JOIN timeline t USING (stream_id)
WHERE session_id = :session_id
AND path_id IS NOT NULL

-- name: timeline_path_move
UPDATE timeline SET path_id = :path_id
WHERE stream_id = :stream_id
AND level = :level
AND number = :number

-- name: timeline_sum
-- bind: first_number count, last_number count
INSERT OR REPLACE INTO timeline (stream_id, level, number, start_ns, end_ns, calls, max_depth, path_id)
SELECT stream_id, :level, number >> 4, min(start_ns), max(end_ns), sum(calls), max(max_depth),
    (SELECT f.path_id FROM timeline AS f WHERE f.stream_id = :stream_id AND f.level = :level - 4
    AND f.number >= t.number >> 4 << 4 ORDER BY f.number LIMIT 1)
FROM timeline AS t
WHERE stream_id = :stream_id
AND level = :level - 4
AND number BETWEEN :first_number AND :last_number
GROUP BY number >> 4
