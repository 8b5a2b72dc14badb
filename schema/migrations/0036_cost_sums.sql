-- Sojourn store, version 36: sums of what calls have cost, by call path and function; what threads
-- allocate.

-- Of calls whose costs were measured, as in call_costs; NULL: of none.
ALTER TABLE call_paths ADD COLUMN cpu_ns INTEGER;
ALTER TABLE call_paths ADD COLUMN cpu_self_ns INTEGER; -- without calls below that are measured, too
ALTER TABLE call_paths ADD COLUMN allocations INTEGER;
ALTER TABLE call_paths ADD COLUMN allocated_bytes INTEGER;
ALTER TABLE call_paths ADD COLUMN frees INTEGER;
ALTER TABLE call_paths ADD COLUMN freed_bytes INTEGER;
ALTER TABLE call_paths ADD COLUMN allocated_self_bytes INTEGER;

-- Likewise; nested calls are not counted twice.
ALTER TABLE function_stats ADD COLUMN cpu_ns INTEGER;
ALTER TABLE function_stats ADD COLUMN cpu_self_ns INTEGER;
ALTER TABLE function_stats ADD COLUMN allocations INTEGER;
ALTER TABLE function_stats ADD COLUMN allocated_bytes INTEGER;
ALTER TABLE function_stats ADD COLUMN frees INTEGER;
ALTER TABLE function_stats ADD COLUMN freed_bytes INTEGER;
ALTER TABLE function_stats ADD COLUMN allocated_self_bytes INTEGER;
UPDATE function_stats SET cpu_ns = c.cpu_ns, cpu_self_ns = c.cpu_self_ns,
 allocations = c.allocations, allocated_bytes = c.allocated_bytes, frees = c.frees,
 freed_bytes = c.freed_bytes, allocated_self_bytes = c.allocated_self_bytes
FROM function_costs AS c
WHERE c.session_id = function_stats.session_id AND c.function_id = function_stats.function_id;

-- What a thread has allocated and freed by malloc's family, from its begin or that of the counting
-- on (policy thread_memory, or memory of any function); NULL: nobody counted.
ALTER TABLE threads ADD COLUMN malloc_allocations INTEGER;
ALTER TABLE threads ADD COLUMN malloc_bytes INTEGER; -- usable ones
ALTER TABLE threads ADD COLUMN malloc_frees INTEGER;
ALTER TABLE threads ADD COLUMN malloc_freed_bytes INTEGER;

DROP VIEW thread_times;
CREATE VIEW thread_times AS -- steps of threads, each of which follows the one before; see README
SELECT r.session_id, r.process_number, e.value ->> 0 AS thread_number,
       r.at_ns - (e.value ->> 1) AS from_ns, r.at_ns - (e.value ->> 1) + (e.value ->> 2) AS to_ns,
       e.value ->> 3 AS cpu_ns, e.value ->> 4 AS ready_ns,
       max((e.value ->> 2) - (e.value ->> 3) - (e.value ->> 4), 0) AS waiting_ns,
       r.at_ns AS reported_ns, e.value ->> 5 AS allocations, e.value ->> 6 AS allocated_bytes,
       e.value ->> 7 AS frees, e.value ->> 8 AS freed_bytes
FROM reports AS r, json_each(r.payload, '$.steps') AS e
WHERE r.monitor = 'threads' AND r.kind = 'times' AND e.type = 'array';

-- Names and types of values, by debug data or by the signature of a rule.
DROP VIEW value_types;
CREATE VIEW value_types AS -- position as in arguments
SELECT DISTINCT f.function_id, m.session_id, json_extract(v.value, '$.position') AS position,
       json_extract(v.value, '$.name') AS name, json_extract(v.value, '$.type') AS type,
       json_extract(v.value, '$.state') AS state -- recorded; unknown: the compiler removed or moved it;
                                                 -- unsupported: no kind holds its type,
                                                 -- or it is too far up the stack
FROM reports AS r, json_each(r.payload, '$.functions') AS g, json_each(g.value, '$.values') AS v,
     session_modules AS m, functions AS f
WHERE r.monitor = 'values' AND r.kind = 'types' AND g.type = 'object' AND v.type = 'object'
  AND m.session_id = r.session_id AND m.number = json_extract(r.payload, '$.module')
  AND f.module_id = m.module_id AND f.offset = json_extract(g.value, '$.offset')
UNION ALL
SELECT DISTINCT f.function_id, r.session_id,
       (SELECT count(*) FROM json_each(r.names) AS w -- a size in brackets may have a comma
        WHERE w.key <= v.key AND (instr(w.value, ']') = 0 OR instr(w.value, '[') > 0)),
       coalesce(nullif(trim(substr(v.value, 1, instr(v.value, ':') - 1)), '_'), ''),
       trim(substr(v.value, instr(v.value, ':') + 1)) ||
       iif(instr(v.value, '[') > 0 AND instr(v.value, ']') = 0,
           ',' || trim(json_extract(r.names, '$[' || (v.key + 1) || ']')), ''), 'recorded'
FROM (SELECT g.session_id, g.rule ->> 'function' AS pattern,
             '["' || replace(substr(g.rule ->> 'signature', 2, instr(g.rule ->> 'signature', ')') - 2),
                             ',', '","') || '"]' AS names
      FROM (SELECT p.session_id, iif(e.type = 'object', e.value, '{}') AS rule
            FROM policies AS p, json_each(iif(json_valid(p.document), p.document, '{}'), '$.values') AS e) AS g
      WHERE g.rule ->> 'signature' IS NOT NULL) AS r
CROSS JOIN session_modules AS m
CROSS JOIN functions AS f
CROSS JOIN json_each(iif(json_valid(r.names), r.names, '[]')) AS v
WHERE m.session_id = r.session_id AND f.module_id = m.module_id
  AND f.name GLOB r.pattern AND instr(v.value, ':') > 0;
