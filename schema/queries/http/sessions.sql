-- Statements of http/route_sessions.c.

-- name: sessions_totals
-- Uses total() instead of sum(), because the numbers of lost calls that devices report may overflow a
-- sum.
SELECT (SELECT count(*) FROM sessions) AS sessions, count(*) AS matching,
    count(*) FILTER (WHERE s.state = 'recording') AS recording, count(DISTINCT s.device_id) AS devices,
    CAST(total(s.stored_calls) AS INTEGER) AS calls, coalesce(max(s.stored_calls), 0) AS most_calls,
    CAST(total(max(s.lost_calls, coalesce(s.device_lost_calls, 0))) AS INTEGER) AS lost_calls
FROM sessions s
JOIN devices d ON d.device_id = s.device_id
WHERE {session_matches}

-- name: sessions_list
{session_select}
WHERE {session_matches}
AND s.session_id < ?10
ORDER BY s.session_id DESC
LIMIT ?11
