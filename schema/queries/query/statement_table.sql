-- Statements of query/statement_table.c.

-- part: statement_table_call_columns
call_id INTEGER, session_id INTEGER, stream_id INTEGER, thread_id INTEGER, function_id INTEGER,
    parent_id INTEGER, depth INTEGER, start_ns INTEGER, end_ns INTEGER, duration_ns INTEGER, self_ns INTEGER,
    ending TEXT, flags INTEGER, caller_function_id INTEGER, tail_caller_id INTEGER,
    physical_parent_id INTEGER, physical_duration_ns INTEGER, cpu_ns INTEGER, cpu_self_ns INTEGER,
    allocations INTEGER, allocated_bytes INTEGER, frees INTEGER, freed_bytes INTEGER, net_bytes INTEGER,
    allocated_self_bytes INTEGER

-- name: siblings_columns
CREATE TABLE siblings({statement_table_call_columns}, of_call_id HIDDEN)

-- name: siblings
SELECT c.*
FROM calls AS o
CROSS JOIN calls AS c ON c.parent_id = o.parent_id
WHERE o.call_id = ?1
UNION ALL
SELECT c.*
FROM calls AS o
CROSS JOIN calls AS c ON c.stream_id = o.stream_id
AND c.depth = 0
WHERE o.call_id = ?1
AND o.parent_id IS NULL

-- name: sequence_columns
CREATE TABLE sequence({statement_table_call_columns}, first_call_id HIDDEN, last_call_id HIDDEN)

-- name: sequence
SELECT c.*
FROM calls AS a
CROSS JOIN calls AS b
CROSS JOIN calls AS c ON c.session_id = a.session_id AND c.start_ns >= a.start_ns AND c.start_ns <= b.start_ns
WHERE a.call_id = ?1
AND b.call_id = ?2
AND b.session_id = a.session_id
AND c.call_id NOT IN (?1, ?2)
AND (c.stream_id <> a.stream_id OR c.call_id > ?1)
AND (c.stream_id <> b.stream_id OR c.call_id < ?2)
ORDER BY c.start_ns, c.call_id
