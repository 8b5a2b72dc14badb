-- Call paths: the call tree and the flame graphs.

-- name: call_tree
-- row: path_id, parent_path_id optional, function_id, name text, module text, depth, calls, open_calls, total_ns, self_ns
-- row: is_estimate, is_self_estimate
-- Each path comes after the path of its caller.
WITH {picked}
SELECT t.path_id, t.parent_path_id, t.function_id, t.name, coalesce(m.path, '') AS module, t.depth, t.calls, t.open_calls,
       t.total_ns, t.self_ns, {is_estimate(:session, t.function_id)} AS is_estimate,
       {is_self_estimate(:session, t.function_id)} AS is_self_estimate
FROM call_tree(:session, {picked_parts}, {picked_functions}) t LEFT JOIN functions f USING (function_id)
LEFT JOIN modules m USING (module_id)

-- name: flame
-- bind: callees optional, callers optional, left real, right real, whole real
-- row: path_id, parent_path_id optional, function_id, name text, depth, calls, open_calls, total_ns, self_ns, left_ns
-- row: is_estimate, is_self_estimate
-- The frames that begin between :left and :right, without those narrower than 1/3000 of the width. The full width is
-- :whole, or the time of all roots if :whole is 0. With :callees or :callers, only those of that function.
WITH {picked},
  tree AS MATERIALIZED (SELECT path_id, parent_path_id, function_id, name, depth, calls, open_calls, total_ns, self_ns, left_ns
    FROM flame(:session, {picked_parts}, iif(:callees IS NULL, {picked_functions}, json_array(:callees)),
      iif(:callers IS NULL, NULL, json_array(:callers))) WHERE total_ns > 0)
SELECT *, {is_estimate(:session, tree.function_id)} AS is_estimate,
       {is_self_estimate(:session, tree.function_id)} AS is_self_estimate
FROM tree WHERE left_ns >= :left AND left_ns < :right
  AND total_ns >= (SELECT CASE WHEN :whole > 0 THEN :whole ELSE sum(total_ns) END FROM tree WHERE depth = 0) / 3000

-- part: chains_up(leaves, estimate)
-- The paths `leaves`, each with its callers. A chain is cut after 16 functions (CHAIN_LINKS of flame.tsx).
WITH RECURSIVE leaf AS {leaves},
up(leaf, path_id, step, weight, calls) AS (SELECT path_id, path_id, 0, weight, calls FROM leaf
    UNION ALL SELECT up.leaf, p.parent_path_id, step + 1, up.weight, up.calls FROM up
    JOIN call_paths p ON p.path_id = up.path_id WHERE p.parent_path_id IS NOT NULL AND step < 15)
SELECT up.leaf, up.step, up.weight, up.calls, p.function_id, f.name, p.parent_path_id IS NOT NULL AS has_caller,
       {estimate} AS is_estimate
FROM up JOIN call_paths p ON p.path_id = up.path_id JOIN functions f USING (function_id) ORDER BY up.leaf, up.step

-- part: self_leaves
SELECT path_id, self_ns AS weight, calls FROM call_paths
    WHERE session_id = :session AND self_ns > 0 ORDER BY self_ns DESC LIMIT 1200

-- part: function_leaves
-- A recursive path is skipped, because another path contains its time.
SELECT path_id, total_ns AS weight, calls FROM call_paths
    WHERE session_id = :session AND function_id = :function AND recursive = 0 ORDER BY total_ns DESC LIMIT 1200

-- name: paths_by_self_time
-- row: leaf, step, weight, calls, function_id, name text, has_caller, is_estimate
-- The call paths with the most self time, each with its callers. At most 1200 chains.
{chains_up(({self_leaves}), {is_self_estimate(:session, p.function_id)})}

-- name: paths_to_function
-- row: leaf, step, weight, calls, function_id, name text, has_caller, is_estimate
-- All paths of one function, each with its callers. At most 1200 chains.
{chains_up(({function_leaves}), {is_estimate(:session, p.function_id)})}

-- name: paths_from_function
-- row: path_id, parent_path_id optional, step, has_hidden_callees, self_ns, total_ns, calls, function_id, name text
-- row: is_estimate
-- The paths of one function and 39 levels of callees.
WITH RECURSIVE down(path_id, step) AS (SELECT path_id, 0 FROM call_paths
    WHERE session_id = :session AND function_id = :function AND recursive = 0
    UNION ALL SELECT p.path_id, step + 1 FROM down JOIN call_paths p ON p.parent_path_id = down.path_id
    WHERE step < 39)
SELECT d.path_id, p.parent_path_id, d.step,
       d.step = 39 AND EXISTS (SELECT 1 FROM call_paths c WHERE c.parent_path_id = d.path_id) AS has_hidden_callees,
       p.self_ns, p.total_ns, p.calls, p.function_id, f.name, {is_estimate(:session, p.function_id)} AS is_estimate
FROM down d JOIN call_paths p USING (path_id) JOIN functions f USING (function_id) ORDER BY d.step, p.total_ns DESC

-- name: session_self_time
-- row: self_ns
SELECT sum(self_ns) AS self_ns FROM function_stats WHERE session_id = :session

-- name: function_sums
-- row: name text, calls, total_ns, self_ns, untimed_calls optional, error_ns optional, is_self_estimate
SELECT f.name, s.calls, s.total_ns, s.self_ns, s.untimed_calls, s.error_ns,
       {is_self_estimate(:session, :function)} AS is_self_estimate
FROM function_stats s JOIN functions f USING (function_id) WHERE s.session_id = :session AND s.function_id = :function

-- name: hottest_function
-- row: function_id
SELECT function_id FROM function_stats WHERE session_id = :session ORDER BY self_ns DESC LIMIT 1

-- name: function_names
-- bind: ids text
-- row: function_id, name text
SELECT f.function_id, f.name FROM function_stats s JOIN functions f USING (function_id)
WHERE s.session_id = :session AND instr(:ids, ',' || f.function_id || ',')
