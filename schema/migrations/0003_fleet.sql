-- The fleet: who may speak to the lab, and what the lab asked of whom. Secrets are kept as SHA-256
-- of 32 random bytes; nothing here lets anyone speak in a device's name.

CREATE TABLE enrolment_tokens ( -- one token enrols one device
    enrolment_id INTEGER PRIMARY KEY,
    token_hash BLOB NOT NULL UNIQUE,
    created_realtime_ns INTEGER NOT NULL,
    expires_realtime_ns INTEGER NOT NULL,
    device_id INTEGER REFERENCES devices, -- who used it
    used_realtime_ns INTEGER
) STRICT;

CREATE TABLE device_tokens (
    device_id INTEGER PRIMARY KEY REFERENCES devices,
    token_hash BLOB NOT NULL,
    enrolled_realtime_ns INTEGER NOT NULL,
    revoked_realtime_ns INTEGER
) STRICT;

CREATE TABLE device_status ( -- what a device said last about itself
    device_id INTEGER PRIMARY KEY REFERENCES devices,
    polled_realtime_ns INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT '{}'     -- JSON object
) STRICT;

CREATE TABLE commands ( -- every command ever given: the audit
    command_id INTEGER PRIMARY KEY AUTOINCREMENT,
    device_id INTEGER NOT NULL REFERENCES devices,
    kind TEXT NOT NULL,
    arguments TEXT NOT NULL DEFAULT '{}', -- JSON object
    state TEXT NOT NULL DEFAULT 'queued', -- queued sent done failed timed_out
    requested_by TEXT NOT NULL DEFAULT '',
    timeout_ms INTEGER NOT NULL,
    created_realtime_ns INTEGER NOT NULL,
    sent_realtime_ns INTEGER,
    finished_realtime_ns INTEGER,
    result TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX commands_open ON commands (state, device_id) WHERE state IN ('queued', 'sent');
