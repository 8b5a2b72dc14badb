-- Sojourn store, version 29: when threads were on a processor.

CREATE VIEW thread_times AS -- steps of threads, each of which follows the one before; see README
SELECT r.session_id, r.process_number, e.value ->> 0 AS thread_number,
       r.at_ns - (e.value ->> 1) AS from_ns, r.at_ns - (e.value ->> 1) + (e.value ->> 2) AS to_ns,
       e.value ->> 3 AS cpu_ns, e.value ->> 4 AS ready_ns,
       max((e.value ->> 2) - (e.value ->> 3) - (e.value ->> 4), 0) AS waiting_ns,
       r.at_ns AS reported_ns
FROM reports AS r, json_each(r.payload, '$.steps') AS e
WHERE r.monitor = 'threads' AND r.kind = 'times' AND e.type = 'array';
