-- Statements of cli/cmd_coverage.c. ?1 is a set of sessions.

-- name: coverage_never
SELECT module, name
FROM coverage(?1, 'function')
WHERE entered = 0
AND unwatched < functions
ORDER BY module, name

-- name: coverage_beyond
-- ?2: the other set of sessions.
SELECT c.module, c.name, c.calls
FROM coverage(?1, 'function') AS c
LEFT JOIN (SELECT module, name FROM coverage(?2, 'function') WHERE entered > 0) AS b
    ON b.module = c.module AND b.name = c.name
WHERE c.entered > 0
AND b.name IS NULL
ORDER BY c.module, c.name

-- name: coverage_reaching
-- ?2: a pattern of names.
SELECT s.session_id AS session, n.name AS session_name, c.module, c.name, c.calls
FROM (SELECT DISTINCT session_id FROM session_set(?1)) AS s
JOIN sessions AS n USING (session_id)
JOIN coverage(CAST(s.session_id AS TEXT), 'function') AS c
WHERE c.name GLOB ?2
AND c.entered > 0
ORDER BY session, c.module, c.name
