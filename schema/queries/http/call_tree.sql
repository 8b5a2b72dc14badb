-- Statements of http/route_call_tree.c.

-- part: call_tree_estimates
{is_estimate(p.session_id, p.function_id)} AS is_estimate, {is_self_estimate(p.session_id,
    p.function_id)} AS is_self_estimate

-- part: call_tree_quantile(q)
histogram_ns(p.histogram, {q}, s.tick_ns_numerator, s.tick_ns_denominator, p.min_ns, p.max_ns)

-- part: call_tree_known_ns
CASE WHEN p.calls > 0 THEN p.total_ns ELSE coalesce((WITH RECURSIVE open(id, ns) AS (SELECT p.path_id, 0
    UNION ALL SELECT c.path_id, CASE WHEN c.calls > 0 THEN c.total_ns ELSE 0 END FROM open
    JOIN call_paths o ON o.path_id = open.id AND o.calls = 0
    JOIN call_paths c ON c.parent_path_id = o.path_id) SELECT sum(ns) FROM open), 0) END

-- part: call_tree_node_joins
JOIN functions f ON f.function_id = p.function_id
JOIN modules m ON m.module_id = f.module_id
JOIN sessions s ON s.session_id = p.session_id
LEFT JOIN open_paths_of q ON q.path_id = p.path_id

-- part: call_tree_children
(SELECT p.path_id, {call_tree_known_ns} AS known_ns FROM call_paths p WHERE p.session_id = ?1
    AND p.parent_path_id IS ?2)

-- part: call_tree_node_columns
p.path_id AS id, p.parent_path_id AS parent_id, p.function_id, iif(p.rare, f.name || ' (rare paths)',
    f.name) AS name, m.path AS module, p.depth, p.recursive AS is_recursive, p.calls, p.total_ns, p.self_ns,
    p.min_ns, p.max_ns, {call_tree_quantile(0.5)} AS p50_ns, {call_tree_quantile(0.95)} AS p95_ns, p.unwound,
    p.untrusted, coalesce(q.open_calls, 0) AS open_calls, {call_tree_estimates}, (SELECT count(*)
    FROM call_paths c WHERE c.parent_path_id = p.path_id) AS child_count

-- part: call_tree_open_paths
WITH RECURSIVE open_paths_of AS MATERIALIZED (SELECT path_id, open_calls FROM open_paths(?1)
    WHERE path_id IS NOT NULL)

-- name: call_tree_children
{call_tree_open_paths}
SELECT {call_tree_node_columns}, o.known_ns
FROM (SELECT * FROM {call_tree_children} ORDER BY known_ns DESC, path_id LIMIT ?3 OFFSET ?4) o
CROSS JOIN call_paths p ON p.path_id = o.path_id {call_tree_node_joins}
ORDER BY o.known_ns DESC, p.path_id

-- name: call_tree_rest
SELECT count(*) AS paths, coalesce(sum(p.calls), 0) AS calls, coalesce(sum(o.known_ns), 0) AS known_ns,
    coalesce(sum(p.self_ns), 0) AS self_ns
FROM (SELECT * FROM {call_tree_children} ORDER BY known_ns DESC, path_id LIMIT -1 OFFSET ?3) o
JOIN call_paths p ON p.path_id = o.path_id

-- name: call_tree_ancestors
{call_tree_open_paths}, up(id, parent) AS (SELECT path_id, parent_path_id FROM call_paths WHERE path_id = ?2
    AND session_id = ?1 UNION ALL SELECT c.path_id, c.parent_path_id FROM up
    JOIN call_paths c ON c.path_id = up.parent)
SELECT {call_tree_node_columns}, {call_tree_known_ns} AS known_ns
FROM up
CROSS JOIN call_paths p ON p.path_id = up.id {call_tree_node_joins}
ORDER BY p.depth

-- name: call_tree_session
SELECT coalesce(sum(known_ns), 0)
FROM (SELECT {call_tree_known_ns} AS known_ns FROM call_paths p WHERE p.session_id = ?1
    AND p.parent_path_id IS NULL AND NOT p.rare)
