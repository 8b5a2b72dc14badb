-- Sojourn store, version 19: what of it a cluster of many labs has been given.

CREATE TABLE lab ( -- one row, made when it first forwards: which lab this is, of those that feed one cluster
    uuid BLOB NOT NULL
) STRICT;

CREATE TABLE forwarded_sessions ( -- what was given to which cluster; what is owed is the difference
    target TEXT NOT NULL,                -- URL and database of the cluster
    session_uuid BLOB NOT NULL,          -- also of sessions that are gone here
    version INTEGER NOT NULL,            -- under which the cluster has it
    content TEXT NOT NULL,               -- what it was when it was given; '': it was removed
    rows INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    forwarded_realtime_ns INTEGER NOT NULL,
    PRIMARY KEY (target, session_uuid)
) STRICT, WITHOUT ROWID;
