-- Sums are written less often than blocks; what they do not count yet is known.

ALTER TABLE sessions ADD COLUMN unsummed_from_block INTEGER; -- first block that no sum counts yet; NULL: none
CREATE INDEX sessions_unsummed ON sessions (session_id) WHERE unsummed_from_block IS NOT NULL;
