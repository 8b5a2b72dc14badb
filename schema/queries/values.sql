-- title: What calls were given and returned
-- question: Which values of arguments and results did the rules of the policy keep?
-- parameter: session = last | the session
-- parameter: rule = * | only of rules whose name matches this glob
-- column: start_ns | when the call began, ns since the session's start
-- column: function | symbol
-- column: call_id | the call
-- column: which | result, or the argument: its name as debug data have it, else its number
-- column: kind | type, as the rule says
-- column: value | the value
-- column: note | of a text: cut, unreadable, null
-- column: rule | rule whose condition it met; empty: kept without one
-- example: sojourn sql --query values --param rule=big
WITH types AS MATERIALIZED (SELECT function_id, position, max(name) AS name FROM value_types
  WHERE session_id = :session GROUP BY function_id, position)
SELECT c.start_ns, f.name AS function, a.call_id,
       iif(a.position = 0, 'result', coalesce(nullif(t.name, ''), a.position)) AS which, a.kind, a.value, a.note, a.rule
FROM arguments AS a
JOIN calls AS c USING (session_id, call_id)
JOIN functions AS f USING (function_id)
LEFT JOIN types AS t ON t.function_id = c.function_id AND t.position = a.position
WHERE a.session_id = :session AND a.rule GLOB :rule
ORDER BY a.call_id, a.position <> 0, a.position, a.kind, a.rule
