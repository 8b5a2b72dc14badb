-- title: Waiting calls
-- question: Which functions have calls that take far longer than they usually do: locks, disk, network?
-- parameter: session = last | the session
-- parameter: factor = 20 | slowest call against the median
-- parameter: least_ns = 1000000 | slowest calls below this are left out, ns
-- column: function | name
-- column: calls | number of calls
-- column: p50_ns | half of its calls take at most this, ns
-- column: p99_ns | all but one in a hundred take at most this, ns
-- column: max_ns | the longest, ns
-- column: times | max_ns / p50_ns
-- example: sojourn sql --cluster URL --query waiting_calls --param factor=100
SELECT function, calls, p50_ns, p99_ns, max_ns, intDiv(max_ns, greatest(p50_ns, 1)) AS times
FROM (
    SELECT name AS function, calls, assumeNotNull(max_ns) AS max_ns, assumeNotNull(min_ns) AS min_ns, arraySum(counts) AS every,
           arrayFirst((bin, sum) -> sum >= greatest(1, ceil(0.5 * every)), bins, arrayCumSum(counts)) AS half,
           arrayFirst((bin, sum) -> sum >= greatest(1, ceil(0.99 * every)), bins, arrayCumSum(counts)) AS high,
           toUInt8(if(half < 32, 0, intDiv(half, 16) - 1)) AS half_shift,
           toUInt8(if(high < 32, 0, intDiv(high, 16) - 1)) AS high_shift,
           if(half < 32, toInt64(half), bitShiftLeft(toInt64(bitAnd(half, 15) + 16), half_shift)
              + intDiv(bitShiftLeft(toInt64(1), half_shift) - 1, 2)) AS half_ns,
           if(high < 32, toInt64(high), bitShiftLeft(toInt64(bitAnd(high, 15) + 16), high_shift)
              + intDiv(bitShiftLeft(toInt64(1), high_shift) - 1, 2)) AS high_ns,
           if(ceil(0.5 * every) <= 1, min_ns, least(max_ns, greatest(min_ns, half_ns))) AS p50_ns,
           if(every = 1, min_ns, if(ceil(0.99 * every) >= every, max_ns, least(max_ns, greatest(min_ns, high_ns)))) AS p99_ns
    FROM function_stats
    WHERE session = :session AND max_ns >= :least_ns) AS q1
WHERE max_ns > :factor * p50_ns
ORDER BY max_ns DESC
