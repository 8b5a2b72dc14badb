-- Sojourn store, version 30: bytes that calls and threads allocate, CPU time of threads.

ALTER TABLE call_costs ADD COLUMN allocated_bytes INTEGER; -- in the heap of the runtime

DROP VIEW function_costs;
CREATE VIEW function_costs AS -- sums of call_costs; nested calls are not counted twice
SELECT session_id, function_id, count(*) AS calls, sum(iif(is_nested, 0, cpu_ns)) AS cpu_ns,
       sum(cpu_self_ns) AS cpu_self_ns,
       sum(iif(is_nested, 0, allocated_bytes)) AS allocated_bytes
FROM call_costs GROUP BY session_id, function_id;

-- Of the whole thread, to its end or its process's; NULL: not known.
ALTER TABLE threads ADD COLUMN cpu_ns INTEGER;
ALTER TABLE threads ADD COLUMN allocated_bytes INTEGER; -- in the heap of its runtime
