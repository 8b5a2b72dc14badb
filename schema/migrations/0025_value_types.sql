-- Sojourn store, version 25: what debug data say of functions whose values are recorded.

CREATE VIEW value_types AS -- names and types of values; position as in arguments
SELECT DISTINCT f.function_id, m.session_id, json_extract(v.value, '$.position') AS position,
       json_extract(v.value, '$.name') AS name, json_extract(v.value, '$.type') AS type,
       json_extract(v.value, '$.state') AS state -- recorded; unknown: the compiler removed or moved it;
                                                 -- unsupported: no kind holds its type,
                                                 -- or it is too far up the stack
FROM reports AS r, json_each(r.payload, '$.functions') AS g, json_each(g.value, '$.values') AS v,
     session_modules AS m, functions AS f
WHERE r.monitor = 'values' AND r.kind = 'types' AND g.type = 'object' AND v.type = 'object'
  AND m.session_id = r.session_id AND m.number = json_extract(r.payload, '$.module')
  AND f.module_id = m.module_id AND f.offset = json_extract(g.value, '$.offset');
