-- title: Threads
-- question: How long did each thread run, how much did it call, how deep?
-- parameter: session = last | the session
-- column: thread | name
-- column: tid | number that the device's kernel gave the thread
-- column: is_main | 1: main thread
-- column: calls | number of calls
-- column: run_time_ns | last exit minus first entry, ns
-- column: max_depth | deepest nesting
-- column: waited_ns | time it waited for the recorder, ns
-- column: dropped_calls | entries dropped
-- example: sojourn sql --cluster URL --query thread_times
SELECT name AS thread, tid, is_main, calls, run_time_ns, max_depth, waited_ns, dropped_calls
FROM threads
WHERE session = :session
ORDER BY run_time_ns DESC
