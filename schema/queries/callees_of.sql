-- title: Callees of a function
-- question: What does a function call, and where does its time go?
-- parameter: session = last | the session
-- parameter: function = main | its name, * and ? match any letters
-- column: function | the function asked for
-- column: callee | what it calls
-- column: calls | calls from this function
-- column: total_ns | time in the callee, ns
-- column: self_ns | of that, outside of recorded callees, ns
-- example: sojourn sql --query callees_of --param function=main
SELECT caller.name AS function, callee.name AS callee, e.calls, e.total_ns, e.self_ns
FROM call_edges AS e
JOIN functions AS caller ON caller.function_id = e.caller_function_id
LEFT JOIN functions AS callee ON callee.function_id = e.callee_function_id
WHERE e.session_id = :session AND caller.name GLOB :function
ORDER BY e.total_ns DESC
