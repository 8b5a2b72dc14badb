-- Sojourn store, version 43: removing a session looks at its own rows, not at those of all others.

-- Without them each row that goes has SQLite look for its children in the whole table.
CREATE INDEX streams_by_thread ON streams (thread_id);
CREATE INDEX session_modules_by_plan ON session_modules (hook_plan_id);
CREATE INDEX filtered_calls_by_function ON filtered_calls (function_id);
