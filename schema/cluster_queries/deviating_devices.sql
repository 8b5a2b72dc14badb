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
-- example: sojourn sql --cluster URL --query deviating_devices --param factor=2
SELECT device, function, mean_self_ns, fleet_ns, if(fleet_ns = 0, NULL, mean_self_ns / fleet_ns) AS times, devices
FROM (
    SELECT device, function, mean_self_ns, fleet_ns, devices
    FROM (
        SELECT max(called) AS function, groupArray(named) AS names, groupArray(mean) AS means, count() AS devices,
               arraySort(means)[intDiv(devices + 1, 2)] AS fleet_ns
        FROM (
            SELECT symbol_key, any(device_name) AS named, max(name) AS called, sum(self_ns) / sum(calls) AS mean
            FROM function_stats
            GROUP BY symbol_key, device
            HAVING sum(calls) >= :least_calls) AS q3
        GROUP BY symbol_key
        HAVING devices > 1) AS q2
    ARRAY JOIN names AS device, means AS mean_self_ns) AS q1
WHERE mean_self_ns > :factor * fleet_ns
ORDER BY mean_self_ns - fleet_ns DESC
