-- title: Messages by class
-- question: Which Objective-C classes get most messages, and where does their time go?
-- parameter: session = last | the session
-- parameter: limit = 50 | rows at most
-- column: receiver | class of the receiver; when it was not recorded (--receivers, --objc dispatch), the class that defines the method
-- column: kind | instance or class: what the messages were sent to
-- column: methods | methods that were called
-- column: calls | messages
-- column: total_ns | time in these methods, callees included, ns
-- column: self_ns | of that, outside of recorded callees, ns
-- example: sojourn sql --query messages_by_class
SELECT coalesce(m.receiver, m.class) AS receiver, m.kind, count(DISTINCT m.class || ' ' || m.selector) AS methods,
       sum(s.calls) AS calls, sum(s.total_ns) AS total_ns, sum(s.self_ns) AS self_ns
FROM function_stats AS s
JOIN methods AS m USING (function_id)
WHERE s.session_id = :session
GROUP BY 1, 2
ORDER BY calls DESC
LIMIT :limit
