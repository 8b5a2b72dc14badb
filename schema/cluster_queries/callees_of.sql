-- title: Callees of a function
-- question: What does a function call, and where does its time go?
-- parameter: session = last | the session
-- parameter: function = main | its name, * and ? match any letters
-- column: function | the function asked for
-- column: callee | what it calls
-- column: calls | calls from this function
-- column: total_ns | time in the callee, ns
-- column: self_ns | of that, outside of recorded callees, ns
-- example: sojourn sql --cluster URL --query callees_of --param function=main
SELECT function, who AS callee, calls, total_ns, self_ns
FROM (
    SELECT caller_name AS function, callee_name AS who, calls, total_ns, self_ns
    FROM call_edges
    WHERE session = :session AND caller != 0 AND caller_name LIKE :function) AS q1
ORDER BY total_ns DESC
