-- Sojourn store, version 31: blocks that lie in files outside of the database.

CREATE TABLE block_places ( -- where blocks were moved to
    place_id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,          -- folder
    address TEXT NOT NULL,       -- its absolute path
    UNIQUE (kind, address)
) STRICT;

CREATE TABLE block_files ( -- files there: each holds blocks of one session, one after the other
    file_id INTEGER PRIMARY KEY,
    place_id INTEGER NOT NULL REFERENCES block_places,
    session_uuid BLOB NOT NULL,
    name TEXT NOT NULL,
    is_needed INTEGER NOT NULL,  -- 0: blocks do not refer to it yet, or no more: it is to be deleted
    UNIQUE (place_id, name)
) STRICT;
CREATE INDEX block_files_unneeded ON block_files (file_id) WHERE is_needed = 0;
