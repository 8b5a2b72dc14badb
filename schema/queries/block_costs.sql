-- title: CPU time and memory by block
-- question: What did the thread of each block work, wait, allocate and free in its time?
-- parameter: session = last | the session
-- column: block_id | the block (blocks)
-- column: thread | name of its thread
-- column: from_ns | time of its first event, ns since the session's start
-- column: to_ns | time of its last event
-- column: calls | calls that were entered in it
-- column: cpu_ns | CPU time of the thread meanwhile; a step of the thread (thread_times) that is only partly in the block's time counts in proportion
-- column: waiting_ns | time that the thread waited for anything but a processor, in the same way
-- column: allocations | blocks of memory that the thread got from malloc's family; NULL: not counted (record --thread-memory)
-- column: allocated_bytes | their size
-- column: frees | blocks of memory that the thread gave back
-- column: freed_bytes | their size
-- example: sojourn sql --query block_costs
WITH steps AS MATERIALIZED (
  SELECT thread_number, from_ns, to_ns, cpu_ns, waiting_ns, allocations, allocated_bytes, frees, freed_bytes
  FROM thread_times WHERE session_id = :session AND to_ns > from_ns),
parts AS MATERIALIZED (
  SELECT b.block_id, t.number AS thread_number, t.name AS thread, b.call_count AS calls,
         CAST((b.first_ticks - s.started_ticks) * 1.0 * s.tick_ns_numerator / s.tick_ns_denominator AS INTEGER) AS from_ns,
         CAST((b.last_ticks - s.started_ticks) * 1.0 * s.tick_ns_numerator / s.tick_ns_denominator AS INTEGER) AS to_ns
  FROM sessions AS s JOIN streams AS st USING (session_id) JOIN threads AS t USING (thread_id)
  JOIN blocks AS b USING (stream_id) WHERE s.session_id = :session AND b.kind = 1)
SELECT p.block_id, p.thread, p.from_ns, p.to_ns, p.calls,
       CAST(round(sum(x.cpu_ns * x.share)) AS INTEGER) AS cpu_ns,
       CAST(round(sum(x.waiting_ns * x.share)) AS INTEGER) AS waiting_ns,
       CAST(round(sum(x.allocations * x.share)) AS INTEGER) AS allocations,
       CAST(round(sum(x.allocated_bytes * x.share)) AS INTEGER) AS allocated_bytes,
       CAST(round(sum(x.frees * x.share)) AS INTEGER) AS frees,
       CAST(round(sum(x.freed_bytes * x.share)) AS INTEGER) AS freed_bytes
FROM parts AS p
LEFT JOIN (SELECT q.block_id, s.*,
                  (min(s.to_ns, q.to_ns) - max(s.from_ns, q.from_ns)) * 1.0 / (s.to_ns - s.from_ns) AS share
           FROM parts AS q JOIN steps AS s ON s.thread_number = q.thread_number
            AND s.from_ns < q.to_ns AND s.to_ns > q.from_ns) AS x USING (block_id)
GROUP BY p.block_id ORDER BY p.from_ns, p.block_id
