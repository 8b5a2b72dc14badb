-- title: Where threads stood
-- question: Where did every thread stand when a trigger asked for native stacks?
-- parameter: session = last | the session
-- column: taken | number of the occasion
-- column: at_ns | ns since the session's start
-- column: cause | what the trigger saw
-- column: tid | thread
-- column: thread | name
-- column: level | 0: where the thread was; then its callers
-- column: function | symbol, or the place in the module
-- column: module | path
-- example: sojourn sql --query stacks
SELECT s.taken, s.at_ns, s.cause, s.tid, s.thread_name AS thread, s.level,
       iif(s.function <> '', s.function, printf('+0x%x', s.offset)) AS function, s.module
FROM stacks AS s
WHERE s.session_id = :session
ORDER BY s.taken, s.process_number, s.number, s.level
