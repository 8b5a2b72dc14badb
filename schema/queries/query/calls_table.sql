-- Statements of query/calls_table.c.

-- name: calls_table_columns
CREATE TABLE calls(call_id INTEGER, session_id INTEGER, stream_id INTEGER, thread_id INTEGER,
    function_id INTEGER, parent_id INTEGER, depth INTEGER, start_ns INTEGER, end_ns INTEGER,
    duration_ns INTEGER, self_ns INTEGER, ending TEXT, flags INTEGER, caller_function_id INTEGER,
    tail_caller_id INTEGER, physical_parent_id INTEGER, physical_duration_ns INTEGER, cpu_ns INTEGER,
    cpu_self_ns INTEGER, allocations INTEGER, allocated_bytes INTEGER, frees INTEGER, freed_bytes INTEGER,
    net_bytes INTEGER, allocated_self_bytes INTEGER)
