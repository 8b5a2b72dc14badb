-- Statements of cli/cmd_diff.c.

-- part: diff_whole
WITH d AS MATERIALIZED (SELECT * FROM diff_functions(?1, ?2, ?4))
SELECT verdict, ratio, ratio_low, ratio_high, p_adjusted, sessions_a, sessions_b, needed_sessions,
    (SELECT max(needed_sessions) FROM d WHERE row > 0), (SELECT count(*) FROM d
    WHERE row > 0 AND verdict = 'inconclusive'), (SELECT count(*) FROM d WHERE verdict IN ('slower',
    'faster', 'more', 'less', 'added', 'removed') OR calls_ratio <> 1),
    (SELECT min(verdict IN ('added', 'removed')) FROM d WHERE row > 0), (SELECT module FROM d
    WHERE verdict = 'removed'), (SELECT module FROM d WHERE verdict = 'added'), matched_share, is_comparable
FROM d
WHERE row = 0

-- part: diff_calls(side)
-- Mean numbers of calls are usually whole.
iif(calls_{side} = round(calls_{side}) OR calls_{side} >= 100, CAST(round(calls_{side}) AS INTEGER),
    round(calls_{side}, 1)) AS calls_{side}

-- part: diff_change
-- The text of a ratio. A time of zero before has no ratio: the change is "new".
iif(ratio > 0, printf('%%+.1f %%%%', (ratio - 1) * 100), iif(compared_a = 0 AND compared_b > 0, 'new',
    '')) AS change

-- name: diff_tree_rows
WITH d AS MATERIALIZED (SELECT * FROM diff_tree(?1, ?2, ?4)), walk(row, level) AS (SELECT row, 0 FROM d
    WHERE row > 0 AND parent_row IS NULL UNION ALL SELECT d.row, level + 1 FROM walk
    JOIN d ON d.parent_row = walk.row ORDER BY 2 DESC)
SELECT verdict, {diff_change}, %s, calls_change AS calls, printf('%%.*c', level * 2, ' ') || name AS function
FROM walk
JOIN d USING (row)
WHERE 1 %s
LIMIT ?3

-- name: diff_function_rows
SELECT verdict, {diff_change}, iif(ratio_low > 0, printf('%%+.1f..%%+.1f %%%%', (ratio_low - 1) * 100,
    (ratio_high - 1) * 100), '') AS "95 %% CI", iif(p_adjusted IS NULL, '', printf('%%.2g', p_adjusted)) AS
    p, %s, {diff_calls(a)}, {diff_calls(b)}, iif(calls_ratio <> 1, printf('%%.1f %%%% %%s in all',
    abs(calls_ratio - 1) * 100, iif(calls_ratio > 1, 'more', 'fewer')), calls_change) AS calls_change,
    name AS function
FROM diff_functions(?1, ?2, ?4)
WHERE row > 0 %s
ORDER BY coalesce(calls_ratio, 1) = 1, abs(compared_b - compared_a) DESC
LIMIT ?3

-- name: diff_whole
{diff_whole}
