-- Sojourn store, version 10: native stacks.

CREATE TABLE stacks ( -- where threads stood when a trigger asked for it; a row for each frame
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,             -- of the stack in the session, from 1
    level INTEGER NOT NULL,              -- 0: where the thread was; then its callers
    taken INTEGER NOT NULL,              -- stacks of one moment share it
    at_ns INTEGER NOT NULL,
    process_number INTEGER NOT NULL,
    tid INTEGER NOT NULL,
    thread_name TEXT NOT NULL DEFAULT '',
    cause TEXT NOT NULL,                 -- event and subject of the trigger
    function TEXT NOT NULL DEFAULT '',   -- symbol; '' when there is none
    module TEXT NOT NULL DEFAULT '',     -- path; '': no file
    offset INTEGER NOT NULL,             -- in the module's file, else the address
    is_cut INTEGER NOT NULL DEFAULT 0,   -- the thread has more frames than could be told
    PRIMARY KEY (session_id, number, level)
) STRICT, WITHOUT ROWID;
