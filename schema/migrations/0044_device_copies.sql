-- Sojourn store, version 44: machines that share one device's identity are noticed, and one of them runs each command.

ALTER TABLE commands ADD COLUMN claimed_by INTEGER; -- random number of the daemon that runs it; 0: an older daemon

CREATE TABLE device_copies ( -- devices of which two daemons polled by turns
    device_id INTEGER PRIMARY KEY REFERENCES devices,
    first_seen_realtime_ns INTEGER NOT NULL,
    last_seen_realtime_ns INTEGER NOT NULL
) STRICT;

CREATE VIEW copied_devices AS -- devices of which two daemons poll at present
SELECT device_id, first_seen_realtime_ns, last_seen_realtime_ns FROM device_copies
WHERE last_seen_realtime_ns > (unixepoch('now') - 600) * 1000000000;

-- Without them each announcement of a session reads all removals, and each removal reads all sessions.
CREATE INDEX removals_by_session ON removals (session_uuid);
CREATE INDEX sessions_by_parent ON sessions (parent_session_id);
