-- title: Time between calls
-- question: How long is it from one call of a function to the next on the same thread?
-- needs: calls
-- parameter: session = last | the session
-- parameter: function = main | name of the function
-- parameter: from_ns = 0 | only calls that were entered from this moment on, ns since the session's start
-- parameter: to_ns = 9223372036854775807 | up to this one
-- column: gaps | how many
-- column: least_ns | the shortest, ns
-- column: median_ns | half of them are shorter, ns
-- column: p99_ns | 99 of 100 are shorter, ns
-- column: greatest_ns | the longest, ns
-- example: sojourn sql --cluster URL --query time_between_calls --param function=work
SELECT gaps, if(gaps = 0, NULL, sorted[1]) AS least_ns,
       if(gaps = 0, NULL, if(half = 1, sorted[1], if(half = gaps, sorted[gaps], least(sorted[gaps], greatest(sorted[1],
           bitShiftLeft(bitShiftRight(sorted[half], half_shift), half_shift)
           + intDiv(bitShiftLeft(toInt64(1), half_shift) - 1, 2)))))) AS median_ns,
       if(gaps = 0, NULL, if(high = 1, sorted[1], if(high = gaps, sorted[gaps], least(sorted[gaps], greatest(sorted[1],
           bitShiftLeft(bitShiftRight(sorted[high], high_shift), high_shift)
           + intDiv(bitShiftLeft(toInt64(1), high_shift) - 1, 2)))))) AS p99_ns,
       if(gaps = 0, NULL, sorted[gaps]) AS greatest_ns
FROM (
    SELECT sorted, length(sorted) AS gaps, toUInt64(greatest(1, ceil(0.5 * gaps))) AS half,
           toUInt64(greatest(1, ceil(0.99 * gaps))) AS high,
           toUInt8(if(sorted[half] < 32, 0, floor(log2(sorted[half])) - 4)) AS half_shift,
           toUInt8(if(sorted[high] < 32, 0, floor(log2(sorted[high])) - 4)) AS high_shift
    FROM (
        SELECT arraySort(groupArray(ns)) AS sorted
        FROM (
            SELECT arrayMap((s, e) -> s - e, arrayPopFront(starts), arrayPopBack(ends)) AS between
            FROM (
                SELECT arraySort((s, id) -> id, groupArray(start_ns), groupArray(call_id)) AS starts,
                       arraySort((e, id) -> id, groupArray(ifNull(start_ns + duration_ns, toInt64(9223372036854775807))),
                                 groupArray(call_id)) AS ends
                FROM calls
                WHERE session = :session AND name = :function AND start_ns >= :from_ns AND start_ns <= :to_ns
                GROUP BY bitShiftRight(call_id, 38)) AS q4) AS q3
        ARRAY JOIN between AS ns
        WHERE ns >= 0) AS q2) AS q1
