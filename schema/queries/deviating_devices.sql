-- title: Devices that deviate
-- question: On which devices does a function take much longer than on the rest of the fleet?
-- parameter: factor = 1.5 | mean self time against the fleet's median device
-- parameter: least_calls = 10 | fewer calls on a device are left out
-- column: device | name
-- column: function | name
-- column: mean_self_ns | self time a call on that device, ns
-- column: fleet_ns | the median of all devices, ns
-- column: times | mean_self_ns / fleet_ns
-- column: devices | devices that called it
-- example: sojourn sql --query deviating_devices --param factor=2
WITH per_device AS (
    SELECT x.device_id, f.symbol_key, max(f.name) AS function,
           CAST(sum(s.self_ns) AS REAL) / sum(s.calls) AS mean_self_ns
    FROM function_stats AS s
    JOIN sessions AS x USING (session_id)
    JOIN functions AS f USING (function_id)
    GROUP BY x.device_id, f.symbol_key
    HAVING sum(s.calls) >= :least_calls),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY symbol_key ORDER BY mean_self_ns) AS place,
           count(*) OVER (PARTITION BY symbol_key) AS devices
    FROM per_device),
fleet AS (
    SELECT symbol_key, mean_self_ns AS fleet_ns FROM ranked WHERE place = (devices + 1) / 2)
SELECT d.name AS device, r.function, r.mean_self_ns, fleet.fleet_ns,
       r.mean_self_ns / nullif(fleet.fleet_ns, 0) AS times, r.devices
FROM ranked AS r
JOIN fleet USING (symbol_key)
JOIN devices AS d USING (device_id)
WHERE r.devices > 1 AND r.mean_self_ns > :factor * fleet.fleet_ns
ORDER BY (r.mean_self_ns - fleet.fleet_ns) DESC
