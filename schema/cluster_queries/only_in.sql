-- title: Functions that only one set of sessions called
-- question: Which functions were called in sessions of one name, and in none of another?
-- parameter: name = * | name or command of the sessions, a glob
-- parameter: without = - | name or command of the others, a glob
-- parameter: limit = 100 | how many
-- column: function | the function
-- column: module | its file
-- column: calls | calls in all of the sessions
-- column: sessions | number of sessions that called it
-- example: sojourn sql --cluster URL --query only_in --param name=after --param without=before
SELECT called AS function, module, calls, sessions
FROM (SELECT symbol_key, any(name) AS called, sum(n) AS calls, uniqExact(session) AS sessions
      FROM (SELECT session, symbol_key, name, calls AS n FROM function_stats
            WHERE session GLOBAL IN (SELECT session FROM sessions WHERE if(name = '', command, name) LIKE :name)
              AND symbol_key GLOBAL NOT IN (SELECT symbol_key FROM function_stats WHERE session GLOBAL IN
                  (SELECT session FROM sessions WHERE if(name = '', command, name) LIKE :without))) AS q2
      GROUP BY symbol_key) AS q1
ANY LEFT JOIN (SELECT symbol_key, any(path) AS module FROM (SELECT symbol_key, module AS path FROM functions) AS q4 GROUP BY symbol_key) AS q3 USING symbol_key
ORDER BY calls DESC
LIMIT :limit
