-- Sojourn store, version 35: code of methods.

CREATE VIEW method_code AS -- where code lies that a runtime has generated for methods
SELECT r.session_id, r.process_number, f.function_id, json_extract(c.value, '$[1]') AS address,
       json_extract(c.value, '$[2]') AS size_bytes
FROM reports AS r, json_each(r.payload, '$.code') AS c
JOIN session_modules AS s ON s.session_id = r.session_id
    AND json_extract(c.value, '$[0]') BETWEEN s.first_function
                                      AND s.first_function + s.function_count - 1
JOIN modules AS m ON m.module_id = s.module_id
JOIN functions AS f
    ON f.function_id = m.first_function_id + json_extract(c.value, '$[0]') - s.first_function
WHERE r.monitor = 'methods' AND r.kind = 'code' AND c.type = 'array';
