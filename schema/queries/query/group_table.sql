-- Statements of query/group_table.c.

-- name: group_columns
CREATE TABLE call_groups(session_id INTEGER, process_id INTEGER, thread_id INTEGER, stream_id INTEGER,
    module_id INTEGER, function_id INTEGER, caller_function_id INTEGER, mark_id INTEGER, depth INTEGER,
    bucket_ns INTEGER, calls INTEGER, open INTEGER, duration_ns INTEGER, self_ns INTEGER, min_ns INTEGER,
    max_ns INTEGER, p50_ns INTEGER, p90_ns INTEGER, p99_ns INTEGER, histogram BLOB, keys HIDDEN,
    in_session HIDDEN, from_ns HIDDEN, to_ns HIDDEN, in_thread HIDDEN, of_function HIDDEN, called_by HIDDEN,
    shortest_ns HIDDEN, longest_ns HIDDEN, least_depth HIDDEN, greatest_depth HIDDEN, ended_as HIDDEN,
    at_position HIDDEN, with_value HIDDEN, least_value HIDDEN, greatest_value HIDDEN)
