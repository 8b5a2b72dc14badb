-- Statements of http/route_facets.c.

-- name: facets
WITH hit AS MATERIALIZED (SELECT s.session_id, s.device_id, s.state, {session_tags} AS tags, d.name
    FROM sessions s JOIN devices d ON d.device_id = s.device_id WHERE {session_matches}),
    valued AS ( SELECT 'device' AS facet, CAST(device_id AS TEXT) AS value, name AS label,
    count(*) AS sessions FROM hit GROUP BY device_id UNION ALL SELECT 'state', state, state, count(*)
    FROM hit GROUP BY state UNION ALL SELECT 'app', app, app, count(*)
    FROM (SELECT {file_name(p.executable)} AS app FROM hit JOIN processes p USING (session_id)
    WHERE p.number = 1) WHERE app <> '' GROUP BY app UNION ALL SELECT 'build', lower(hex(m.build_id)),
    min({file_name(m.path)}), count(DISTINCT hit.session_id) FROM hit JOIN processes p USING (session_id)
    JOIN session_modules sm ON sm.session_id = hit.session_id JOIN modules m ON m.module_id = sm.module_id
    AND m.path = p.executable WHERE p.number = 1 GROUP BY m.build_id UNION ALL SELECT 'tag',
    t.key || '=' || t.value, t.key || '=' || t.value, count(*) FROM hit, json_each(hit.tags) t
    WHERE t.key <> 'clock_rate_uncertainty_ppm' GROUP BY 2 UNION ALL SELECT 'mark', k.name, k.name,
    count(DISTINCT hit.session_id) FROM hit JOIN marks k ON k.session_id = hit.session_id GROUP BY k.name),
    ranked AS (SELECT *, row_number() OVER (PARTITION BY facet ORDER BY sessions DESC, value) AS place
    FROM valued)
SELECT facet, value, label, sessions
FROM ranked
WHERE place <= ?10
ORDER BY facet, place
