-- Sojourn store, version 21: messages to freed objects.

ALTER TABLE zombies ADD COLUMN class TEXT NOT NULL DEFAULT '';    -- of the freed object, as written in the source; '': no object
ALTER TABLE zombies ADD COLUMN selector TEXT NOT NULL DEFAULT ''; -- of the message

CREATE TABLE zombie_history ( -- what happened to an object before it was freed, where the policy keeps that
    report_id INTEGER NOT NULL REFERENCES reports ON DELETE CASCADE,
    number INTEGER NOT NULL,             -- from 0, in order; the stack of zombie_frames is 'history <number>'
    event TEXT NOT NULL,                 -- allocation, retain, release or autorelease
    owners INTEGER NOT NULL,             -- afterwards
    tid INTEGER NOT NULL,
    ticks INTEGER NOT NULL,              -- of the device's clock
    function TEXT NOT NULL,              -- the program's own that did it; '': not known
    PRIMARY KEY (report_id, number)
) STRICT, WITHOUT ROWID;

ALTER TABLE zombie_accounts ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;          -- freed objects that were kept
ALTER TABLE zombie_accounts ADD COLUMN kept_full INTEGER NOT NULL DEFAULT 0;     -- of them: let go because others needed the room
ALTER TABLE zombie_accounts ADD COLUMN kept_old INTEGER NOT NULL DEFAULT 0;      -- because of their age
ALTER TABLE zombie_accounts ADD COLUMN kept_pressure INTEGER NOT NULL DEFAULT 0; -- because memory was short, or on command
ALTER TABLE zombie_accounts ADD COLUMN kept_left INTEGER NOT NULL DEFAULT 0;     -- because the program was left
ALTER TABLE zombie_accounts ADD COLUMN kept_used INTEGER NOT NULL DEFAULT 0;     -- because they were used and the policy frees such
ALTER TABLE zombie_accounts ADD COLUMN not_kept INTEGER NOT NULL DEFAULT 0;      -- freed at once: no room, or in a signal handler
