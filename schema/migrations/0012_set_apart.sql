-- Sojourn store, version 12: sessions whose sums cannot be made are set apart, so that others go on.

ALTER TABLE sessions ADD COLUMN unsummed_because TEXT; -- why sums cannot count unsummed_from_block; NULL: they will
