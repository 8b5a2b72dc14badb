-- Sojourn store, version 39: which times of functions are estimates.

-- Empty in sessions whose calls are all timed: they are found to have no estimates at once.
CREATE INDEX function_stats_untimed ON function_stats (session_id) WHERE untimed_calls > 0;

-- A self time is what calls of counted functions leave. CASE, as AND would read the edges of
-- sessions without estimates, too. The text is stored in each database: no more than it needs.
CREATE VIEW function_estimates AS
SELECT session_id, function_id, is_estimate, calls_counted,
is_estimate OR calls_counted AS is_self_estimate
FROM (SELECT session_id, function_id, coalesce(untimed_calls, 0) > 0 AS is_estimate,
CASE WHEN EXISTS (SELECT 1 FROM function_stats AS g INDEXED BY function_stats_untimed
WHERE g.session_id = s.session_id AND g.untimed_calls > 0)
THEN EXISTS (SELECT 1 FROM call_edges AS e
JOIN function_stats AS u USING (session_id)
WHERE session_id = s.session_id AND caller_function_id = s.function_id
AND u.function_id = callee_function_id AND u.untimed_calls > 0)
ELSE 0 END AS calls_counted FROM function_stats AS s);

-- These tables are small: notes, and a few events of each token. Without the indexes a database
-- with one short session stays as small as it was.
DROP INDEX annotations_by_session;
DROP INDEX token_events_by_device;
