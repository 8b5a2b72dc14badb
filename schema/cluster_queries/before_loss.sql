-- title: What preceded loss
-- question: Which calls of its thread were the last before each gap?
-- needs: calls
-- parameter: session = last | the session
-- parameter: calls = 5 | how many before each
-- parameter: limit = 100 | how many rows
-- column: gap_ns | when the gap began, ns since the session's start
-- column: lost_calls | calls that are missing in it
-- column: reason | why
-- column: before | 1: the last call that was entered before it, 2: the one before
-- column: function | its function
-- column: call_id | the call
-- example: sojourn sql --cluster URL --query before_loss
SELECT gap_ns, lost_calls, reason, before, function, call_id
FROM (
    SELECT gap_ns, lost_calls, reason, before, call_id
    FROM (
        SELECT gap_ns, lost_calls, reason, arraySlice(arrayReverseSort(groupArray(call)), 1, :calls) AS ids
        FROM (SELECT start_ns AS gap_ns, calls AS lost_calls, reason, assumeNotNull(thread_number) AS number FROM gaps
              WHERE session = :session AND (calls > 0 OR events > 0)
              ORDER BY start_ns LIMIT :limit) AS q3
        ALL INNER JOIN (SELECT assumeNotNull(thread_number) AS number, call_id AS call, start_ns AS began FROM calls
                        WHERE session = :session) AS q4 USING number
        WHERE began <= gap_ns AND began >= gap_ns - 10000000
        GROUP BY gap_ns, lost_calls, reason, number) AS q2
    ARRAY JOIN ids AS call_id, arrayEnumerate(ids) AS before) AS q1
ANY LEFT JOIN (SELECT call_id, name AS function FROM calls WHERE session = :session) AS q5 USING call_id
ORDER BY gap_ns, before
LIMIT :limit
