-- Sojourn store, version 2: policies, and what they did.

CREATE TABLE policies ( -- what a session recorded, from when on
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,             -- in the session, from 1
    name TEXT NOT NULL DEFAULT '',
    version INTEGER NOT NULL DEFAULT 0,  -- as its author counts
    mode TEXT NOT NULL,                  -- trace profile flight
    budget_ppm INTEGER NOT NULL DEFAULT 0, -- of the program's CPU time; 0: none
    document TEXT NOT NULL,              -- JSON
    not_applied TEXT NOT NULL DEFAULT '[]', -- JSON list of what could not be
    applied_ns INTEGER NOT NULL,
    PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE profiles ( -- reports of sums per call path; the sums are in call_paths
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,             -- in the session, from 1
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    events INTEGER NOT NULL,
    bytes INTEGER NOT NULL,              -- as sent
    PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE decisions ( -- of the overhead budget
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,             -- in the session, from 1
    at_ns INTEGER NOT NULL,
    process_number INTEGER NOT NULL,
    function_id INTEGER,                 -- NULL: none in particular
    what TEXT NOT NULL,                  -- unhook rehook over refused
    reason TEXT NOT NULL,
    calls INTEGER NOT NULL,              -- of the function in the interval that decided
    total_calls INTEGER NOT NULL,        -- of the function in the session so far
    overhead_ppm INTEGER NOT NULL,       -- estimated, before
    budget_ppm INTEGER NOT NULL,
    PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE triggers ( -- that fired
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,             -- in the session, from 1
    at_ns INTEGER NOT NULL,
    thread_number INTEGER,               -- NULL: none
    place INTEGER NOT NULL,              -- in the policy's list, from 0
    event TEXT NOT NULL,                 -- slow_call jank rate nth_call mark command crash app
    subject TEXT NOT NULL DEFAULT '',
    value INTEGER NOT NULL DEFAULT 0,    -- ns for slow_call and jank, else a count
    actions TEXT NOT NULL,
    suppressed INTEGER NOT NULL DEFAULT 0, -- that came too soon or too often before this one
    child_session_uuid BLOB,             -- of the dump
    PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE filtered_frames ( -- so that none is counted twice
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,
    PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE filtered_calls ( -- calls that the policy counted and did not keep
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    function_id INTEGER NOT NULL REFERENCES functions,
    reason TEXT NOT NULL,                -- depth minimum sampled thread
    calls INTEGER NOT NULL,
    total_ns INTEGER NOT NULL,
    PRIMARY KEY (session_id, function_id, reason)
) STRICT, WITHOUT ROWID;
