-- Sojourn store, version 42: when a session was heard of last, by the collector's own clock.

ALTER TABLE sessions ADD COLUMN received_realtime_ns INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET received_realtime_ns =
    min(coalesce(ended_realtime_ns, started_realtime_ns), unixepoch('now') * 1000000000);
