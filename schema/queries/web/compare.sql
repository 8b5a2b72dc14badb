-- Two sets of sessions compared, and coverage. :a and :b are sets (session_set).

-- part: estimates_of(set)
-- Functions whose self time is an estimate in a set. error_ns is the greatest standard error of their total times, or
-- NULL if only self times are estimates.
SELECT '{set}', f.symbol_key, max(iif(u.is_estimate, coalesce(s.error_ns, 0), NULL))
  FROM session_set(:{set}) c JOIN function_estimates u USING (session_id)
  JOIN function_stats s USING (session_id, function_id) JOIN functions f USING (function_id)
  WHERE u.is_self_estimate GROUP BY f.symbol_key

-- part: estimates
estimates(of, symbol_key, error_ns) AS MATERIALIZED ({estimates_of(a)} UNION ALL {estimates_of(b)})

-- part: errors_of(set)
(SELECT error_ns FROM estimates e WHERE e.of = '{set}' AND e.symbol_key = d.symbol_key) AS error_ns_{set},
       EXISTS (SELECT 1 FROM estimates e WHERE e.of = '{set}' AND e.symbol_key = d.symbol_key) AS is_self_estimate_{set}

-- name: compared_functions
-- bind: a text, b text
-- open_row: row, name text, module text, verdict text, decided_by optional_text, ratio optional_real
-- open_row: ratio_low optional_real, ratio_high optional_real, p_adjusted optional_real, compared_a, compared_b
-- open_row: calls_a optional, calls_b optional, calls_change text, calls_ratio optional_real, needed_sessions
-- open_row: matched_share optional_real, is_comparable optional, sessions_a, sessions_b, function_id_a optional
-- open_row: function_id_b optional, error_ns_a optional, is_self_estimate_a, error_ns_b optional, is_self_estimate_b
-- The columns of diff_functions (schema/README.md), and whether times are estimates.
WITH {estimates}
SELECT d.*, {errors_of(a)},
       {errors_of(b)}
FROM diff_functions(:a, :b) d WHERE row > 0 ORDER BY coalesce(calls_ratio, 1) = 1,
    CASE verdict WHEN 'slower' THEN 0 WHEN 'added' THEN 1 WHEN 'faster' THEN 2 WHEN 'removed' THEN 3
                 WHEN 'inconclusive' THEN 4 WHEN 'unmatched' THEN 5 WHEN 'same' THEN 6 ELSE 7 END,
    abs(compared_b - compared_a) DESC

-- name: compared_totals
-- bind: a text, b text
-- open_row: row, name text, verdict text, ratio optional_real, compared_a, compared_b, needed_sessions
-- open_row: matched_share optional_real, is_comparable optional, sessions_a, sessions_b, needed_by_functions optional
WITH d AS MATERIALIZED (SELECT * FROM diff_functions(:a, :b))
SELECT *, (SELECT max(needed_sessions) FROM d WHERE row > 0) AS needed_by_functions FROM d WHERE row = 0

-- name: compared_paths
-- bind: a text, b text
-- row: row, parent_row optional, depth, name text, verdict text, ratio optional_real, total_ns_a optional
-- row: total_ns_b optional, compared_a, compared_b, error_ns_a optional, is_self_estimate_a, error_ns_b optional
-- row: is_self_estimate_b
WITH {estimates}
SELECT row, parent_row, depth, name, verdict, ratio, total_ns_a, total_ns_b, compared_a, compared_b, {errors_of(a)},
       {errors_of(b)}
FROM diff_tree(:a, :b) d WHERE row > 0

-- part: namesakes
SELECT f.function_id FROM functions k JOIN functions f USING (symbol_key) WHERE k.function_id = :function

-- name: durations_of_set
-- bind: a text
-- row: low, high, count
-- A set may contain several builds, and the function has another id in each. If a set names a mark, only calls within
-- the mark are counted.
SELECT h.low, h.high, h.count FROM (SELECT histogram_merge(s.histogram, s.session_id) AS merged
    FROM session_set(:a) c JOIN function_stats s USING (session_id)
    WHERE c.from_ns IS NULL AND s.function_id IN ({namesakes})) m, histogram(m.merged) h
UNION ALL SELECT h.low, h.high, h.count FROM (SELECT histogram_merge(g.histogram) AS merged
    FROM session_set(:a) c, ({namesakes}) n,
      call_groups('function', c.session_id, c.from_ns, c.to_ns, NULL, n.function_id) g
    WHERE c.from_ns IS NOT NULL) m, histogram(m.merged) h
ORDER BY 1

-- name: coverage
-- bind: a text, by text
-- row: name text, module optional_text, functions, unwatched, entered, share real, calls
SELECT name, module, functions, unwatched, entered, share, calls FROM coverage(:a, :by)
ORDER BY functions - entered DESC, name

-- part: entered_in(set)
-- Functions by name and file name, so that builds in different folders can be compared.
SELECT name, {file_name(module)} AS file, max(entered) AS entered, min(unwatched) AS unwatched, sum(calls) AS calls
    FROM coverage({set}, 'function') GROUP BY 1, 2

-- name: coverage_difference
-- bind: a text, b text
-- row: side text, name text, file text, calls, other text
WITH one AS MATERIALIZED ({entered_in(:a)}),
  two AS MATERIALIZED ({entered_in(:b)})
SELECT * FROM (SELECT 'A' AS side, one.name, one.file, one.calls, CASE WHEN two.name IS NULL THEN 'not there'
    WHEN two.unwatched THEN 'not recorded' ELSE 'not entered' END AS other
  FROM one LEFT JOIN two USING (name, file) WHERE one.entered AND NOT coalesce(two.entered, 0)
UNION ALL SELECT 'B', two.name, two.file, two.calls, CASE WHEN one.name IS NULL THEN 'not there'
    WHEN one.unwatched THEN 'not recorded' ELSE 'not entered' END
  FROM two LEFT JOIN one USING (name, file) WHERE two.entered AND NOT coalesce(one.entered, 0))
ORDER BY side, other, calls DESC, name

-- name: sessions_to_compare
-- row: session_id, name text, command text, device text, stored_calls, started text
SELECT s.session_id, s.name, s.command, d.name AS device, s.stored_calls,
       datetime(s.started_realtime_ns / 1000000000, 'unixepoch') AS started
FROM sessions s JOIN devices d USING (device_id) WHERE s.state <> 'recording' ORDER BY s.session_id DESC LIMIT 200
