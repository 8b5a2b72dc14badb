-- Sojourn store, version 28: what an account of freed memory could not see of memory pressure.

ALTER TABLE zombie_accounts ADD COLUMN pressure_unseen TEXT NOT NULL DEFAULT ''; -- what the kernel did not say of memory pressure, which then did not count: files, or `control group`
ALTER TABLE zombie_accounts ADD COLUMN quarantine_one_in_most INTEGER NOT NULL DEFAULT 0; -- one freed block in so many was quarantined when the overhead budget let least be
