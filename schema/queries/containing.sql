-- title: Calls that contain others
-- question: In which calls of one function was another called, how often and how long?
-- parameter: session = last | the session
-- parameter: outer = main | name of the containing function
-- parameter: inner = * | name of the function that was called in it; functions with fewer calls are faster: 1 s for a million
-- parameter: from_ns = 0 | only containing calls that were entered from this moment on, ns since the session's start; a short time is fast on any recording
-- parameter: to_ns = 9223372036854775807 | up to this one
-- parameter: least_ns = 0 | only where the longest inner call took so many ns
-- parameter: limit = 20 | how many
-- column: call_id | the containing call
-- column: duration_ns | how long it took, ns
-- column: inner_calls | calls of the other function in it
-- column: inner_ns | their time, ns
-- column: first_after_ns | from its entry to that of the first, ns
-- column: longest_call_id | the longest of them
-- column: longest_ns | how long that took, ns
-- example: sojourn sql --query containing --param outer=main --param inner=work
SELECT call_id, duration_ns, inner_calls, inner_ns, first_after_ns, longest_call_id, longest_ns
FROM contains(:session, :outer, :inner, :from_ns, :to_ns)
WHERE longest_ns >= :least_ns
ORDER BY longest_ns DESC, call_id
LIMIT :limit
