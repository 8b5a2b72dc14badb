-- Sojourn store, version 39: which times of functions are estimates.

-- Empty in sessions whose calls are all timed: they are found to have no estimates at once.
CREATE INDEX function_stats_untimed ON function_stats (session_id, function_id)
    WHERE untimed_calls > 0;

-- A self time is what calls of counted functions leave. CASE, as AND would read the edges of
-- sessions without estimates, too.
CREATE VIEW function_estimates AS
SELECT session_id, function_id, is_estimate, calls_counted,
       is_estimate OR calls_counted AS is_self_estimate
FROM (SELECT s.session_id, s.function_id, coalesce(s.untimed_calls, 0) > 0 AS is_estimate,
             CASE WHEN EXISTS (SELECT 1 FROM function_stats AS g INDEXED BY function_stats_untimed
                               WHERE g.session_id = s.session_id AND g.untimed_calls > 0)
                  THEN EXISTS (SELECT 1 FROM call_edges AS e
                               JOIN function_stats AS u ON u.session_id = e.session_id
                                   AND u.function_id = e.callee_function_id
                                   AND u.untimed_calls > 0
                               WHERE e.session_id = s.session_id
                                   AND e.caller_function_id = s.function_id)
                  ELSE 0 END AS calls_counted
      FROM function_stats AS s);
