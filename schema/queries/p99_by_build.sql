-- title: Durations by device and build
-- question: How long does a function take on each device, by build of its file?
-- parameter: function = main | its name, * and ? match any letters
-- parameter: quantile = 0.99 | quantile of the durations, 0 to 1
-- column: function | name
-- column: device | name of the device
-- column: build | build-id of the function's file
-- column: sessions | sessions that called it
-- column: calls | number of calls
-- column: quantile_ns | that quantile of the time between entry and exit, ns
-- example: sojourn sql --query p99_by_build --param function='parse_*'
SELECT f.name AS function, d.name AS device, lower(hex(m.build_id)) AS build,
       count(DISTINCT s.session_id) AS sessions, sum(s.calls) AS calls,
       histogram_quantile(histogram_merge(s.histogram, s.session_id), :quantile) AS quantile_ns
FROM function_stats AS s
JOIN functions AS f USING (function_id)
JOIN modules AS m USING (module_id)
JOIN sessions AS x USING (session_id)
JOIN devices AS d USING (device_id)
WHERE f.symbol_key IN (SELECT symbol_key FROM functions WHERE name GLOB :function)
GROUP BY f.symbol_key, d.device_id, m.build_id
ORDER BY calls DESC, function, device, build
