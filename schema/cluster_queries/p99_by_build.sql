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
-- example: sojourn sql --cluster URL --query p99_by_build --param function='parse_*'
SELECT f AS function, d AS device, b AS build, sessions, n AS calls,
       if(empty(counted), NULL, if(bin < 32, toInt64(bin), bitShiftLeft(toInt64(bitAnd(bin, 15) + 16), shift)
          + intDiv(bitShiftLeft(toInt64(1), shift) - 1, 2))) AS quantile_ns
FROM (
    SELECT f, d, b, sessions, n, counted,
           arrayFirst((one, sum) -> sum >= greatest(1, ceil(:quantile * arraySum(counted))), used,
                      arrayCumSum(counted)) AS bin,
           toUInt8(if(bin < 32, 0, intDiv(bin, 16) - 1)) AS shift
    FROM (
        SELECT any(name) AS f, any(device_name) AS d, build_id AS b, uniqExact(session) AS sessions,
               sum(calls) AS n, sumMap(bins, counts) AS merged, tupleElement(merged, 1) AS used,
               tupleElement(merged, 2) AS counted
        FROM function_stats
        WHERE symbol_key GLOBAL IN (SELECT symbol_key FROM function_stats WHERE name LIKE :function)
        GROUP BY symbol_key, device, build_id) AS q2) AS q1
ORDER BY calls DESC, function, device, build
