-- Sojourn store, version 18: sessions of more call paths than are kept; the rarest are folded.

ALTER TABLE call_paths ADD COLUMN rare INTEGER NOT NULL DEFAULT 0; -- 1: a root that stands for its function as the caller in folded paths
ALTER TABLE sessions ADD COLUMN folded_paths INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN folded_calls INTEGER NOT NULL DEFAULT 0; -- calls on them: only their callers are known
