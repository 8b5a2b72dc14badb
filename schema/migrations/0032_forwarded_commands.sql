-- Sojourn store, version 32: what of the audit of commands a cluster has been given.

CREATE TABLE forwarded_commands (
    target TEXT NOT NULL,                -- URL and database of the cluster
    command_id INTEGER NOT NULL,         -- also of commands that are gone here
    content TEXT NOT NULL,               -- what it was when it was given; '': it was removed
    PRIMARY KEY (target, command_id)
) STRICT, WITHOUT ROWID;
