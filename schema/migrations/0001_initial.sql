-- Sojourn store, version 1. See schema/README.md for each column with its unit.
-- Times `*_ns` of calls, threads, marks and gaps are nanoseconds since the start of their session
-- (sessions.started_ticks); `*_realtime_ns` are nanoseconds since the Unix epoch, device clock.

CREATE TABLE devices (
    device_id INTEGER PRIMARY KEY,
    uuid BLOB NOT NULL UNIQUE,           -- 16 bytes, persisted on the device
    name TEXT NOT NULL,
    model TEXT NOT NULL DEFAULT '',
    os TEXT NOT NULL DEFAULT '',
    machine TEXT NOT NULL DEFAULT '',
    agent_version TEXT NOT NULL DEFAULT '',
    tags TEXT NOT NULL DEFAULT '{}',     -- JSON object
    first_seen_realtime_ns INTEGER NOT NULL,
    last_seen_realtime_ns INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
    session_id INTEGER PRIMARY KEY,
    uuid BLOB NOT NULL UNIQUE,           -- 16 bytes
    device_id INTEGER NOT NULL REFERENCES devices,
    name TEXT NOT NULL DEFAULT '',
    command TEXT NOT NULL DEFAULT '',
    mode TEXT NOT NULL DEFAULT 'trace',
    state TEXT NOT NULL DEFAULT 'recording', -- recording completed interrupted crashed killed lost
    started_realtime_ns INTEGER NOT NULL,
    ended_realtime_ns INTEGER,
    started_ticks INTEGER NOT NULL,
    ended_ticks INTEGER,
    tick_ns_numerator INTEGER NOT NULL,  -- duration_ns = ticks * numerator / denominator
    tick_ns_denominator INTEGER NOT NULL,
    clock_step INTEGER NOT NULL DEFAULT 1,
    clock_name TEXT NOT NULL DEFAULT '',
    parent_session_id INTEGER REFERENCES sessions,
    cause TEXT NOT NULL DEFAULT '',
    policy_version INTEGER NOT NULL DEFAULT 0,
    tags TEXT NOT NULL DEFAULT '{}',
    pinned INTEGER NOT NULL DEFAULT 0,
    -- sums over what is stored, kept at ingest
    stored_blocks INTEGER NOT NULL DEFAULT 0,
    stored_bytes INTEGER NOT NULL DEFAULT 0,
    stored_calls INTEGER NOT NULL DEFAULT 0,
    stored_events INTEGER NOT NULL DEFAULT 0,
    lost_calls INTEGER NOT NULL DEFAULT 0,
    lost_events INTEGER NOT NULL DEFAULT 0,
    -- what the device says it sent; NULL until the session has ended
    sent_calls INTEGER,
    sent_records INTEGER,
    sent_blocks INTEGER,
    device_lost_calls INTEGER,
    device_lost_events INTEGER,
    traced_cpu_ns INTEGER,
    estimated_probe_ns INTEGER
) STRICT;
CREATE INDEX sessions_by_device ON sessions (device_id, started_realtime_ns);

CREATE TABLE processes (
    process_id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,             -- in the session, from 1
    pid INTEGER NOT NULL,
    parent_number INTEGER NOT NULL DEFAULT 0,
    executable TEXT NOT NULL DEFAULT '',
    command TEXT NOT NULL DEFAULT '',
    how TEXT NOT NULL DEFAULT '',        -- launched forked exec attached
    started_ns INTEGER NOT NULL DEFAULT 0,
    ended_ns INTEGER,
    exit_code INTEGER,
    exit_signal INTEGER,
    core_dumped INTEGER NOT NULL DEFAULT 0,
    disarm_reason TEXT NOT NULL DEFAULT '',
    UNIQUE (session_id, number)
) STRICT;

CREATE TABLE threads (
    thread_id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,             -- in the session, from 1
    process_number INTEGER NOT NULL DEFAULT 0,
    tid INTEGER NOT NULL DEFAULT 0,
    name TEXT NOT NULL DEFAULT '',
    is_main INTEGER NOT NULL DEFAULT 0,
    started_ns INTEGER,
    ended_ns INTEGER,
    dropped_calls INTEGER NOT NULL DEFAULT 0,
    dropped_events INTEGER NOT NULL DEFAULT 0,
    waited_ns INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session_id, number)
) STRICT;

CREATE TABLE streams ( -- one execution stack; normally one per thread
    stream_id INTEGER PRIMARY KEY,       -- the high bits of call ids
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,             -- in the session, from 1
    thread_id INTEGER REFERENCES threads ON DELETE CASCADE,
    own_stack INTEGER NOT NULL DEFAULT 1, -- 0: coroutine or alternate signal stack
    calls INTEGER NOT NULL DEFAULT 0,
    first_enter_ns INTEGER,
    last_leave_ns INTEGER,
    max_depth INTEGER NOT NULL DEFAULT 0,
    ended INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session_id, number)
) STRICT;

CREATE TABLE modules ( -- a file of code, known by build-id; shared by all sessions
    module_id INTEGER PRIMARY KEY,
    build_id BLOB NOT NULL,
    functions_digest BLOB NOT NULL,      -- of offsets, sizes and names: two planners may see more
    path TEXT NOT NULL,
    machine TEXT NOT NULL DEFAULT '',
    first_function_id INTEGER NOT NULL,  -- functions of a module have consecutive ids
    function_count INTEGER NOT NULL,
    UNIQUE (build_id, functions_digest)
) STRICT;

CREATE TABLE functions (
    function_id INTEGER PRIMARY KEY,
    module_id INTEGER NOT NULL REFERENCES modules,
    offset INTEGER NOT NULL,             -- in the module
    size_bytes INTEGER NOT NULL,
    name TEXT NOT NULL,                  -- demangled; module+0xoffset when it has none
    symbol TEXT NOT NULL,                -- as in the symbol table; '' when it has none
    symbol_key INTEGER NOT NULL,         -- 64-bit hash of module file name and name: same function
                                         -- in another build
    source TEXT NOT NULL DEFAULT ''      -- symtab dynsym debug_file mini_debug_info map_file eh_frame
) STRICT;
CREATE INDEX functions_by_module ON functions (module_id, offset);
CREATE INDEX functions_by_name ON functions (name);
CREATE INDEX functions_by_key ON functions (symbol_key);

CREATE TABLE hook_plans ( -- which functions of a module were hooked; shared by equal sessions
    hook_plan_id INTEGER PRIMARY KEY,
    module_id INTEGER NOT NULL REFERENCES modules,
    digest BLOB NOT NULL,
    UNIQUE (module_id, digest)
) STRICT;

CREATE TABLE hook_plan_functions ( -- functions whose technique is not 'inline'
    hook_plan_id INTEGER NOT NULL REFERENCES hook_plans ON DELETE CASCADE,
    function_id INTEGER NOT NULL,
    technique TEXT NOT NULL,             -- none short leaf_copy trap entry return_slot got runtime
    reason TEXT NOT NULL,                -- why not hooked; '' when it is
    PRIMARY KEY (hook_plan_id, function_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE session_modules (
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,             -- in the session, from 1
    module_id INTEGER NOT NULL REFERENCES modules,
    hook_plan_id INTEGER NOT NULL REFERENCES hook_plans,
    first_function INTEGER NOT NULL,     -- session-wide id (as in blocks) of the first function
    function_count INTEGER NOT NULL,
    hooked_count INTEGER NOT NULL,
    PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE module_parts ( -- function tables that have not arrived completely yet
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,             -- of the module in the session
    first INTEGER NOT NULL,              -- function of the module that the part begins with
    function_count INTEGER NOT NULL,
    raw_bytes INTEGER NOT NULL,          -- of the table before zstd
    data BLOB NOT NULL,                  -- the table as sent
    PRIMARY KEY (session_id, number, first)
) STRICT;

CREATE TABLE mappings (
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    process_number INTEGER NOT NULL,
    module_number INTEGER NOT NULL,
    bias INTEGER NOT NULL,
    loaded_ns INTEGER NOT NULL,
    unloaded_ns INTEGER,
    PRIMARY KEY (session_id, process_number, module_number, bias)
) STRICT, WITHOUT ROWID;

CREATE TABLE refused_functions ( -- planned, but the agent left them alone
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    process_number INTEGER NOT NULL,
    function INTEGER NOT NULL,           -- session-wide id
    reason TEXT NOT NULL,
    PRIMARY KEY (session_id, process_number, function)
) STRICT, WITHOUT ROWID;

CREATE TABLE blocks ( -- calls as they came from the device
    block_id INTEGER PRIMARY KEY,
    stream_id INTEGER NOT NULL REFERENCES streams ON DELETE CASCADE,
    kind INTEGER NOT NULL,               -- sj_block_kind
    first_event INTEGER NOT NULL,
    event_count INTEGER NOT NULL,
    first_call INTEGER NOT NULL,
    call_count INTEGER NOT NULL,
    first_ticks INTEGER NOT NULL,
    last_ticks INTEGER NOT NULL,
    open_depth INTEGER NOT NULL,
    max_depth INTEGER NOT NULL,          -- of calls entered in the block
    max_duration_ticks INTEGER NOT NULL, -- of calls that ended in the block
    lost_calls INTEGER NOT NULL,
    lost_events INTEGER NOT NULL,
    functions BLOB,                      -- bitmap of hashed session-wide function ids entered
    -- calls of earlier blocks that ended in this one (index range, and the list: late_leaves.h)
    late_first_call INTEGER,
    late_last_call INTEGER,
    late BLOB,
    storage TEXT NOT NULL DEFAULT 'inline',
    data BLOB,                           -- the block's bytes
    quarantined TEXT,                    -- why its calls cannot be read; NULL: sound
    UNIQUE (stream_id, kind, first_event, event_count)
) STRICT;
CREATE INDEX blocks_by_call ON blocks (stream_id, kind, first_call);
CREATE INDEX blocks_by_time ON blocks (stream_id, first_ticks);

CREATE TABLE call_paths ( -- the call tree of a session, all threads together
    path_id INTEGER PRIMARY KEY,         -- session_id << 32 | node
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    parent_path_id INTEGER,              -- NULL: called by nothing recorded
    function_id INTEGER NOT NULL,
    depth INTEGER NOT NULL,              -- 0 for roots
    recursive INTEGER NOT NULL,          -- 1: the function occurs above it in the path
    calls INTEGER NOT NULL,              -- calls that ended
    total_ns INTEGER NOT NULL,
    self_ns INTEGER NOT NULL,
    min_ns INTEGER,
    max_ns INTEGER,
    unwound INTEGER NOT NULL,
    untrusted INTEGER NOT NULL,          -- calls whose time a gap or a wait makes inexact
    histogram BLOB,                      -- durations in ticks, see histogram.h
    state BLOB NOT NULL                  -- exact sums in ticks, from which the collector resumes
) STRICT;
CREATE INDEX call_paths_by_session ON call_paths (session_id, function_id);
CREATE INDEX call_paths_by_parent ON call_paths (parent_path_id);

CREATE TABLE function_stats (
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    function_id INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    total_ns INTEGER NOT NULL,           -- recursive activations not counted twice
    self_ns INTEGER NOT NULL,
    min_ns INTEGER,
    max_ns INTEGER,
    unwound INTEGER NOT NULL,
    untrusted INTEGER NOT NULL,
    histogram BLOB,
    PRIMARY KEY (session_id, function_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX function_stats_by_function ON function_stats (function_id);

CREATE TABLE call_edges (
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    caller_function_id INTEGER NOT NULL, -- 0: nothing recorded
    callee_function_id INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    total_ns INTEGER NOT NULL,           -- time in the callee when called by the caller
    self_ns INTEGER NOT NULL,
    PRIMARY KEY (session_id, caller_function_id, callee_function_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE gaps ( -- everything that is missing
    gap_id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    stream_id INTEGER,
    thread_number INTEGER,
    block_id INTEGER,                    -- NULL: reported outside of blocks
    number INTEGER,                      -- identity of those outside of blocks
    reason TEXT NOT NULL,                -- ring_full no_thread_slot torn paused spool_full waited orphan
    calls INTEGER NOT NULL,
    events INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL
) STRICT;
CREATE INDEX gaps_by_session ON gaps (session_id);
CREATE UNIQUE INDEX gaps_by_number ON gaps (session_id, number) WHERE number IS NOT NULL;

CREATE TABLE open_calls ( -- still open when their stream ended
    stream_id INTEGER NOT NULL REFERENCES streams ON DELETE CASCADE,
    call_index INTEGER NOT NULL,
    function_id INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    flags INTEGER NOT NULL,              -- sj_call_flag
    PRIMARY KEY (stream_id, call_index)
) STRICT, WITHOUT ROWID;

CREATE TABLE marks (
    mark_id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    is_end INTEGER NOT NULL,
    at_ns INTEGER NOT NULL,
    thread_number INTEGER NOT NULL DEFAULT 0, -- 0: given from outside
    source TEXT NOT NULL DEFAULT '',     -- app cli http
    UNIQUE (session_id, source, number)
) STRICT;

CREATE TABLE clock_pairs (
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    ticks INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    monotonic_ns INTEGER NOT NULL,
    boottime_ns INTEGER NOT NULL,
    realtime_ns INTEGER NOT NULL,
    uncertainty_ns INTEGER NOT NULL,
    PRIMARY KEY (session_id, ticks)
) STRICT, WITHOUT ROWID;

CREATE TABLE annotations (
    annotation_id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    call_id INTEGER,
    start_ns INTEGER,
    end_ns INTEGER,
    author TEXT NOT NULL DEFAULT '',
    note TEXT NOT NULL,
    created_realtime_ns INTEGER NOT NULL
) STRICT;

CREATE VIEW unhooked_functions AS
SELECT sm.session_id, f.function_id, f.name, m.path AS module, f.offset, f.size_bytes,
       h.reason AS reason
FROM session_modules AS sm
JOIN hook_plan_functions AS h ON h.hook_plan_id = sm.hook_plan_id AND h.technique = 'none'
JOIN functions AS f ON f.function_id = h.function_id
JOIN modules AS m ON m.module_id = f.module_id
UNION ALL
SELECT r.session_id, f.function_id, f.name, m.path, f.offset, f.size_bytes, r.reason
FROM refused_functions AS r
JOIN session_modules AS sm ON sm.session_id = r.session_id
    AND r.function BETWEEN sm.first_function AND sm.first_function + sm.function_count - 1
JOIN modules AS m ON m.module_id = sm.module_id
JOIN functions AS f ON f.function_id = m.first_function_id + r.function - sm.first_function;

CREATE VIEW thread_stats AS
SELECT t.thread_id, t.session_id, t.number AS thread_number, t.tid, t.name, t.is_main,
       sum(s.calls) AS calls, min(s.first_enter_ns) AS first_enter_ns,
       max(s.last_leave_ns) AS last_leave_ns,
       max(s.last_leave_ns) - min(s.first_enter_ns) AS run_time_ns,
       max(s.max_depth) AS max_depth, t.dropped_calls, t.dropped_events, t.waited_ns
FROM threads AS t JOIN streams AS s ON s.thread_id = t.thread_id
GROUP BY t.thread_id;
