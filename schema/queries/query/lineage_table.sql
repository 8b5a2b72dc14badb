-- Statements of query/lineage_table.c.

-- part: lineage_table_lineage_columns
call_id INTEGER, session_id INTEGER, stream_id INTEGER, thread_id INTEGER, function_id INTEGER,
    parent_id INTEGER, depth INTEGER, start_ns INTEGER, end_ns INTEGER, duration_ns INTEGER, self_ns INTEGER,
    ending TEXT, flags INTEGER, caller_function_id INTEGER, tail_caller_id INTEGER,
    physical_parent_id INTEGER, physical_duration_ns INTEGER, cpu_ns INTEGER, cpu_self_ns INTEGER,
    allocations INTEGER, allocated_bytes INTEGER, frees INTEGER, freed_bytes INTEGER, net_bytes INTEGER,
    allocated_self_bytes INTEGER, of_call_id HIDDEN)

-- name: lineage_descendants_columns
CREATE TABLE descendants({lineage_table_lineage_columns}

-- name: lineage_ancestors_columns
CREATE TABLE ancestors({lineage_table_lineage_columns}
