-- title: Callers of a function
-- question: Who calls a function, how often, and how long does it take then?
-- parameter: session = last | the session
-- parameter: function = main | its name, * and ? match any letters
-- column: function | the function asked for
-- column: caller | who calls it; (nothing recorded) for outermost calls
-- column: calls | calls by this caller
-- column: total_ns | time in the function when called by this caller, ns
-- column: self_ns | of that, outside of recorded callees, ns
-- example: sojourn sql --query callers_of --param function='parse_*'
SELECT callee.name AS function, coalesce(caller.name, '(nothing recorded)') AS caller, e.calls,
       e.total_ns, e.self_ns
FROM call_edges AS e
JOIN functions AS callee ON callee.function_id = e.callee_function_id
LEFT JOIN functions AS caller ON caller.function_id = e.caller_function_id
WHERE e.session_id = :session AND callee.name GLOB :function
ORDER BY e.total_ns DESC
