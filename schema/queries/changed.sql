-- title: What changed
-- question: Which functions became slower, faster, appeared or vanished between two sets of sessions?
-- parameter: a = all | sessions before: build:, tag:, device:, ids (see sojourn diff)
-- parameter: b = last | sessions after
-- column: verdict | slower, faster, added, removed
-- column: function | name
-- column: ratio | self time, after / before; NULL: there was none before
-- column: ratio_low | lower end of its 95 % interval
-- column: ratio_high | upper end
-- column: p_adjusted | p-value, adjusted for the number of functions looked at
-- column: self_ns_a | median self time before, of what decided, ns
-- column: self_ns_b | median self time after, ns
-- column: calls_change | more, fewer, same, varies
-- example: sojourn sql --query changed --param a=build:41ab --param b=build:42cd
SELECT verdict, name AS function, ratio, ratio_low, ratio_high, p_adjusted,
       compared_a AS self_ns_a, compared_b AS self_ns_b, calls_change
FROM diff_functions(:a, :b)
WHERE "row" > 0 AND verdict IN ('slower', 'faster', 'added', 'removed')
ORDER BY abs(compared_b - compared_a) DESC
