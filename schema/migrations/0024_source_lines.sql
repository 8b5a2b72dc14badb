-- Sojourn store, version 24: lines of methods, and whether they were entered.

CREATE VIEW source_lines AS -- lines that symbol files of a session's modules name, by function
WITH told AS (
    SELECT r.session_id, r.kind, json_extract(r.payload, '$.module') AS number,
           json_extract(r.payload, '$.file') AS file, json_extract(m.value, '$[0]') AS token,
           l.value AS line
    FROM reports AS r, json_each(r.payload, '$.methods') AS m, json_each(m.value) AS l
    WHERE r.monitor = 'lines' AND m.type = 'array' AND l.key > 0),
known AS ( -- modules of which all that ran was told: the last report is of no file
    SELECT DISTINCT session_id, json_extract(payload, '$.module') AS number
    FROM reports WHERE monitor = 'lines' AND kind = 'entered'
      AND json_extract(payload, '$.file') = '' AND json_array_length(payload, '$.methods') = 0)
SELECT t.session_id, s.module_id, f.function_id, t.file, t.line,
       max(CASE WHEN t.kind = 'entered' THEN 1
                WHEN k.number IS NOT NULL THEN 0 END) AS entered -- NULL: it is not known
FROM told AS t
JOIN session_modules AS s ON s.session_id = t.session_id AND s.number = t.number
JOIN functions AS f ON f.module_id = s.module_id AND f.offset = t.token
LEFT JOIN known AS k ON k.session_id = t.session_id AND k.number = t.number
GROUP BY t.session_id, f.function_id, t.file, t.line;
