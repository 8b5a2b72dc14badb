-- title: Callers of a function
-- question: Who calls a function, how often, and how long does it take then?
-- parameter: session = last | the session
-- parameter: function = main | its name, * and ? match any letters
-- column: function | the function asked for
-- column: caller | who calls it; (nothing recorded) for outermost calls
-- column: calls | calls by this caller
-- column: total_ns | time in the function when called by this caller, ns
-- column: self_ns | of that, outside of recorded callees, ns
-- example: sojourn sql --cluster URL --query callers_of --param function='parse_*'
SELECT function, who AS caller, calls, total_ns, self_ns
FROM (
    SELECT callee_name AS function, if(caller = 0, '(nothing recorded)', caller_name) AS who, calls, total_ns, self_ns
    FROM call_edges
    WHERE session = :session AND callee_name LIKE :function) AS q1
ORDER BY total_ns DESC
