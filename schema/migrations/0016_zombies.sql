-- Sojourn store, version 16: uses of freed memory.

CREATE TABLE zombies ( -- findings about freed memory: reports of one mistake, in all sessions and builds
    zombie_id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,    -- of the kind and of the program's own functions on the stacks
    kind TEXT NOT NULL,                  -- use_after_free, overflow, ...: as reports.kind
    used_in TEXT NOT NULL,               -- the program's own function that made the mistake; '': not known
    freed_in TEXT NOT NULL,              -- that freed the memory; '': not freed, or not known
    allocated_in TEXT NOT NULL,          -- that allocated it; '': not known
    reports INTEGER NOT NULL,
    first_seen_realtime_ns INTEGER NOT NULL,
    last_seen_realtime_ns INTEGER NOT NULL,
    state TEXT NOT NULL,                 -- open, resolved, or reopened: seen again after it was resolved
    resolved_realtime_ns INTEGER,        -- NULL: never
    note TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE zombie_reports ( -- the report behind each occurrence of a finding
    report_id INTEGER PRIMARY KEY REFERENCES reports ON DELETE CASCADE,
    zombie_id INTEGER NOT NULL REFERENCES zombies ON DELETE CASCADE,
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    at_ns INTEGER NOT NULL,
    thread_name TEXT NOT NULL,           -- of the use
    tid INTEGER NOT NULL,
    access TEXT,                         -- read or write; NULL: it was freed
    size INTEGER NOT NULL,               -- of the block, bytes as asked for
    offset INTEGER NOT NULL              -- of what was used, from the block's beginning
) STRICT;
CREATE INDEX zombie_reports_by_zombie ON zombie_reports (zombie_id);
CREATE INDEX zombie_reports_by_session ON zombie_reports (session_id);

CREATE TABLE zombie_frames ( -- stacks of a report; a row for each frame
    report_id INTEGER NOT NULL REFERENCES reports ON DELETE CASCADE,
    stack TEXT NOT NULL,                 -- use, free or allocation
    depth INTEGER NOT NULL,              -- 0: innermost
    tid INTEGER NOT NULL,
    function TEXT NOT NULL,              -- '': no symbol
    module TEXT NOT NULL,                -- path; '': in none
    offset INTEGER NOT NULL,             -- in the module's file, else the address
    is_own INTEGER NOT NULL,             -- 1: not of a system library
    PRIMARY KEY (report_id, stack, depth)
) STRICT, WITHOUT ROWID;

CREATE TABLE zombie_accounts ( -- what was watched in a process, and what was not and why
    report_id INTEGER PRIMARY KEY REFERENCES reports ON DELETE CASCADE,
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    process_number INTEGER,
    not_watched TEXT NOT NULL,           -- why the process was not watched; '': it was
    one_in INTEGER NOT NULL,             -- one allocation in so many was to be guarded
    guarded INTEGER NOT NULL,            -- allocations that were
    released INTEGER NOT NULL,           -- of them: freed
    evicted INTEGER NOT NULL,            -- of those: their room was used again
    refused_size INTEGER NOT NULL,       -- too large to be guarded
    refused_room INTEGER NOT NULL,       -- no block was free
    refused_memory INTEGER NOT NULL,     -- the kernel refused
    uses INTEGER NOT NULL,               -- mistakes that were found
    suppressed INTEGER NOT NULL          -- of them: not reported
) STRICT;
CREATE INDEX zombie_accounts_by_session ON zombie_accounts (session_id);
