-- Statements of query/diff_table.c.

-- name: diff_columns
CREATE TABLE diff(row INTEGER, parent_row INTEGER, depth INTEGER, name TEXT, module TEXT, verdict TEXT,
    decided_by TEXT, ratio REAL, ratio_low REAL, ratio_high REAL, p_value REAL, p_adjusted REAL,
    self_ns_a INTEGER, self_ns_b INTEGER, typical_ns_a INTEGER, typical_ns_b INTEGER, total_ns_a INTEGER,
    total_ns_b INTEGER, calls_a REAL, calls_b REAL, calls_change TEXT, calls_ratio REAL, sessions_a INTEGER,
    sessions_b INTEGER, function_id_a INTEGER, function_id_b INTEGER, symbol_key INTEGER, cost_a INTEGER,
    cost_b INTEGER, compared_a INTEGER, compared_b INTEGER, needed_sessions INTEGER, matched_share REAL,
    is_comparable INTEGER, a HIDDEN, b HIDDEN, by HIDDEN)
