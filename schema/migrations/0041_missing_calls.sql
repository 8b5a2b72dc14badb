-- Sojourn store, version 41: what an ended session sent and this database does not hold is a loss.

-- Parts of lost_calls and lost_events; their gaps have the reason not_stored.
ALTER TABLE sessions ADD COLUMN missing_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN missing_events INTEGER NOT NULL DEFAULT 0; -- at least
ALTER TABLE sessions ADD COLUMN missing_blocks INTEGER NOT NULL DEFAULT 0;
