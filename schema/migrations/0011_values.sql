-- Sojourn store, version 11: values of arguments and results.

CREATE TABLE arguments ( -- what a policy's rules about values kept; one row for each rule and value
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    call_id INTEGER NOT NULL,            -- as in calls
    position INTEGER NOT NULL,           -- 0: the result; else the number of the argument
    kind TEXT NOT NULL,                  -- as the rule says: int, ..., string
    rule TEXT NOT NULL DEFAULT '',       -- whose condition it met; '': it was kept without one
    value ANY,                           -- INTEGER, REAL or TEXT; BLOB: a text that is not UTF-8
    note TEXT,                           -- of a text: cut, unreadable, null; NULL: it is whole
    PRIMARY KEY (session_id, call_id, position, kind, rule)
) STRICT, WITHOUT ROWID;

CREATE VIEW rule_hits AS -- values that met the condition of a rule
SELECT session_id, rule, call_id, position, kind, value, note FROM arguments WHERE rule <> '';
