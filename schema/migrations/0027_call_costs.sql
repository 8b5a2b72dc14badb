-- Sojourn store, version 27: CPU time of calls.

CREATE TABLE call_costs ( -- CPU time of calls, of functions for which the policy asks
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    call_id INTEGER NOT NULL,     -- as in calls
    function_id INTEGER NOT NULL,
    cpu_ns INTEGER NOT NULL,      -- of the call's thread
    cpu_self_ns INTEGER NOT NULL, -- without calls below that are measured, too
    is_nested INTEGER NOT NULL,   -- 1: within a measured call of the same function
    PRIMARY KEY (session_id, call_id)
) STRICT, WITHOUT ROWID;

CREATE VIEW function_costs AS -- sums of call_costs; nested calls are not counted twice
SELECT session_id, function_id, count(*) AS calls, sum(iif(is_nested, 0, cpu_ns)) AS cpu_ns,
       sum(cpu_self_ns) AS cpu_self_ns
FROM call_costs GROUP BY session_id, function_id;
