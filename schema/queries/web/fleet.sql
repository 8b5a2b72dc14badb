-- Devices, and how fast a function is on each.

-- name: heat
-- bind: name text
-- row: device text, build text, p95_ns, sessions, is_estimate
-- A build is the build id of the function's module. A function is found in all builds by its symbol key, which
-- functions without a name have, too.
SELECT d.name AS device, substr(lower(hex(m.build_id)), 1, 12) AS build,
       histogram_quantile(histogram_merge(f.histogram, f.session_id), 0.95) AS p95_ns,
       count(DISTINCT f.session_id) AS sessions, sum(coalesce(f.untimed_calls, 0)) > 0 AS is_estimate
FROM function_stats f JOIN functions n USING (function_id) JOIN modules m USING (module_id) JOIN sessions s USING (session_id)
JOIN devices d USING (device_id) WHERE n.symbol_key IN (SELECT symbol_key FROM functions WHERE name = :name)
GROUP BY d.device_id, m.build_id ORDER BY build, device LIMIT 400

-- name: device_sums
-- row: device_id, sessions, lost_calls, uncertainty_ns optional
-- What the collector knows about each device: its sessions and lost calls, and the error of its latest clock
-- comparison, which is NULL if its clock was never compared.
SELECT d.device_id, (SELECT count(*) FROM sessions s WHERE s.device_id = d.device_id) AS sessions,
       (SELECT coalesce(sum(s.lost_calls), 0) FROM sessions s WHERE s.device_id = d.device_id) AS lost_calls,
       (SELECT c.uncertainty_ns FROM device_clocks c WHERE c.device_id = d.device_id
           ORDER BY c.boottime_ns + c.offset_ns DESC LIMIT 1) AS uncertainty_ns
FROM devices d ORDER BY d.name, d.device_id LIMIT 1000

-- name: running_sessions
-- row: session_id, title text
-- The sessions that a device records now.
SELECT session_id, coalesce(nullif(name, ''), command) AS title FROM sessions
WHERE device_id = :device AND state = 'recording' ORDER BY session_id DESC LIMIT 20

-- name: clock_error
-- row: clock_error_ns id, uncertainty_ns
-- The clock error of the latest session of a device.
SELECT clock_error_ns, uncertainty_ns FROM session_collector_times
WHERE session_id = (SELECT max(session_id) FROM sessions WHERE device_id = :device)

-- name: sessions_of_device
-- row: session_id, uuid text, state text
SELECT session_id, lower(hex(uuid)) AS uuid, state FROM sessions
WHERE device_id = :device ORDER BY session_id DESC LIMIT 200

-- name: device_names
-- row: device_id, name text, build text
SELECT device_id, name, build FROM devices ORDER BY name, device_id LIMIT 500
