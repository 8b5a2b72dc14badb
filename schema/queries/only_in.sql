-- title: Functions that only one set of sessions called
-- question: Which functions were called in sessions of one name, and in none of another?
-- parameter: name = * | name or command of the sessions, a glob
-- parameter: without = - | name or command of the others, a glob
-- parameter: limit = 100 | how many
-- column: function | the function
-- column: module | its file
-- column: calls | calls in all of the sessions
-- column: sessions | number of sessions that called it
-- example: sojourn sql --query only_in --param name=after --param without=before
WITH named AS (
    SELECT session_id, iif(name = '', command, name) AS label FROM sessions),
others AS (
    SELECT DISTINCT f.symbol_key FROM named AS n
    JOIN function_stats AS s ON s.session_id = n.session_id
    JOIN functions AS f ON f.function_id = s.function_id
    WHERE n.label GLOB :without)
SELECT f.name AS function, m.path AS module, sum(s.calls) AS calls,
       count(DISTINCT s.session_id) AS sessions
FROM named AS n
JOIN function_stats AS s ON s.session_id = n.session_id
JOIN functions AS f ON f.function_id = s.function_id
JOIN modules AS m ON m.module_id = f.module_id
WHERE n.label GLOB :name AND f.symbol_key NOT IN (SELECT symbol_key FROM others)
GROUP BY f.symbol_key
ORDER BY calls DESC
LIMIT :limit
