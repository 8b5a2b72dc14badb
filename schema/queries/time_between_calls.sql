-- title: Time between calls
-- question: How long is it from one call of a function to the next on the same thread?
-- parameter: session = last | the session
-- parameter: function = main | name of the function; one with fewer calls is faster: 1.5 s for a million
-- parameter: from_ns = 0 | only calls that were entered from this moment on, ns since the session's start; a short time is fast on any recording
-- parameter: to_ns = 9223372036854775807 | up to this one
-- column: gaps | how many
-- column: least_ns | the shortest, ns
-- column: median_ns | half of them are shorter, ns
-- column: p99_ns | 99 of 100 are shorter, ns
-- column: greatest_ns | the longest, ns
-- example: sojourn sql --query time_between_calls --param function=work
WITH gaps AS (
    SELECT c.start_ns - lag(c.end_ns) OVER (PARTITION BY c.stream_id ORDER BY c.call_id) AS ns
    FROM calls AS c
    WHERE c.session_id = :session AND c.function_id IN (
        SELECT s.function_id FROM function_stats AS s JOIN functions AS f USING (function_id)
        WHERE s.session_id = :session AND f.name = :function)
      AND c.start_ns >= :from_ns AND c.start_ns <= :to_ns)
SELECT count(*) AS gaps, min(ns) AS least_ns, percentile(ns, 50) AS median_ns,
       percentile(ns, 99) AS p99_ns, max(ns) AS greatest_ns
FROM gaps
WHERE ns >= 0
