-- title: Loss
-- question: What is missing, when, why, and how many calls does that make untrustworthy? Where did threads wait for the recorder?
-- parameter: session = last | the session
-- column: what | loss, or wait: the thread waited for the recorder, and nothing was lost
-- column: reason | ring_full, no_thread_slot, torn, paused, spool_full, waited, orphan, not_stored (sent, and not in this database)
-- column: gaps | number of gaps
-- column: calls | entries lost
-- column: events | entries and exits lost
-- column: first_ns | begin of the first, ns since the session's start
-- column: last_ns | end of the last, ns since the session's start
-- column: untrusted | calls of the session whose time a gap or a wait makes inexact
-- example: sojourn sql --query loss
SELECT iif(g.reason = 'waited', 'wait', 'loss') AS what, g.reason, count(*) AS gaps, sum(g.calls) AS calls, sum(g.events) AS events,
       min(g.start_ns) AS first_ns, max(g.end_ns) AS last_ns,
       (SELECT sum(untrusted) FROM function_stats WHERE session_id = :session) AS untrusted
FROM gaps AS g
WHERE g.session_id = :session
GROUP BY g.reason
ORDER BY what, calls DESC
