-- Sojourn store, version 38: calls that were counted without a clock.

-- Of calls whose times are estimates (calls.flags 16); NULL: all were timed.
ALTER TABLE function_stats ADD COLUMN untimed_calls INTEGER;
ALTER TABLE function_stats ADD COLUMN sampled_calls INTEGER;
ALTER TABLE function_stats ADD COLUMN error_ns INTEGER; -- standard error of total_ns
