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
-- example: sojourn sql --cluster URL --query messages_by_class
SELECT receiver, kind, uniqExact(method) AS methods, sum(n) AS calls, sum(total) AS total_ns, sum(own) AS self_ns
FROM (
    SELECT extract(name, '^[-+]\\[([^ ]*) ') AS of_class, extract(of_class, '^([^:(]*)') AS receiver,
           if(substring(name, 1, 1) = '+', 'class', 'instance') AS kind, calls AS n, total_ns AS total, self_ns AS own,
           concat(extract(of_class, '^(?:[^:]*:)?([^(]*)'), ' ', extract(name, '^[^ ]* (.*)\\]$')) AS method
    FROM function_stats
    WHERE session = :session AND match(name, '^[-+]\\[.* .*\\]$')) AS q1
GROUP BY receiver, kind
ORDER BY calls DESC
LIMIT :limit
