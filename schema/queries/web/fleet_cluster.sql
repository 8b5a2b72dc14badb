-- Questions of the dashboard to a cluster, in ClickHouse's SQL.

-- name: heat_of_cluster
-- engine: cluster
-- bind: name text
-- row: device text, build text, p95_ns, sessions, is_estimate, unknown id
-- The question `heat` for all labs. A time is the middle of its histogram bin. `unknown` counts the sessions for which
-- it is not known whether times are estimates.
SELECT named AS device, build,
       if(empty(counted), NULL, if(bin < 32, toInt64(bin), bitShiftLeft(toInt64(bitAnd(bin, 15) + 16), shift)
          + intDiv(bitShiftLeft(toInt64(1), shift) - 1, 2))) AS p95_ns, sessions, is_estimate, unknown
FROM (SELECT any(device_name) AS named, substring(build_id, 1, 12) AS build, uniqExact(session) AS sessions, sumMap(bins, counts) AS merged,
             tupleElement(merged, 2) AS counted,
             arrayFirst((one, sum) -> sum >= greatest(1, ceil(0.95 * arraySum(counted))), tupleElement(merged, 1),
                        arrayCumSum(counted)) AS bin,
             toUInt8(if(bin < 32, 0, intDiv(bin, 16) - 1)) AS shift,
             countIf(ifNull(untimed_calls, 0) > 0) > 0 AS is_estimate, uniqExactIf(session, isNull(untimed_calls)) AS unknown
      FROM function_stats
      WHERE symbol_key GLOBAL IN (SELECT symbol_key FROM function_stats WHERE name = :name)
      GROUP BY device, build_id) AS found
ORDER BY build, device LIMIT 400
