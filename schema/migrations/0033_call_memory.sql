-- Sojourn store, version 33: what calls allocate and free.

DROP VIEW function_costs;
ALTER TABLE call_costs RENAME TO call_costs_before;
CREATE TABLE call_costs ( -- CPU time and memory of calls, of functions for which the policy asks
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    call_id INTEGER NOT NULL,      -- as in calls
    function_id INTEGER NOT NULL,
    is_nested INTEGER NOT NULL,    -- 1: within a measured call of the same function
    cpu_ns INTEGER,                -- of the call's thread; here and below, NULL: not measured
    cpu_self_ns INTEGER,           -- without calls below that are measured, too
    allocations INTEGER,           -- blocks that its thread got while it ran
    allocated_bytes INTEGER,       -- of them, usable ones; or in the heap of a runtime
    frees INTEGER,
    freed_bytes INTEGER,
    allocations_self INTEGER,      -- likewise, without calls below that are measured, too
    allocated_self_bytes INTEGER,
    frees_self INTEGER,
    freed_self_bytes INTEGER,
    PRIMARY KEY (session_id, call_id)
) STRICT, WITHOUT ROWID;
INSERT INTO call_costs (session_id, call_id, function_id, is_nested, cpu_ns, cpu_self_ns,
                        allocated_bytes)
SELECT session_id, call_id, function_id, is_nested, cpu_ns, cpu_self_ns, allocated_bytes
FROM call_costs_before;
DROP TABLE call_costs_before;

CREATE VIEW function_costs AS -- sums of call_costs; nested calls are not counted twice
SELECT session_id, function_id, count(*) AS calls, sum(cpu_ns * (1 - is_nested)) AS cpu_ns,
       sum(cpu_self_ns) AS cpu_self_ns, sum(allocations * (1 - is_nested)) AS allocations,
       sum(allocated_bytes * (1 - is_nested)) AS allocated_bytes,
       sum(frees * (1 - is_nested)) AS frees, sum(freed_bytes * (1 - is_nested)) AS freed_bytes,
       sum((allocated_bytes - freed_bytes) * (1 - is_nested)) AS net_bytes,
       sum(allocations_self) AS allocations_self,
       sum(allocated_self_bytes) AS allocated_self_bytes, sum(frees_self) AS frees_self,
       sum(freed_self_bytes) AS freed_self_bytes
FROM call_costs GROUP BY session_id, function_id;
