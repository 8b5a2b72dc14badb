-- Sojourn store, version 22: global variables that map files name.

CREATE VIEW globals AS -- global variables of a session's modules, as a map file names them
SELECT DISTINCT m.session_id, m.module_id, json_extract(g.value, '$.name') AS name,
       json_extract(g.value, '$.offset') AS offset, json_extract(g.value, '$.size') AS size_bytes
FROM reports AS r, json_each(r.payload, '$.globals') AS g, session_modules AS m
WHERE r.monitor = 'map' AND r.kind = 'globals' AND g.type = 'object'
  AND m.session_id = r.session_id AND m.number = json_extract(r.payload, '$.module');
