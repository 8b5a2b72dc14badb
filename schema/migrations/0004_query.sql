-- What questions, retention and symbols need beyond the calls themselves.

CREATE TABLE removals ( -- sessions that were removed, and why
    removal_id INTEGER PRIMARY KEY,
    session_uuid BLOB NOT NULL,          -- 16 bytes
    name TEXT NOT NULL,
    device TEXT NOT NULL,
    stored_calls INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL,
    reason TEXT NOT NULL,                -- by whom or by which rule
    removed_realtime_ns INTEGER NOT NULL
) STRICT;

CREATE TABLE symbol_files ( -- files whose names and lines were added later
    symbol_file_id INTEGER PRIMARY KEY,
    build_id BLOB NOT NULL,
    path TEXT NOT NULL,
    named_functions INTEGER NOT NULL,    -- that had no name before
    lined_functions INTEGER NOT NULL,    -- that have file and line now
    added_realtime_ns INTEGER NOT NULL,
    UNIQUE (build_id, path)
) STRICT;

CREATE TABLE function_lines ( -- where functions are written
    function_id INTEGER PRIMARY KEY,
    file TEXT NOT NULL,
    line INTEGER NOT NULL
) STRICT;

CREATE TABLE inlined_functions ( -- functions whose code lies inside of another
    function_id INTEGER NOT NULL,        -- the function that holds it
    number INTEGER NOT NULL,             -- from 1, outer ones before those inside of them
    depth INTEGER NOT NULL,              -- 1: inlined into the function itself
    name TEXT NOT NULL,
    call_file TEXT NOT NULL,             -- where it is called
    call_line INTEGER NOT NULL,
    PRIMARY KEY (function_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX inlined_by_name ON inlined_functions (name);

CREATE INDEX annotations_by_session ON annotations (session_id);
CREATE INDEX session_modules_by_module ON session_modules (module_id);
