-- Sojourn store, version 13: reports of monitors.

CREATE TABLE reports ( -- what monitors inside the traced program found; a row for each finding
    report_id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,             -- in the session, from 1
    at_ns INTEGER NOT NULL,
    process_number INTEGER,              -- NULL: none in particular
    thread_number INTEGER,               -- NULL: none
    monitor TEXT NOT NULL,               -- which monitor, e.g. heap
    kind TEXT NOT NULL,                  -- what it found; the monitor names its kinds
    payload TEXT NOT NULL,               -- a JSON object, as that kind defines it
    UNIQUE (session_id, number)
) STRICT;
