-- Conditions and columns that several panels share, for the selection (selection.ts) and for estimates (estimates.ts).

-- part: picked
-- bind: from optional, to optional, threads optional_text, mark optional_text
-- Tables of a WITH clause. The last one, `picked`, has the selected times of each stream: from_ns up to to_ns.
-- A mark selects each time from its begin to its end; times that overlap are merged.
begun(a, z) AS (SELECT b.at_ns, coalesce((SELECT min(e.at_ns) FROM marks e
      WHERE e.session_id = b.session_id AND e.name = b.name AND e.is_end AND e.at_ns >= b.at_ns), 1 << 60)
    FROM marks b WHERE b.session_id = :session AND b.name = :mark AND NOT b.is_end),
  split AS (SELECT a, z, a > coalesce(max(z) OVER (ORDER BY a, z ROWS BETWEEN UNBOUNDED PRECEDING
      AND 1 PRECEDING), -1) AS is_new FROM begun),
  numbered AS (SELECT a, z, sum(is_new) OVER (ORDER BY a, z ROWS UNBOUNDED PRECEDING) AS island FROM split),
  spans AS (SELECT max(min(a), coalesce(:from, 0)) AS a, min(max(z), coalesce(:to, 1 << 60)) AS z
    FROM numbered GROUP BY island
    UNION ALL SELECT coalesce(:from, 0), coalesce(:to, 1 << 60) WHERE :mark IS NULL),
  picked AS (SELECT s.stream_id, s.thread_id, a AS from_ns, z AS to_ns FROM streams s, spans
    WHERE s.session_id = :session AND a < z
      AND (:threads IS NULL OR s.thread_id IN (SELECT value FROM json_each(:threads))))

-- part: is_whole
-- True if no call is left out by time, thread or mark.
coalesce(:from, :threads, :mark) IS NULL

-- part: is_picked(stream, start)
-- True if what began at `start` in `stream` is selected.
({is_whole} OR EXISTS (SELECT 1 FROM picked WHERE stream_id = {stream} AND {start} >= from_ns AND {start} < to_ns))

-- part: is_then(at)
-- True if the time `at` lies in the selected time and mark.
(coalesce(:from, :mark) IS NULL OR EXISTS (SELECT 1 FROM picked WHERE {at} >= from_ns AND {at} < to_ns))

-- part: matches(name)
-- bind: functions optional_text
-- True if the name is selected: :functions is a part of it or, with * or ?, a pattern for all of it.
(:functions IS NULL OR iif(:functions GLOB '*[*?]*', {name} GLOB :functions,
      instr(lower({name}), lower(:functions)) > 0))

-- part: picked_parts
-- The selected times as an argument of call_tree() and flame(); NULL: all.
iif({is_whole}, NULL, (SELECT json_group_array(json_array(stream_id, from_ns, to_ns)) FROM picked))

-- part: picked_functions
-- The selected functions as an argument of call_tree() and flame(); NULL: all.
iif(:functions IS NULL, NULL, (SELECT json_group_array(function_id) FROM function_stats JOIN functions f USING (function_id)
    WHERE function_stats.session_id = :session AND {matches(f.name)}))

-- part: untimed(flags)
-- 1 if the times of a single call are estimates (SJ_CALL_UNTIMED).
({flags} & 16) <> 0

-- part: any_untimed(flags)
-- Like untimed, for a group of calls. Not max(): SQLite would then take other columns from the row with the maximum.
sum(({flags} & 16) <> 0) > 0

-- part: self_untimed(flags, function_id, session_id)
-- 1 if the self time of a single call is an estimate. A timed call does not record whether it made untimed calls.
-- So all calls are marked if the function made any.
({flags} & 16) <> 0 OR {estimate_column({session_id}, {function_id}, calls_counted)}

-- part: any_self_untimed(flags, function_id, session_id)
-- Like self_untimed, for a group of calls.
sum(({flags} & 16) <> 0) > 0 OR {estimate_column({session_id}, {function_id}, calls_counted)}

-- part: stored_quantile(share)
-- A percentile of function_stats `s`.
histogram_quantile(s.histogram, {share}, s.session_id, s.min_ns, s.max_ns)

-- part: merged_quantile(share)
-- A percentile of the merged histogram `h`, limited to the exact minimum and maximum of `s`.
max(s.min_ns, min(s.max_ns, histogram_quantile(h.histogram, {share})))

-- part: merged_durations
-- The histogram of the selected calls of one function.
SELECT histogram_merge(g.histogram) AS histogram FROM (SELECT DISTINCT thread_id, from_ns, to_ns FROM picked) p
    JOIN call_groups('function', :session, p.from_ns, p.to_ns, p.thread_id, :function) g
