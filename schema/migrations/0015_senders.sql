-- Who may write what: a session belongs to the device whose connection first named it, and where no
-- tokens are asked to those, too, who know its secret. What others send is refused, and kept here.

ALTER TABLE sessions ADD COLUMN secret_digest BLOB; -- SHA-256 of the recorder's secret; NULL: it had none

CREATE TABLE refused_frames ( -- of devices, for sessions that are not theirs; at most 1,000 rows
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    sender_uuid BLOB NOT NULL,           -- the device that its connection is bound to
    frames INTEGER NOT NULL,
    reason TEXT NOT NULL,                -- of the last one
    first_realtime_ns INTEGER NOT NULL,
    last_realtime_ns INTEGER NOT NULL,
    PRIMARY KEY (session_id, sender_uuid)
) STRICT, WITHOUT ROWID;

CREATE TABLE quarantined_blocks ( -- that claim a range of events which is stored, with other events
    quarantined_id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    stream INTEGER NOT NULL,             -- number in the session
    first_event INTEGER NOT NULL,
    event_count INTEGER NOT NULL,
    sender_uuid BLOB,                    -- NULL: the collector's own process
    reason TEXT NOT NULL,
    arrived_realtime_ns INTEGER NOT NULL,
    data BLOB NOT NULL                   -- the block as it came
) STRICT;
CREATE INDEX quarantined_blocks_by_range ON quarantined_blocks (session_id, stream, first_event, event_count);

-- Enrolment: an invitation creates a device; one made for a device lets it be taken over.
ALTER TABLE enrolment_tokens ADD COLUMN for_device_id INTEGER REFERENCES devices; -- NULL: for a new one

-- A module is stored once for all devices that have it; each has it where it likes.
ALTER TABLE session_modules ADD COLUMN path TEXT; -- on the session's device; NULL: as in modules
