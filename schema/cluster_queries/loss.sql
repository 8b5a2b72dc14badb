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
-- example: sojourn sql --cluster URL --query loss
SELECT if(reason = 'waited', 'wait', 'loss') AS what, reason, gaps, calls, events, first_ns, last_ns, untrusted
FROM (SELECT reason, count() AS gaps, sum(calls) AS calls, sum(events) AS events, min(start_ns) AS first_ns,
             max(end_ns) AS last_ns, 1 AS one
      FROM gaps WHERE session = :session GROUP BY reason) AS q1
ANY LEFT JOIN (SELECT sum(untrusted) AS untrusted, 1 AS one FROM function_stats WHERE session = :session) AS q2 USING one
ORDER BY what, calls DESC
