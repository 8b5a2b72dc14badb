-- Sojourn store, version 34: when freed memory was allocated, freed and used; which event of an object's history has no partner.

CREATE TABLE zombie_moments ( -- when each stack of zombie_frames was taken; calls open then are in `calls`
    report_id INTEGER NOT NULL REFERENCES reports ON DELETE CASCADE,
    stack TEXT NOT NULL,                 -- use, free, allocation, or history and the number of the event
    at_ns INTEGER NOT NULL,              -- since the session's start; negative: before it
    tid INTEGER NOT NULL,
    PRIMARY KEY (report_id, stack)
) STRICT, WITHOUT ROWID;

ALTER TABLE zombie_events ADD COLUMN partner INTEGER; -- the event that takes back what this one gave, or the reverse; NULL: none does

CREATE VIEW zombie_threads AS -- the recorded thread of each moment, in a forked child perhaps its parent's; NULL: none
SELECT m.report_id, m.stack, m.at_ns, m.tid, r.session_id,
    (SELECT t.thread_id FROM threads t
     WHERE t.session_id = r.session_id AND t.tid = m.tid
         AND coalesce(t.started_ns, m.at_ns) <= m.at_ns AND coalesce(t.ended_ns, m.at_ns) >= m.at_ns
     ORDER BY t.started_ns DESC LIMIT 1) AS thread_id
FROM zombie_moments m JOIN reports r USING (report_id);
