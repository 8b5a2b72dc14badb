-- Sojourn store, version 7: the longest calls, and the timeline in three sizes of step. Both are made
-- while calls are received; sessions that were received before have none.

CREATE TABLE slow_calls ( -- of 1 us and longer: the 5 longest of each function and session
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    function_id INTEGER NOT NULL,
    place INTEGER NOT NULL,              -- 1: the longest
    call_id INTEGER NOT NULL,
    path_id INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL,
    self_ns INTEGER NOT NULL,
    ending INTEGER NOT NULL,             -- sj_ending
    flags INTEGER NOT NULL,              -- sj_call_flag
    PRIMARY KEY (session_id, function_id, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE timeline ( -- what a stream did, in steps of 2^level of its events
    stream_id INTEGER NOT NULL REFERENCES streams ON DELETE CASCADE,
    level INTEGER NOT NULL,              -- 14, 18, 22
    number INTEGER NOT NULL,             -- events number * 2^level and following
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    calls INTEGER NOT NULL,              -- entered
    max_depth INTEGER NOT NULL,          -- of calls entered
    path_id INTEGER,                     -- open at start_ns; NULL: no call was
    PRIMARY KEY (stream_id, level, number)
) STRICT, WITHOUT ROWID;
