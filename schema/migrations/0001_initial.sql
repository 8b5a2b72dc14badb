-- Sojourn's database, version 1. schema/README.md is generated from the comments of this file: the
-- comment above a table describes it, the one above a column describes the column. Comments of
-- indexes and of statements are for those who work on the schema, and are not shown there. The build
-- leaves comments out, so that they need no space in databases.
--
-- Times `*_ns` are nanoseconds since the start of their session (sessions.started_ticks) unless their
-- column says otherwise; `*_realtime_ns` are nanoseconds since the Unix epoch.

-- ## Devices and what the collector asks of them

-- Machines that recorded.
CREATE TABLE devices (
    -- The key.
    device_id INTEGER PRIMARY KEY,
    -- 16 random bytes: the identity.
    uuid BLOB NOT NULL UNIQUE,
    -- The name.
    name TEXT NOT NULL,
    -- The hardware model, as the firmware gives it.
    model TEXT NOT NULL DEFAULT '',
    -- Operating system.
    os TEXT NOT NULL DEFAULT '',
    -- The machine: `x86_64` or `aarch64`.
    machine TEXT NOT NULL DEFAULT '',
    -- The version of the sender.
    agent_version TEXT NOT NULL DEFAULT '',
    -- JSON object of key=value tags: those of the device and of the collector.
    tags TEXT NOT NULL DEFAULT '{}',
    -- Nanoseconds since the Unix epoch, clock of the collector.
    first_seen_realtime_ns INTEGER NOT NULL,
    -- Nanoseconds since the Unix epoch, clock of the collector.
    last_seen_realtime_ns INTEGER NOT NULL,
    -- Build of the system software: kernel, image.
    build TEXT NOT NULL DEFAULT '',
    -- JSON object: the tags that the device sent.
    own_tags TEXT NOT NULL DEFAULT '{}',
    -- JSON object: the tags that were set in the collector. They override the device's own tags;
    -- null hides one.
    collector_tags TEXT NOT NULL DEFAULT '{}'
) STRICT;

-- The tokens of devices. A device shows its token to the collector. The collector keeps the SHA-256
-- of a token of 32 random bytes; `enrolment_tokens` keeps the tokens of invitations in the same
-- way.
CREATE TABLE device_tokens (
    -- The device (`devices`).
    device_id INTEGER PRIMARY KEY REFERENCES devices,
    -- SHA-256 of the device's token.
    token_hash BLOB NOT NULL,
    -- When the device was enrolled.
    enrolled_realtime_ns INTEGER NOT NULL,
    -- When its token ended; NULL: it is valid.
    revoked_realtime_ns INTEGER
) STRICT;

-- The audit of device tokens: each row is a device that was enrolled or revoked.
CREATE TABLE token_events (
    -- The key; it rises.
    event_id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The device (`devices`).
    device_id INTEGER NOT NULL REFERENCES devices,
    -- The event: `enrolled` or `revoked`.
    what TEXT NOT NULL,
    -- The user of the collector's machine.
    done_by TEXT NOT NULL DEFAULT '',
    -- When it happened.
    realtime_ns INTEGER NOT NULL
) STRICT;

-- The latest status that each device sent.
CREATE TABLE device_status (
    -- The device (`devices`).
    device_id INTEGER PRIMARY KEY REFERENCES devices,
    -- When the device last asked for commands. The stored time is at most a minute behind.
    polled_realtime_ns INTEGER NOT NULL,
    -- JSON object: version, recording, undelivered, refused (sessions of which the collector
    -- refused frames for good), spool_mb, spool_full, apps, policies, problem.
    status TEXT NOT NULL DEFAULT '{}'
) STRICT;

-- Devices of which two daemons polled alternately. Two machines, or two state directories, then
-- have the same identity and token. The view `copied_devices` shows the devices of the last 10
-- minutes.
CREATE TABLE device_copies (
    -- The device (`devices`).
    device_id INTEGER PRIMARY KEY REFERENCES devices,
    -- When the collector noticed it, ns since the Unix epoch.
    first_seen_realtime_ns INTEGER NOT NULL,
    -- When both daemons polled last. The stored time is at most a minute behind.
    last_seen_realtime_ns INTEGER NOT NULL
) STRICT;

-- A view: devices of which two daemons polled within the last 10 minutes.
--
-- - device_id INTEGER: The device (`devices`).
-- - first_seen_realtime_ns INTEGER: When the collector noticed it, ns since the Unix epoch.
-- - last_seen_realtime_ns INTEGER: When both daemons polled last. The stored time is at most a
--   minute behind.
CREATE VIEW copied_devices AS
SELECT device_id, first_seen_realtime_ns, last_seen_realtime_ns FROM device_copies
WHERE last_seen_realtime_ns > (unixepoch('now') - 600) * 1000000000;

-- How much the collector stores of a device in a day. A device without a row has the default of
-- sojournd (`--quota-bytes`, `--quota-sessions`).
CREATE TABLE device_quotas (
    -- The device (`devices`).
    device_id INTEGER PRIMARY KEY REFERENCES devices,
    -- Bytes a day; 0: no limit; NULL: the default.
    bytes INTEGER,
    -- New sessions a day; 0: no limit; NULL: the default.
    sessions INTEGER,
    -- The user of the collector's machine; or `token:` and the name of a token.
    set_by TEXT NOT NULL DEFAULT '',
    -- When it was set.
    set_realtime_ns INTEGER NOT NULL
) STRICT;

-- The part of its quota that each device used on the latest day on which it sent data. Counting
-- begins when the quota is set.
CREATE TABLE device_usage (
    -- The device (`devices`).
    device_id INTEGER PRIMARY KEY REFERENCES devices,
    -- The day of receipt: days since the Unix epoch, UTC.
    day INTEGER NOT NULL,
    -- Bytes of the frames that were stored.
    bytes INTEGER NOT NULL,
    -- Sessions that began to arrive.
    sessions INTEGER NOT NULL,
    -- The quota that applied last: bytes a day; 0: no limit.
    bytes_limit INTEGER NOT NULL,
    -- The quota that applied last: sessions a day; 0: no limit.
    sessions_limit INTEGER NOT NULL,
    -- How often the collector refused a frame because the quota was used up. The device keeps the
    -- frame and sends it again, so one frame may count several times.
    refusals INTEGER NOT NULL
) STRICT;

-- A view: devices whose quota is used up today, so that they keep frames.
--
-- - device_id INTEGER: The device (`devices`).
-- - quota TEXT: The part of the quota that is used up, as `5 sessions a day`.
-- - ends_realtime_ns INTEGER: The next midnight, UTC: the collector then stores frames again.
CREATE VIEW devices_over_quota AS
SELECT device_id, iif(bytes_limit > 0 AND bytes >= bytes_limit, bytes_limit || ' bytes a day',
    sessions_limit || iif(sessions_limit = 1, ' session a day', ' sessions a day')) AS quota,
    (day + 1) * 86400000000000 AS ends_realtime_ns FROM device_usage
WHERE refusals > 0 AND day = unixepoch('now') / 86400
AND (bytes_limit > 0 AND bytes >= bytes_limit OR sessions_limit > 0 AND sessions >= sessions_limit);

-- All commands that were ever given to devices. The table is their audit.
CREATE TABLE commands (
    -- The key; it rises.
    command_id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The device (`devices`).
    device_id INTEGER NOT NULL REFERENCES devices,
    -- `status`, `launch`, `record`, `attach`, `export` or others; `policies` and `write` are the
    -- collector's own.
    kind TEXT NOT NULL,
    -- A JSON object.
    arguments TEXT NOT NULL DEFAULT '{}',
    -- `preparing` (by the collector), `queued`, `sent`, `done`, `failed` or `timed_out`.
    state TEXT NOT NULL DEFAULT 'queued',
    -- The user of the collector's machine; or `token:` and the name of a token; or `collector`, if
    -- the collector gave the command by itself.
    requested_by TEXT NOT NULL DEFAULT '',
    -- The time from the creation of the command after which it is not tried again.
    timeout_ms INTEGER NOT NULL,
    -- When the command was given.
    created_realtime_ns INTEGER NOT NULL,
    -- When the device received the command.
    sent_realtime_ns INTEGER,
    -- When the command ended.
    finished_realtime_ns INTEGER,
    -- The result: JSON if the command is done, else the error. While a `record` is preparing, it is
    -- JSON with its progress: `state` (preparing, prepared, started, recording or finished) and
    -- `at` (its time by CLOCK_REALTIME, ns).
    result TEXT NOT NULL DEFAULT '',
    -- The size of the file that an export or a recording made; NULL: there is no file.
    file_bytes INTEGER,
    -- A random number of the daemon's process that carries out the command; 0: a daemon that claims
    -- no commands; NULL: no daemon.
    claimed_by INTEGER
) STRICT;
CREATE INDEX commands_open ON commands (state, device_id) WHERE state IN ('queued', 'sent');
CREATE INDEX commands_preparing ON commands (command_id) WHERE state = 'preparing';

-- The policies that are set for devices. Ended rules stay as the audit.
CREATE TABLE policy_rules (
    -- The key; it rises.
    rule_id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The devices that the rule is for: `all`, `tag` or `device`.
    scope TEXT NOT NULL,
    -- For `tag`, KEY or KEY=VALUE; for `device`, the device_id.
    subject TEXT NOT NULL DEFAULT '',
    -- The app in the devices' catalogues; empty: all programs.
    app TEXT NOT NULL DEFAULT '',
    -- JSON document of the policy.
    document TEXT NOT NULL,
    -- The user of the collector's machine; or `token:` and the name of a token.
    set_by TEXT NOT NULL DEFAULT '',
    -- When it was set.
    set_realtime_ns INTEGER NOT NULL,
    -- When it was replaced or removed; NULL: it holds.
    ended_realtime_ns INTEGER
) STRICT;
CREATE UNIQUE INDEX policy_rules_in_force ON policy_rules (scope, subject, app) WHERE
    ended_realtime_ns IS NULL;

-- Tokens of people and programs that ask the collector over HTTP (`sojourn token`). The token in
-- the file DATABASE.token is not in this table. It has the role admin.
CREATE TABLE api_tokens (
    -- The key.
    token_id INTEGER PRIMARY KEY,
    -- The name of the token. A new token may have the name of a revoked or expired one.
    name TEXT NOT NULL UNIQUE,
    -- SHA-256 of the token.
    token_hash BLOB NOT NULL,
    -- `reader`, `analyst`, `operator` or `admin`; each may do what those before it may do.
    role TEXT NOT NULL,
    -- When it was made.
    created_realtime_ns INTEGER NOT NULL,
    -- When it ends by itself; NULL: never.
    expires_realtime_ns INTEGER,
    -- When it was revoked; NULL: it was not.
    revoked_realtime_ns INTEGER
) STRICT;

-- The actions of users of the collector. Rows of actions stay forever. Of the rows with the action
-- `sql`, those older than the newest 100,000 are removed.
CREATE TABLE audit (
    -- The key; it rises.
    audit_id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- When it was done.
    realtime_ns INTEGER NOT NULL,
    -- `token:` and the name of a token, or `user:` and a user of the collector's machine.
    who TEXT NOT NULL,
    -- The client's address; empty: the action came from the command line.
    peer TEXT NOT NULL DEFAULT '',
    -- `command` (policies and tags, too), `sessions` (pins, tags, notes, removals), `import`,
    -- `finding`, `device` (invitations and revocations), `token` or `sql`. A statement or a forbidden
    -- request that one token repeats within an hour has one row.
    action TEXT NOT NULL,
    -- The object of the action: the request, the command line or the statement, cut after 4 KiB. Of
    -- a request that was refused before its body was read, the path.
    object TEXT NOT NULL DEFAULT '',
    -- `done`, or the reason why the action was not done.
    outcome TEXT NOT NULL
) STRICT;
CREATE INDEX audit_of_sql ON audit (audit_id) WHERE action = 'sql';

-- ## Sessions and what ran in them

-- Recordings: one device, one or more processes.
CREATE TABLE sessions (
    -- The key.
    session_id INTEGER PRIMARY KEY,
    -- 16 random bytes: the identity.
    uuid BLOB NOT NULL UNIQUE,
    -- The device (`devices`).
    device_id INTEGER NOT NULL REFERENCES devices,
    -- The name.
    name TEXT NOT NULL DEFAULT '',
    -- The command line.
    command TEXT NOT NULL DEFAULT '',
    -- `trace`, `profile` or `flight`.
    mode TEXT NOT NULL DEFAULT 'trace',
    -- The state: `recording`, `completed`, `interrupted`, `crashed`, `killed`, `lost` (its recorder
    -- was killed) or `lost contact` (nothing came for a day, or for `sojournd --lost-after`; it is
    -- `recording` again when its device comes back).
    state TEXT NOT NULL DEFAULT 'recording',
    -- Nanoseconds since the Unix epoch, clock of the device.
    started_realtime_ns INTEGER NOT NULL,
    -- Nanoseconds since the Unix epoch, clock of the device.
    ended_realtime_ns INTEGER,
    -- Raw clock at time 0 of the session.
    started_ticks INTEGER NOT NULL,
    -- Raw clock at the end.
    ended_ticks INTEGER,
    -- Nanoseconds are ticks x numerator / denominator.
    tick_ns_numerator INTEGER NOT NULL,
    -- See `tick_ns_numerator`.
    tick_ns_denominator INTEGER NOT NULL,
    -- The resolution of call times when the session began, in ticks. It is that of the clock, or
    -- that of the policy's `calls.resolution` if this is coarser.
    clock_step INTEGER NOT NULL DEFAULT 1,
    -- The clock: `tsc`, `cntvct` or `monotonic`.
    clock_name TEXT NOT NULL DEFAULT '',
    -- The session that a flight dump was cut from.
    parent_session_id INTEGER REFERENCES sessions,
    -- Why a flight dump was made.
    cause TEXT NOT NULL DEFAULT '',
    -- The version of the policy in force.
    policy_version INTEGER NOT NULL DEFAULT 0,
    -- JSON object of key=value tags.
    tags TEXT NOT NULL DEFAULT '{}',
    -- 1: never removed by retention.
    pinned INTEGER NOT NULL DEFAULT 0,
    -- Blocks stored.
    stored_blocks INTEGER NOT NULL DEFAULT 0,
    -- Bytes of the stored blocks.
    stored_bytes INTEGER NOT NULL DEFAULT 0,
    -- Calls that were entered in the stored blocks.
    stored_calls INTEGER NOT NULL DEFAULT 0,
    -- Entries and exits in the stored blocks.
    stored_events INTEGER NOT NULL DEFAULT 0,
    -- Entries that were lost.
    lost_calls INTEGER NOT NULL DEFAULT 0,
    -- Entries and exits that were lost.
    lost_events INTEGER NOT NULL DEFAULT 0,
    -- Calls that the device counted; NULL until it says.
    sent_calls INTEGER,
    -- Raw records that the device counted.
    sent_records INTEGER,
    -- Blocks that the device sent, and blocks that the collector made to end the calls of streams
    -- that no recorder ended.
    sent_blocks INTEGER,
    -- Entries that the device counted as lost.
    device_lost_calls INTEGER,
    -- Entries and exits that the device counted as lost.
    device_lost_events INTEGER,
    -- CPU time of the traced processes, ns. For a process that was attached to, only the time while
    -- it was recorded counts; 0: not known.
    traced_cpu_ns INTEGER,
    -- The part of `traced_cpu_ns` that probes took, ns, estimated.
    estimated_probe_ns INTEGER,
    -- The first block (`block_id`) that the aggregates (`stored_*`, `call_paths`, `function_stats`,
    -- `call_edges`, `streams`) do not count yet; NULL: they count all blocks. The aggregates of a
    -- recording in progress are about a second behind. Those of a file left by a crash are computed
    -- again when it is next opened.
    aggregates_valid_before_block INTEGER,
    -- Why the session is quarantined; NULL: it is not. The aggregates of a quarantined session
    -- cannot be read back, or cannot be computed from `aggregates_valid_before_block` on. Its
    -- blocks are still stored; `sojourn verify --rebuild` computes the aggregates again.
    quarantine_reason TEXT,
    -- SHA-256 of the secret that identifies the session's recorder if the collector asks for no
    -- tokens; NULL: it had no secret.
    secret_digest BLOB,
    -- The number of call paths that were folded because they were the rarest. A session keeps at
    -- most 524,288 call paths. A folded path that is called again can be folded again.
    folded_paths INTEGER NOT NULL DEFAULT 0,
    -- Calls that ended on folded paths. `call_paths` gives these calls by caller only;
    -- `function_stats`, `call_edges` and `calls` are exact.
    folded_calls INTEGER NOT NULL DEFAULT 0,
    -- The part of `lost_calls` that the device sent and this database does not hold, once the
    -- session has ended. Frames were refused, or an older copy of the database was restored. The
    -- gaps of these calls have the reason `not_stored`.
    missing_calls INTEGER NOT NULL DEFAULT 0,
    -- The part of `lost_events` that the device sent and this database does not hold, once the
    -- session has ended. It is a lower bound.
    missing_events INTEGER NOT NULL DEFAULT 0,
    -- Blocks that the device sent and this database does not hold.
    missing_blocks INTEGER NOT NULL DEFAULT 0,
    -- When the last frame of the session arrived, or when the session was imported, in nanoseconds
    -- since the Unix epoch by the collector's clock. The stored time is at most 10 s behind.
    -- Retention counts from it.
    received_realtime_ns INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX sessions_by_device ON sessions (device_id, started_realtime_ns);
CREATE INDEX sessions_stale_aggregates ON sessions (session_id) WHERE aggregates_valid_before_block
    IS NOT NULL;
-- Without this index each removal of a session reads all sessions.
CREATE INDEX sessions_by_parent ON sessions (parent_session_id);

-- Processes of a session.
CREATE TABLE processes (
    -- The key.
    process_id INTEGER PRIMARY KEY,
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The number that the device gave, from 1, within the session.
    number INTEGER NOT NULL,
    -- The number that the device's kernel gave.
    pid INTEGER NOT NULL,
    -- The number of the parent process; 0: none.
    parent_number INTEGER NOT NULL DEFAULT 0,
    -- The path of the program.
    executable TEXT NOT NULL DEFAULT '',
    -- The command line.
    command TEXT NOT NULL DEFAULT '',
    -- How the recording of the process began: `launched`, `forked`, `exec` or `attached`.
    how TEXT NOT NULL DEFAULT '',
    -- Nanoseconds since the session's start.
    started_ns INTEGER NOT NULL DEFAULT 0,
    -- Nanoseconds since the session's start; NULL: still running.
    ended_ns INTEGER,
    -- The exit code, when the process exited.
    exit_code INTEGER,
    -- The signal, when a signal killed the process.
    exit_signal INTEGER,
    -- 1: a core was written.
    core_dumped INTEGER NOT NULL DEFAULT 0,
    -- Why the agent stopped recording the process; empty: it did not. `confined`: the agent stayed,
    -- but makes no system calls, because the process has a filter of system calls (seccomp). It
    -- drops calls where it would wait, and does not hook modules that were loaded later. `no shared
    -- memory for records`: the agent recorded nothing, because a limit of the address space or of
    -- the file size leaves no memory for records, or because the process ended at once. `left
    -- running`: the process was still running when the recording of its program ended. `executed a
    -- program that is not recorded`: the recorded program ended by running another one in its
    -- place; exit code and signal are those of the other one. `records not readable`: another
    -- version of Sojourn wrote the shared memory of the process, or it is damaged, so an unknown
    -- number of calls is lost.
    disarm_reason TEXT NOT NULL DEFAULT '',
    UNIQUE (session_id, number)
) STRICT;

-- Threads of a session.
CREATE TABLE threads (
    -- The key.
    thread_id INTEGER PRIMARY KEY,
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The number that the device gave, from 1, within the session.
    number INTEGER NOT NULL,
    -- Process, as numbered by the device.
    process_number INTEGER NOT NULL DEFAULT 0,
    -- The number that the device's kernel gave.
    tid INTEGER NOT NULL DEFAULT 0,
    -- The name.
    name TEXT NOT NULL DEFAULT '',
    -- 1: it is the main thread.
    is_main INTEGER NOT NULL DEFAULT 0,
    -- Nanoseconds since the session's start.
    started_ns INTEGER,
    -- Nanoseconds since the session's start; NULL: still running.
    ended_ns INTEGER,
    -- Entries that were dropped before they were in a block.
    dropped_calls INTEGER NOT NULL DEFAULT 0,
    -- Entries and exits that were dropped before they were in a block.
    dropped_events INTEGER NOT NULL DEFAULT 0,
    -- Time the thread waited for the drain, ns.
    waited_ns INTEGER NOT NULL DEFAULT 0,
    -- CPU time of the whole thread. It is known for Java threads, and for threads that live when
    -- their process ends or the agent detaches; NULL: not known.
    cpu_ns INTEGER,
    -- Bytes that the thread allocated in the Java heap. It is known for threads of OpenJDK 17 that
    -- started during the recording or ended in it; NULL: not known.
    allocated_bytes INTEGER,
    -- Blocks that the thread got from malloc's family, since the thread or the counting began
    -- (`record --thread-memory`, `--memory`); NULL: not counted.
    malloc_allocations INTEGER,
    -- The usable bytes of these blocks.
    malloc_bytes INTEGER,
    -- Blocks that the thread gave back.
    malloc_frees INTEGER,
    -- The bytes of these blocks.
    malloc_freed_bytes INTEGER,
    UNIQUE (session_id, number)
) STRICT;

-- Execution stacks. A thread normally has one. `stream_id` is the high part of call ids.
CREATE TABLE streams (
    -- The key.
    stream_id INTEGER PRIMARY KEY,
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The number that the device gave, from 1, within the session.
    number INTEGER NOT NULL,
    -- The thread (`threads`); NULL until the device has reported it.
    thread_id INTEGER REFERENCES threads ON DELETE CASCADE,
    -- 1: the thread's own stack; 0: coroutine or alternate signal stack.
    own_stack INTEGER NOT NULL DEFAULT 1,
    -- The number of calls.
    calls INTEGER NOT NULL DEFAULT 0,
    -- First entry, ns since the session's start.
    first_enter_ns INTEGER,
    -- Last exit, ns since the session's start.
    last_leave_ns INTEGER,
    -- Deepest nesting, counted from 1.
    max_depth INTEGER NOT NULL DEFAULT 0,
    -- 1: the stream has ended.
    ended INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session_id, number)
) STRICT;
-- Without this index SQLite searches all streams for each thread that is removed.
CREATE INDEX streams_by_thread ON streams (thread_id);

-- ## Code

-- Files of code, shared by all sessions that loaded them.
CREATE TABLE modules (
    -- The key.
    module_id INTEGER PRIMARY KEY,
    -- ELF build-id or hash of the contents.
    build_id BLOB NOT NULL,
    -- A digest of offsets, sizes and names.
    functions_digest BLOB NOT NULL,
    -- Where the device found the file.
    path TEXT NOT NULL,
    -- The machine: `x86_64` or `aarch64`.
    machine TEXT NOT NULL DEFAULT '',
    -- The function_id of the module's first function; its other functions follow.
    first_function_id INTEGER NOT NULL,
    -- Functions in the table.
    function_count INTEGER NOT NULL,
    UNIQUE (build_id, functions_digest)
) STRICT;

-- Functions of modules.
CREATE TABLE functions (
    -- The key.
    function_id INTEGER PRIMARY KEY,
    -- The module (`modules`).
    module_id INTEGER NOT NULL REFERENCES modules,
    -- The offset from the module's load bias, bytes.
    offset INTEGER NOT NULL,
    -- The size of its code, bytes.
    size_bytes INTEGER NOT NULL,
    -- The demangled name. A function without a name is called module+0xoffset.
    name TEXT NOT NULL,
    -- The name in the symbol table; empty: it has none.
    symbol TEXT NOT NULL,
    -- Identifies the same function in another build. It is a 64-bit hash of the module's file name
    -- and the function's name. For a function without a name, it is a hash of its code if no other
    -- function of the module has the same code, else of build-id and offset.
    symbol_key INTEGER NOT NULL,
    -- The source of the entry.
    source TEXT NOT NULL DEFAULT '',
    -- Hash of the code of a function without a name. It does not depend on the address; NULL: the
    -- function has a name, or is too short.
    fingerprint INTEGER
) STRICT;
CREATE INDEX functions_by_module ON functions (module_id, offset);
CREATE INDEX functions_by_name ON functions (name);
CREATE INDEX functions_by_key ON functions (symbol_key);

-- Plans: the functions of a module that were hooked. Sessions with equal plans share one.
CREATE TABLE hook_plans (
    -- The key.
    hook_plan_id INTEGER PRIMARY KEY,
    -- The module (`modules`).
    module_id INTEGER NOT NULL REFERENCES modules,
    -- A digest of technique and reason of every function.
    digest BLOB NOT NULL,
    UNIQUE (module_id, digest)
) STRICT;

-- The functions of a plan whose technique is not `inline`.
CREATE TABLE hook_plan_functions (
    -- The plan (`hook_plans`).
    hook_plan_id INTEGER NOT NULL REFERENCES hook_plans ON DELETE CASCADE,
    -- The function (`functions`).
    function_id INTEGER NOT NULL,
    -- How calls are observed. `none`: they are not observed. `part`: the entry is a cold part of a
    -- function, and is recorded with that function.
    technique TEXT NOT NULL,
    -- Why the function was not hooked; empty: it was.
    reason TEXT NOT NULL,
    PRIMARY KEY (hook_plan_id, function_id)
) STRICT, WITHOUT ROWID;

-- Modules of a session and the session-wide ids of their functions.
CREATE TABLE session_modules (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The number that the device gave, from 1, within the session.
    number INTEGER NOT NULL,
    -- The module (`modules`).
    module_id INTEGER NOT NULL REFERENCES modules,
    -- The plan (`hook_plans`).
    hook_plan_id INTEGER NOT NULL REFERENCES hook_plans,
    -- Session-wide id of the first function, as in blocks.
    first_function INTEGER NOT NULL,
    -- Functions in the table.
    function_count INTEGER NOT NULL,
    -- Functions that were hooked.
    hooked_count INTEGER NOT NULL,
    -- The path of the module on the session's device; NULL: the path in `modules`, which is that of
    -- the first session.
    path TEXT,
    PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_modules_by_module ON session_modules (module_id);
-- Without this index SQLite searches all rows for each plan that is removed.
CREATE INDEX session_modules_by_plan ON session_modules (hook_plan_id);

-- Parts of function tables that have not arrived completely. The table is empty otherwise.
CREATE TABLE module_parts (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- Module, as numbered by the device.
    number INTEGER NOT NULL,
    -- The function of the module that the part begins with.
    first INTEGER NOT NULL,
    -- Functions in the table.
    function_count INTEGER NOT NULL,
    -- The size of the table before compression, bytes.
    raw_bytes INTEGER NOT NULL,
    -- The part of the table, compressed with zstd.
    data BLOB NOT NULL,
    PRIMARY KEY (session_id, number, first)
) STRICT;

-- The places where processes loaded modules.
CREATE TABLE mappings (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- Process, as numbered by the device.
    process_number INTEGER NOT NULL,
    -- Module, as numbered by the device.
    module_number INTEGER NOT NULL,
    -- Address minus module offset. For a Java class, it is the number of its class loader, and 0
    -- for the program's own loader.
    bias INTEGER NOT NULL,
    -- Nanoseconds since the session's start.
    loaded_ns INTEGER NOT NULL,
    -- Nanoseconds since the session's start; NULL: still mapped.
    unloaded_ns INTEGER,
    PRIMARY KEY (session_id, process_number, module_number, bias)
) STRICT, WITHOUT ROWID;

-- Functions that the plan allowed and the agent did not hook.
CREATE TABLE refused_functions (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- Process, as numbered by the device.
    process_number INTEGER NOT NULL,
    -- Session-wide function id.
    function INTEGER NOT NULL,
    -- The reason, in words.
    reason TEXT NOT NULL,
    PRIMARY KEY (session_id, process_number, function)
) STRICT, WITHOUT ROWID;

-- ## Calls as they came

-- Calls as they came from the device.
CREATE TABLE blocks (
    -- The key.
    block_id INTEGER PRIMARY KEY,
    -- The stream (`streams`).
    stream_id INTEGER NOT NULL REFERENCES streams ON DELETE CASCADE,
    -- sj_block_kind: 1 calls, 2 stack frames.
    kind INTEGER NOT NULL,
    -- The number of the first event in its stream (stack blocks: number of the block).
    first_event INTEGER NOT NULL,
    -- Entries and exits in the block.
    event_count INTEGER NOT NULL,
    -- The index of the first call entered.
    first_call INTEGER NOT NULL,
    -- Entries in the block.
    call_count INTEGER NOT NULL,
    -- Raw clock of the first event.
    first_ticks INTEGER NOT NULL,
    -- Raw clock of the last event.
    last_ticks INTEGER NOT NULL,
    -- Calls that were open at the start of the block.
    open_depth INTEGER NOT NULL,
    -- Deepest nesting, counted from 1.
    max_depth INTEGER NOT NULL,
    -- The longest call that ended in the block, ticks.
    max_duration_ticks INTEGER NOT NULL,
    -- Entries that were lost.
    lost_calls INTEGER NOT NULL,
    -- Entries and exits that were lost.
    lost_events INTEGER NOT NULL,
    -- Bitmap of functions entered (function_bitmap.h).
    functions BLOB,
    -- The least index of the calls in `late`.
    late_first_call INTEGER,
    -- The greatest index of the calls in `late`.
    late_last_call INTEGER,
    -- Calls of earlier blocks that ended in this block (deferred_exits.h); NULL: there are none.
    -- The index `blocks_late` holds every list a second time. Readers find exits there without
    -- reading the blocks.
    late BLOB,
    -- The place of the block's bytes. `inline`: they are in `data`. Else it is
    -- `file:FILE_ID:OFFSET:SIZE:CRC32C` (`block_files`), with the CRC in hexadecimal digits.
    storage TEXT NOT NULL DEFAULT 'inline',
    -- The block's bytes; NULL: they are in a file.
    data BLOB,
    -- Why the block's calls cannot be read; NULL: they can. `sojourn verify` sets it.
    quarantined TEXT,
    UNIQUE (stream_id, kind, first_event, event_count)
) STRICT;
CREATE INDEX blocks_by_time ON blocks (stream_id, first_ticks);
-- Holds all that a reader asks of a list of late exits, so that it does not read the blocks.
CREATE INDEX blocks_late ON blocks (stream_id, kind, first_call, first_event, late_first_call,
    late_last_call, max_duration_ticks, first_ticks, late) WHERE kind = 1 AND late IS NOT NULL;
-- Holds all that a scan asks of a block before it reads it: a page of ranges instead of a page a
-- block.
CREATE INDEX blocks_by_call ON blocks (stream_id, kind, first_call, call_count, first_ticks,
    last_ticks, max_duration_ticks, max_depth, lost_calls, quarantined);

-- The longest calls of each block, so that a search for long calls decodes only blocks that have
-- others as long. Blocks of fewer than 8,192 calls have none.
CREATE TABLE block_outlines (
    -- The block (`blocks`).
    block_id INTEGER PRIMARY KEY REFERENCES blocks ON DELETE CASCADE,
    -- The stream of the block (`streams`).
    stream_id INTEGER NOT NULL,
    -- A duration in ticks. `calls` holds all longer calls that were entered and ended in the block.
    floor_ticks INTEGER NOT NULL,
    -- The calls longer than `floor_ticks`, and the calls that were open at the end of the block
    -- (block_outline.h).
    calls BLOB NOT NULL
) STRICT;

-- ## Sums of calls

-- The call tree of a session, all threads together.
CREATE TABLE call_paths (
    -- session_id << 32 | node.
    path_id INTEGER PRIMARY KEY,
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The path of the caller; NULL: no recorded function called it.
    parent_path_id INTEGER,
    -- The function (`functions`).
    function_id INTEGER NOT NULL,
    -- The number of calls above it; 0 for the outermost.
    depth INTEGER NOT NULL,
    -- 1: the function occurs above it in the path.
    recursive INTEGER NOT NULL,
    -- The number of calls.
    calls INTEGER NOT NULL,
    -- Time between entry and exit of the calls, ns.
    total_ns INTEGER NOT NULL,
    -- Total minus the time of recorded callees, ns.
    self_ns INTEGER NOT NULL,
    -- Shortest call, ns; NULL when none ended.
    min_ns INTEGER,
    -- Longest call, ns; NULL when none ended.
    max_ns INTEGER,
    -- Calls that a throw, longjmp or thread exit ended.
    unwound INTEGER NOT NULL,
    -- Calls whose time a gap or a wait makes inexact.
    untrusted INTEGER NOT NULL,
    -- Durations in ticks of the session's clock, log-linear bins (histogram.h).
    histogram BLOB,
    -- Varints: session-wide function id; total, self, minimum and maximum in ticks; and the sums of
    -- costs if calls were measured. The collector resumes the sums from them.
    state BLOB NOT NULL,
    -- 1: the row is not a call path. It is a root that stands for its function as the caller in
    -- paths that were folded because they were rare. The function's callees are below it, and its
    -- `calls` is 0.
    rare INTEGER NOT NULL DEFAULT 0,
    -- CPU time of the measured calls (`call_costs`), ns. A value that was not measured is NULL,
    -- here and in the columns up to `allocated_self_bytes`.
    cpu_ns INTEGER,
    -- CPU time of the measured calls without the measured calls below them, ns.
    cpu_self_ns INTEGER,
    -- Blocks that the measured calls got.
    allocations INTEGER,
    -- The bytes of these blocks.
    allocated_bytes INTEGER,
    -- Blocks that the measured calls gave back.
    frees INTEGER,
    -- The bytes of these blocks. `allocated_bytes` minus `freed_bytes` is the net memory.
    freed_bytes INTEGER,
    -- Bytes that the measured calls allocated without the measured calls below them.
    allocated_self_bytes INTEGER
) STRICT;
CREATE INDEX call_paths_by_session ON call_paths (session_id, function_id);
CREATE INDEX call_paths_by_parent ON call_paths (parent_path_id);

-- Sums for each function of a session.
CREATE TABLE function_stats (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The function (`functions`).
    function_id INTEGER NOT NULL,
    -- The number of calls.
    calls INTEGER NOT NULL,
    -- Nanoseconds. A recursive call does not count in addition to the call that contains it. So the
    -- mean of all calls is `sum(total_ns) / sum(calls)` of the function's `call_paths`.
    total_ns INTEGER NOT NULL,
    -- Total minus the time of recorded callees, ns; an estimate where `function_estimates` says so.
    self_ns INTEGER NOT NULL,
    -- Shortest call, ns; NULL when none ended.
    min_ns INTEGER,
    -- Longest call, ns; NULL when none ended.
    max_ns INTEGER,
    -- Calls that a throw, longjmp or thread exit ended.
    unwound INTEGER NOT NULL,
    -- Calls whose time a gap or a wait makes inexact.
    untrusted INTEGER NOT NULL,
    -- Durations in ticks of the session's clock, log-linear bins (histogram.h).
    histogram BLOB,
    -- CPU time of the measured calls (`call_costs`), ns. A call within a measured call of the same
    -- function does not count again. A value that was not measured is NULL, here and in the columns
    -- up to `allocated_self_bytes`.
    cpu_ns INTEGER,
    -- CPU time of the measured calls without the measured calls below them, ns.
    cpu_self_ns INTEGER,
    -- Blocks that the measured calls got.
    allocations INTEGER,
    -- The bytes of these blocks.
    allocated_bytes INTEGER,
    -- Blocks that the measured calls gave back.
    frees INTEGER,
    -- The bytes of these blocks. `allocated_bytes` minus `freed_bytes` is the net memory.
    freed_bytes INTEGER,
    -- Bytes that the measured calls allocated without the measured calls below them.
    allocated_self_bytes INTEGER,
    -- Calls at whose entry or exit no clock was read (`calls.clock` of the policy; bit 16 of
    -- `calls.flags`); NULL: all calls were timed. The times of such calls are estimates. So are the
    -- sums and quantiles in this row.
    untimed_calls INTEGER,
    -- Timed calls of the function, from which the estimate is made.
    sampled_calls INTEGER,
    -- Standard error of `total_ns`: the effect of chance on an estimate from so many calls. It does
    -- not contain the cost of reading the clock, which is part of timed calls only.
    error_ns INTEGER,
    PRIMARY KEY (session_id, function_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX function_stats_by_function ON function_stats (function_id);
-- This index is empty in sessions whose calls are all timed, so that a reader finds at once that
-- they have no estimates.
CREATE INDEX function_stats_untimed ON function_stats (session_id) WHERE untimed_calls > 0;

-- A view: which times of the functions of a session are estimates, because calls were counted
-- without a clock (`record --clock adaptive`). Reports, trees, exports and the dashboard mark times
-- by it.
--
-- - session_id INTEGER: The session (`sessions`).
-- - function_id INTEGER: The function (`functions`).
-- - is_estimate INTEGER: 1: all times of the function are estimates, because some of its calls were
--   counted without a clock.
-- - calls_counted INTEGER: 1: some of the function's callees were counted without a clock. Its self
--   time, also that of single calls, is then the total minus estimates.
-- - is_self_estimate INTEGER: 1: the self time is an estimate, because `is_estimate` or
--   `calls_counted` is 1.
CREATE VIEW function_estimates AS
SELECT session_id, function_id, is_estimate, calls_counted,
is_estimate OR calls_counted AS is_self_estimate
FROM (SELECT session_id, function_id, coalesce(untimed_calls, 0) > 0 AS is_estimate,
CASE WHEN EXISTS (SELECT 1 FROM function_stats AS g INDEXED BY function_stats_untimed
WHERE g.session_id = s.session_id AND g.untimed_calls > 0)
THEN EXISTS (SELECT 1 FROM call_edges AS e
JOIN function_stats AS u USING (session_id)
WHERE session_id = s.session_id AND caller_function_id = s.function_id
AND u.function_id = callee_function_id AND u.untimed_calls > 0)
ELSE 0 END AS calls_counted FROM function_stats AS s);

-- Sums for each pair of caller and callee of a session.
CREATE TABLE call_edges (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The calling function; 0: no recorded function.
    caller_function_id INTEGER NOT NULL,
    -- The called function.
    callee_function_id INTEGER NOT NULL,
    -- The number of calls.
    calls INTEGER NOT NULL,
    -- Time in the callee when this caller called it, ns. A call within another call of the same
    -- pair does not count again.
    total_ns INTEGER NOT NULL,
    -- Total minus the time of recorded callees, ns.
    self_ns INTEGER NOT NULL,
    PRIMARY KEY (session_id, caller_function_id, callee_function_id)
) STRICT, WITHOUT ROWID;

-- The longest calls of each function and session, found while calls are received. The table has
-- calls of 1 us and longer, at most 5 for each function and 4,096 for each session. If there are
-- more, the shortest are removed first.
CREATE TABLE slow_calls (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The function (`functions`).
    function_id INTEGER NOT NULL,
    -- The rank of the call; 1 is the longest.
    place INTEGER NOT NULL,
    -- The call (`calls`).
    call_id INTEGER NOT NULL,
    -- The call path of the call (`call_paths`).
    path_id INTEGER NOT NULL,
    -- Nanoseconds since the session's start.
    start_ns INTEGER NOT NULL,
    -- Time between entry and exit, ns.
    duration_ns INTEGER NOT NULL,
    -- The part of `duration_ns` outside of recorded callees, ns.
    self_ns INTEGER NOT NULL,
    -- sj_ending: 0 returned, 1 unwound, 3 truncated.
    ending INTEGER NOT NULL,
    -- Flags, as in `calls`; 0: the time is exact.
    flags INTEGER NOT NULL,
    PRIMARY KEY (session_id, function_id, place)
) STRICT, WITHOUT ROWID;

-- The activity of each stream, in steps of 2^14, 2^18 and 2^22 of its entries and exits. Rows are
-- made while calls are received; those of the two coarser steps are made together with the sums.
-- For anything finer, query `calls`.
CREATE TABLE timeline (
    -- The stream (`streams`).
    stream_id INTEGER NOT NULL REFERENCES streams ON DELETE CASCADE,
    -- 14, 18, 22: a step is 2^level events.
    level INTEGER NOT NULL,
    -- The number of the step. The step begins with event number x 2^level of the stream.
    number INTEGER NOT NULL,
    -- The time of the first event, ns since the session's start.
    start_ns INTEGER NOT NULL,
    -- The time of the last event, or of the first event of the next step, ns since the session's
    -- start.
    end_ns INTEGER NOT NULL,
    -- Calls that were entered.
    calls INTEGER NOT NULL,
    -- The deepest call that was entered, counted from 1; 0: no call was entered.
    max_depth INTEGER NOT NULL,
    -- The innermost call path that was open at start_ns (`call_paths`); NULL: no call was open.
    path_id INTEGER,
    PRIMARY KEY (stream_id, level, number)
) STRICT, WITHOUT ROWID;

-- ## Losses, marks, clocks and notes

-- Gaps. Everything that is missing from the recorded calls has a row.
CREATE TABLE gaps (
    -- The key.
    gap_id INTEGER PRIMARY KEY,
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The stream (`streams`).
    stream_id INTEGER,
    -- Thread, as numbered by the device.
    thread_number INTEGER,
    -- The block (`blocks`).
    block_id INTEGER,
    -- The identity of gaps reported outside of blocks.
    number INTEGER,
    -- Why the calls are missing: `ring_full`, `no_thread_slot`, `torn`, `paused`, `spool_full`,
    -- `waited`, `orphan` or `not_stored` (the device sent them, and this database does not hold
    -- them).
    reason TEXT NOT NULL,
    -- Entries that were lost.
    calls INTEGER NOT NULL,
    -- Entries and exits that were lost.
    events INTEGER NOT NULL,
    -- Nanoseconds since the session's start.
    start_ns INTEGER NOT NULL,
    -- Nanoseconds since the session's start.
    end_ns INTEGER NOT NULL
) STRICT;
CREATE INDEX gaps_by_session ON gaps (session_id);
CREATE UNIQUE INDEX gaps_by_number ON gaps (session_id, number) WHERE number IS NOT NULL;

-- Calls that were still open when their stream ended, because the program ended by `exit` or a
-- signal, or ran on. They count as calls up to that end. This also holds for profiles, which have
-- no other rows of single calls. `open_now` lists the open calls of a session that is being
-- recorded, too.
CREATE TABLE open_calls (
    -- The stream (`streams`).
    stream_id INTEGER NOT NULL REFERENCES streams ON DELETE CASCADE,
    -- The index of the call in its stream.
    call_index INTEGER NOT NULL,
    -- The function (`functions`).
    function_id INTEGER NOT NULL,
    -- Calls above it; 0 for the outermost.
    depth INTEGER NOT NULL,
    -- Nanoseconds since the session's start.
    start_ns INTEGER NOT NULL,
    -- Flags, as in `calls`.
    flags INTEGER NOT NULL,
    PRIMARY KEY (stream_id, call_index)
) STRICT, WITHOUT ROWID;

-- Marks for test cases and phases.
CREATE TABLE marks (
    -- The key.
    mark_id INTEGER PRIMARY KEY,
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The number that the device gave, from 1, within the session.
    number INTEGER NOT NULL,
    -- The name.
    name TEXT NOT NULL,
    -- 1: the mark ends a phase.
    is_end INTEGER NOT NULL,
    -- Nanoseconds since the session's start.
    at_ns INTEGER NOT NULL,
    -- Thread, as numbered by the device.
    thread_number INTEGER NOT NULL DEFAULT 0,
    -- The source of the mark: `app`, `cli` or `http`.
    source TEXT NOT NULL DEFAULT '',
    UNIQUE (session_id, source, number)
) STRICT;

-- Readings of the device's raw clock together with its other clocks, repeated during the session.
CREATE TABLE clock_pairs (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The raw clock.
    ticks INTEGER NOT NULL,
    -- The boot id of the kernel.
    boot_id TEXT NOT NULL,
    -- CLOCK_MONOTONIC, ns.
    monotonic_ns INTEGER NOT NULL,
    -- CLOCK_BOOTTIME, ns.
    boottime_ns INTEGER NOT NULL,
    -- CLOCK_REALTIME, ns.
    realtime_ns INTEGER NOT NULL,
    -- Half of the time that the reading took, ns.
    uncertainty_ns INTEGER NOT NULL,
    PRIMARY KEY (session_id, ticks)
) STRICT, WITHOUT ROWID;

-- Offsets between a device's clock and the collector's. They are measured repeatedly from the times
-- in the collector's answers. Blocks and sessions never contain them.
CREATE TABLE device_clocks (
    -- The device (`devices`).
    device_id INTEGER NOT NULL REFERENCES devices,
    -- The boot id of the device's kernel.
    boot_id TEXT NOT NULL,
    -- CLOCK_BOOTTIME of the device when the offset was measured, ns.
    boottime_ns INTEGER NOT NULL,
    -- The collector's real time = the device's boot time + offset, ns.
    offset_ns INTEGER NOT NULL,
    -- The error of the offset is at most this, ns.
    uncertainty_ns INTEGER NOT NULL,
    PRIMARY KEY (device_id, boot_id, boottime_ns)
) STRICT, WITHOUT ROWID;

-- Notes that people wrote.
CREATE TABLE annotations (
    -- The key.
    annotation_id INTEGER PRIMARY KEY,
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The call: stream_id << 38 | call index.
    call_id INTEGER,
    -- Nanoseconds since the session's start.
    start_ns INTEGER,
    -- Nanoseconds since the session's start.
    end_ns INTEGER,
    -- The author of the note.
    author TEXT NOT NULL DEFAULT '',
    -- The text of the note.
    note TEXT NOT NULL,
    -- Nanoseconds since the Unix epoch.
    created_realtime_ns INTEGER NOT NULL
) STRICT;

-- Sessions that were removed, by hand or by retention.
CREATE TABLE removals (
    -- The key.
    removal_id INTEGER PRIMARY KEY,
    -- The identity of the session.
    session_uuid BLOB NOT NULL,
    -- The name.
    name TEXT NOT NULL,
    -- The name of the session's device.
    device TEXT NOT NULL,
    -- Calls of the session that were removed.
    stored_calls INTEGER NOT NULL,
    -- Bytes of the session's blocks.
    stored_bytes INTEGER NOT NULL,
    -- The user or the retention rule that removed the session.
    reason TEXT NOT NULL,
    -- Nanoseconds since the Unix epoch.
    removed_realtime_ns INTEGER NOT NULL
) STRICT;
-- Without this index each announcement of a session reads all removals.
CREATE INDEX removals_by_session ON removals (session_uuid);

-- ## Symbols and source lines

-- Files whose names and lines were added after the calls (`sojourn symbols`).
CREATE TABLE symbol_files (
    -- The key.
    symbol_file_id INTEGER PRIMARY KEY,
    -- The build-id of the file, as in `modules.build_id`.
    build_id BLOB NOT NULL,
    -- Where it was read.
    path TEXT NOT NULL,
    -- Functions that it gave a name.
    named_functions INTEGER NOT NULL,
    -- Functions that it gave file and line.
    lined_functions INTEGER NOT NULL,
    -- Nanoseconds since the Unix epoch.
    added_realtime_ns INTEGER NOT NULL,
    UNIQUE (build_id, path)
) STRICT;

-- The source lines of functions. Rows come with symbols that were added. Java methods, and Mono
-- methods whose lines were asked for, get theirs while they are recorded.
CREATE TABLE function_lines (
    -- The function (`functions`).
    function_id INTEGER PRIMARY KEY,
    -- The source file, as the compiler named it. For a Java class, the file is in the folder of its
    -- package.
    file TEXT NOT NULL,
    -- The line of the declaration. For a method, it is the first line.
    line INTEGER NOT NULL
) STRICT;

-- Functions whose code is inlined into another function. They have no calls of their own.
CREATE TABLE inlined_functions (
    -- The function that holds the code (`functions`).
    function_id INTEGER NOT NULL,
    -- The number of the row, from 1. Outer functions come before the functions inside them.
    number INTEGER NOT NULL,
    -- 1: inlined into the function itself.
    depth INTEGER NOT NULL,
    -- The name, demangled.
    name TEXT NOT NULL,
    -- The file of the call.
    call_file TEXT NOT NULL,
    -- The line of the call.
    call_line INTEGER NOT NULL,
    PRIMARY KEY (function_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX inlined_by_name ON inlined_functions (name);

-- ## Stacks, values and costs of calls

-- Native stacks of all threads, taken because a trigger of the policy asked for it (action
-- `stacks`). Each frame has a row. `sojourn sql --query stacks` prints them.
CREATE TABLE stacks (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The number of the stack in the session, from 1.
    number INTEGER NOT NULL,
    -- The number of the frame. 0 is the innermost frame; its callers follow.
    level INTEGER NOT NULL,
    -- The number of the occasion. All stacks of one moment share it.
    taken INTEGER NOT NULL,
    -- Nanoseconds since the session's start.
    at_ns INTEGER NOT NULL,
    -- The process (`processes.number`).
    process_number INTEGER NOT NULL,
    -- The number that the device's kernel gave the thread.
    tid INTEGER NOT NULL,
    -- The name of the thread when the stack was taken.
    thread_name TEXT NOT NULL DEFAULT '',
    -- The event and the subject of the trigger.
    cause TEXT NOT NULL,
    -- The symbol; '': there is none.
    function TEXT NOT NULL DEFAULT '',
    -- The path of the module; '': the code is in no file.
    module TEXT NOT NULL DEFAULT '',
    -- The offset in the module's file. Without a file, it is the address.
    offset INTEGER NOT NULL,
    -- 1: the thread has more frames than are stored.
    is_cut INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session_id, number, level)
) STRICT, WITHOUT ROWID;

-- Values of arguments and results that the rules of the policy about `values` kept. Each pair of
-- rule and value has a row. Join `calls` by `call_id` for the function and the time; `sojourn sql
-- --query values` does.
CREATE TABLE arguments (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The call (`calls`).
    call_id INTEGER NOT NULL,
    -- 0: the result; else the number of the argument. A rule with a signature numbers arguments in
    -- source order. A rule by types numbers them as `value_types` does. Any other rule counts whole
    -- and floating-point numbers separately.
    position INTEGER NOT NULL,
    -- The kind that the rule gives: `int`, `uint`, `long`, `ulong`, `char`, `bool`, `hex`,
    -- `pointer`, `float`, `double`, `string` or `object`. `thrown`, at position 0 and without a
    -- rule, is the type of the exception that ended a Mono method, or a Java method with rules.
    kind TEXT NOT NULL,
    -- The name of the rule whose condition the value met; '': the value was kept without a
    -- condition.
    rule TEXT NOT NULL DEFAULT '',
    -- INTEGER; REAL; TEXT of a `string`, of a `hex` or `pointer` (`0x...`), of a `ulong` above 2^63
    -- - 1, and `nan`; BLOB: a text that is not UTF-8; NULL: see `note`.
    value ANY,
    -- Why a text is not whole; NULL: it is whole. `cut`: only the first 64 bytes were kept, or as
    -- many as the rule says, up to 4,096. `null`: the pointer was null. `unreadable`: the pointer
    -- did not point to readable memory. Under qemu-user, which has no safe way to read, every text
    -- is `unreadable`. So is a buffer that the call filled, if too many such calls were open at
    -- once; the end of the recording counts these.
    note TEXT,
    PRIMARY KEY (session_id, call_id, position, kind, rule)
) STRICT, WITHOUT ROWID;

-- A view: the rows of `arguments` whose `rule` is not '': values that met the condition of a rule,
-- or what a rule with a `change` made of them, a row each time that it fired.
--
-- - session_id INTEGER: The session (`sessions`).
-- - rule TEXT: The name of the rule.
-- - call_id INTEGER: The call (`calls`).
-- - position INTEGER: 0: the result; else the number of the argument.
-- - kind TEXT: The kind, as in `arguments`.
-- - value ANY: The value, as in `arguments`. For a rule with a `change`, it is the new value. A
--   change that only delays or sets errno leaves the value as it was.
-- - note TEXT: The note, as in `arguments`.
-- - old_value ANY: The value before the change, if it was recorded; NULL: it was not recorded, or
--   the function did not run.
CREATE VIEW rule_hits AS
SELECT h.session_id, h.rule, h.call_id, h.position, h.kind, h.value, h.note,
       (SELECT o.value FROM arguments AS o
        WHERE o.session_id = h.session_id AND o.call_id = h.call_id AND o.position = h.position
          AND o.rule = '' LIMIT 1) AS old_value
FROM arguments AS h WHERE h.rule <> '';

-- A view: the names and types of recorded values. They come from debug data for functions whose
-- values are recorded by their types (`record --value open_file`). They come from the rule for
-- functions that match a rule with a signature (`'open(path:str, flags:hex) -> int'`).
--
-- - session_id INTEGER: The session (`sessions`).
-- - function_id INTEGER: The function (`functions`).
-- - position INTEGER: The position, as in `arguments`: 0 is the result. Other values are numbered
--   in source order, and each field of a structure counts.
-- - name TEXT: The name of the parameter; `point.x` for a field. It is '' for the result, and for a
--   parameter that a signature does not name.
-- - type TEXT: The type as C writes it. For a signature, it is the kind.
-- - state TEXT: `recorded`; `unknown`: the compiler removed or moved the value, or its location is
--   not known; `unsupported`: no kind of value holds its type, or it is too far up the stack.
CREATE VIEW value_types AS
SELECT DISTINCT f.function_id, m.session_id, json_extract(v.value, '$.position') AS position,
       json_extract(v.value, '$.name') AS name, json_extract(v.value, '$.type') AS type,
       json_extract(v.value, '$.state') AS state
FROM reports AS r, json_each(r.payload, '$.functions') AS g, json_each(g.value, '$.values') AS v,
     session_modules AS m, functions AS f
WHERE r.monitor = 'values' AND r.kind = 'types' AND g.type = 'object' AND v.type = 'object'
  AND m.session_id = r.session_id AND m.number = json_extract(r.payload, '$.module')
  AND f.module_id = m.module_id AND f.offset = json_extract(g.value, '$.offset')
UNION ALL
SELECT DISTINCT f.function_id, r.session_id,
       (SELECT count(*) FROM json_each(r.names) AS w
        WHERE w.key <= v.key AND (instr(w.value, ']') = 0 OR instr(w.value, '[') > 0)),
       coalesce(nullif(trim(substr(v.value, 1, instr(v.value, ':') - 1)), '_'), ''),
       trim(substr(v.value, instr(v.value, ':') + 1)) ||
       iif(instr(v.value, '[') > 0 AND instr(v.value, ']') = 0,
           ',' || trim(json_extract(r.names, '$[' || (v.key + 1) || ']')), ''), 'recorded'
FROM (SELECT g.session_id, g.rule ->> 'function' AS pattern,
             '["' || replace(substr(g.rule ->> 'signature', 2, instr(g.rule ->> 'signature', ')') - 2),
                             ',', '","') || '"]' AS names
      FROM (SELECT p.session_id, iif(e.type = 'object', e.value, '{}') AS rule
            FROM policies AS p, json_each(iif(json_valid(p.document), p.document, '{}'), '$.values') AS e) AS g
      WHERE g.rule ->> 'signature' IS NOT NULL) AS r
CROSS JOIN session_modules AS m
CROSS JOIN functions AS f
CROSS JOIN json_each(iif(json_valid(r.names), r.names, '[]')) AS v
WHERE m.session_id = r.session_id AND f.module_id = m.module_id
  AND f.name GLOB r.pattern AND instr(v.value, ':') > 0;

-- CPU time and memory of the calls of functions for which the policy asks (`record --cpu-time`,
-- `record --memory`). The columns are also in `calls`. For Java methods, the bytes that they
-- allocate in the Java heap come with their CPU time. What was not measured is NULL. The duration
-- minus the CPU time is waiting. Bytes are usable ones, as `malloc_usable_size` returns, so that a
-- block that is allocated and freed again adds nothing. A block that is resized counts as freed and
-- allocated, even if it does not move. Memory counts for the thread that allocates or frees.
-- Nothing is known of a call if its thread ran open calls of another stack (coroutines) during it.
-- A call that ends by a jump to another function has the costs until the jump, as in
-- `physical_duration_ns`. A call that an exception ended has none, unless it is a Java method. A call
-- of a program that no longer allows system calls has none either.
CREATE TABLE call_costs (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The call (`calls`).
    call_id INTEGER NOT NULL,
    -- The function (`functions`).
    function_id INTEGER NOT NULL,
    -- 1: within a measured call of the same function.
    is_nested INTEGER NOT NULL,
    -- CPU time of the call's thread, ns. It includes the cost of recording.
    cpu_ns INTEGER,
    -- CPU time without the measured calls below it, ns.
    cpu_self_ns INTEGER,
    -- Blocks that its thread got from the allocator while the call ran.
    allocations INTEGER,
    -- The bytes of these blocks. For a Java method, they are the bytes that its thread allocated in
    -- the Java heap (OpenJDK 17).
    allocated_bytes INTEGER,
    -- Blocks that its thread gave back.
    frees INTEGER,
    -- The bytes of these blocks.
    freed_bytes INTEGER,
    -- `allocations` without the measured calls below it.
    allocations_self INTEGER,
    -- `allocated_bytes` without the measured calls below it.
    allocated_self_bytes INTEGER,
    -- `frees` without the measured calls below it.
    frees_self INTEGER,
    -- `freed_bytes` without the measured calls below it.
    freed_self_bytes INTEGER,
    PRIMARY KEY (session_id, call_id)
) STRICT, WITHOUT ROWID;

-- A view: sums of `call_costs`.
--
-- - session_id INTEGER: The session (`sessions`).
-- - function_id INTEGER: The function (`functions`).
-- - calls INTEGER: The number of measured calls.
-- - cpu_ns INTEGER: CPU time of the measured calls, ns. If the function calls itself, only the
--   outermost calls count.
-- - cpu_self_ns INTEGER: CPU time without the measured calls below, ns.
-- - allocations INTEGER: Blocks that the calls got. If the function calls itself, only the
--   outermost calls count, here and in the columns up to `net_bytes`.
-- - allocated_bytes INTEGER: The bytes of these blocks.
-- - frees INTEGER: Blocks that the calls gave back.
-- - freed_bytes INTEGER: The bytes of these blocks.
-- - net_bytes INTEGER: `allocated_bytes` minus `freed_bytes`.
-- - allocations_self INTEGER: Blocks that the calls got without the measured calls below.
-- - allocated_self_bytes INTEGER: Bytes that the calls got without the measured calls below.
-- - frees_self INTEGER: Blocks that the calls gave back without the measured calls below.
-- - freed_self_bytes INTEGER: Bytes that the calls gave back without the measured calls below.
CREATE VIEW function_costs AS
SELECT session_id, function_id, count(*) AS calls, sum(cpu_ns * (1 - is_nested)) AS cpu_ns,
       sum(cpu_self_ns) AS cpu_self_ns, sum(allocations * (1 - is_nested)) AS allocations,
       sum(allocated_bytes * (1 - is_nested)) AS allocated_bytes,
       sum(frees * (1 - is_nested)) AS frees, sum(freed_bytes * (1 - is_nested)) AS freed_bytes,
       sum((allocated_bytes - freed_bytes) * (1 - is_nested)) AS net_bytes,
       sum(allocations_self) AS allocations_self,
       sum(allocated_self_bytes) AS allocated_self_bytes, sum(frees_self) AS frees_self,
       sum(freed_self_bytes) AS freed_self_bytes
FROM call_costs GROUP BY session_id, function_id;

-- ## Policies and what monitors report

-- The policies of a session. Each policy that was set has a row.
CREATE TABLE policies (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- Its number in the session, from 1.
    number INTEGER NOT NULL,
    -- The name of the policy.
    name TEXT NOT NULL DEFAULT '',
    -- The version, as its author counts.
    version INTEGER NOT NULL DEFAULT 0,
    -- `trace`, `profile` or `flight`.
    mode TEXT NOT NULL,
    -- The overhead budget, in parts per million of the program's CPU time; 0: there is no budget.
    budget_ppm INTEGER NOT NULL DEFAULT 0,
    -- JSON, as `sojourn policy show` prints it.
    document TEXT NOT NULL,
    -- JSON list of the parts of the policy that could not be applied.
    not_applied TEXT NOT NULL DEFAULT '[]',
    -- Nanoseconds since the session's start.
    applied_ns INTEGER NOT NULL,
    PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;

-- Reports of a profile. The device made their sums by call path, which are in `call_paths`.
CREATE TABLE profiles (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- Its number in the session, from 1.
    number INTEGER NOT NULL,
    -- The begin of the time that the report covers, ns since the session's start.
    start_ns INTEGER NOT NULL,
    -- The end of the time that the report covers, ns since the session's start.
    end_ns INTEGER NOT NULL,
    -- Calls that it counts.
    calls INTEGER NOT NULL,
    -- Entries and exits that it counts.
    events INTEGER NOT NULL,
    -- Bytes that were sent.
    bytes INTEGER NOT NULL,
    PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;

-- Decisions of the overhead budget: the functions that it unhooked and hooked again, and the
-- reasons.
CREATE TABLE decisions (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- Its number in the session, from 1.
    number INTEGER NOT NULL,
    -- Nanoseconds since the session's start.
    at_ns INTEGER NOT NULL,
    -- The process (`processes.number`).
    process_number INTEGER NOT NULL,
    -- The function (`functions`); NULL: the decision is not about one function.
    function_id INTEGER,
    -- `unhook`, `rehook`, `over` or `refused`.
    what TEXT NOT NULL,
    -- The reason, in words. It contains "muted" for a Java method whose probes stay and record
    -- nothing, because its class is not transformed.
    reason TEXT NOT NULL,
    -- Calls of the function in the interval that decided.
    calls INTEGER NOT NULL,
    -- Calls of the function in the session so far.
    total_calls INTEGER NOT NULL,
    -- The overhead that was estimated before the decision, in parts per million of CPU time.
    overhead_ppm INTEGER NOT NULL,
    -- The overhead that the budget allows, in parts per million of CPU time.
    budget_ppm INTEGER NOT NULL,
    PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;

-- Triggers of the policy that fired.
CREATE TABLE triggers (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- Its number in the session, from 1.
    number INTEGER NOT NULL,
    -- Nanoseconds since the session's start.
    at_ns INTEGER NOT NULL,
    -- The thread (`threads.number`); NULL: none.
    thread_number INTEGER,
    -- The position of the trigger in the policy's list, from 0.
    place INTEGER NOT NULL,
    -- The event: `slow_call`, `jank`, `rate`, `nth_call`, `mark`, `command`, `crash`, `app` or
    -- `value`.
    event TEXT NOT NULL,
    -- The function, mark or command that the event was about.
    subject TEXT NOT NULL DEFAULT '',
    -- Nanoseconds for `slow_call` and `jank`, else a count.
    value INTEGER NOT NULL DEFAULT 0,
    -- The actions that were carried out.
    actions TEXT NOT NULL,
    -- Times before this one that came too soon or too often.
    suppressed INTEGER NOT NULL DEFAULT 0,
    -- The session of the dump (`sessions.uuid`); NULL: none.
    child_session_uuid BLOB,
    PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;

-- Findings of monitors inside the traced program, a row for each finding. Each monitor defines its
-- kinds and the JSON of each; `payload ->> 'key'` reads a key. If a number is missing, the device's
-- spool was full when that report was made.
CREATE TABLE reports (
    -- The key.
    report_id INTEGER PRIMARY KEY,
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- Its number in the session, from 1.
    number INTEGER NOT NULL,
    -- Nanoseconds since the session's start.
    at_ns INTEGER NOT NULL,
    -- The process (`processes.number`); NULL: none in particular.
    process_number INTEGER,
    -- The thread (`threads.number`); NULL: none.
    thread_number INTEGER,
    -- The monitor that made the report.
    monitor TEXT NOT NULL,
    -- The kind of the finding.
    kind TEXT NOT NULL,
    -- A JSON object of at most 256 KiB.
    payload TEXT NOT NULL,
    UNIQUE (session_id, number)
) STRICT;

-- ## Uses of freed memory

-- Findings about freed memory: reports of one mistake, in all sessions and builds.
CREATE TABLE zombies (
    -- The key.
    zombie_id INTEGER PRIMARY KEY,
    -- A digest of the kind, the class, the selector, and the program's own functions on the stacks
    -- of use and free. Each function counts once, however deep a recursion was.
    fingerprint TEXT NOT NULL UNIQUE,
    -- use_after_free, overflow, underflow, overflow_at_free, underflow_at_free, overflow_at_call,
    -- underflow_at_call, double_free, invalid_free, mismatched_free, wild_access, message_to_freed,
    -- write_after_free or virtual_call_on_freed. A write_after_free is found when a delayed block is freed, so the
    -- function that wrote is not known.
    kind TEXT NOT NULL,
    -- The program's own function that made the mistake; empty: not known. Functions that only wrap
    -- the allocator (xfree, g_malloc, operator new) are stepped over.
    used_in TEXT NOT NULL,
    -- The function that freed the memory; empty: the memory was not freed, or the function is not
    -- known.
    freed_in TEXT NOT NULL,
    -- The function that allocated the memory; empty: not known.
    allocated_in TEXT NOT NULL,
    -- The number of reports.
    reports INTEGER NOT NULL,
    -- Nanoseconds since the Unix epoch, clock of the device.
    first_seen_realtime_ns INTEGER NOT NULL,
    -- Nanoseconds since the Unix epoch, clock of the device.
    last_seen_realtime_ns INTEGER NOT NULL,
    -- `open`, `resolved`, or `reopened`: the finding was seen again after it was resolved.
    state TEXT NOT NULL,
    -- When it was resolved, nanoseconds since the Unix epoch; NULL: never.
    resolved_realtime_ns INTEGER,
    -- The note that people wrote about the finding.
    note TEXT NOT NULL DEFAULT '',
    -- The class of the freed object, as written in the source, if a message was sent to it or a
    -- virtual function was called on it; empty: there is no object.
    class TEXT NOT NULL DEFAULT '',
    -- The selector of the message. For a virtual call, it is the function.
    selector TEXT NOT NULL DEFAULT ''
) STRICT;

-- A view: the findings of `zombies`, each with the number of its sessions, devices and builds.
--
-- - zombie_id INTEGER: The finding (`zombies`).
-- - kind TEXT: use_after_free, overflow, underflow, overflow_at_free, underflow_at_free,
--   overflow_at_call, underflow_at_call, double_free, invalid_free, mismatched_free, wild_access, message_to_freed, write_after_free or
--   virtual_call_on_freed. A write_after_free is found when a delayed block is freed, so the
--   function that wrote is not known.
-- - class TEXT: The class of the freed object, as written in the source, if a message was sent to
--   it or a virtual function was called on it; empty: there is no object.
-- - selector TEXT: The selector of the message. For a virtual call, it is the function.
-- - state TEXT: `open`, `resolved`, or `reopened`: the finding was seen again after it was
--   resolved.
-- - used_in TEXT: The program's own function that made the mistake; empty: not known. Functions
--   that only wrap the allocator (xfree, g_malloc, operator new) are stepped over.
-- - freed_in TEXT: The function that freed the memory; empty: the memory was not freed, or the
--   function is not known.
-- - allocated_in TEXT: The function that allocated the memory; empty: not known.
-- - reports INTEGER: The number of reports.
-- - sessions INTEGER: Sessions with a report of the finding.
-- - devices INTEGER: Devices of these sessions.
-- - builds INTEGER: Builds of the program's own module that used the memory. If no own module is on
--   the stack of the use, it is the module that freed the memory.
-- - first_seen_realtime_ns INTEGER: Nanoseconds since the Unix epoch, clock of the device.
-- - last_seen_realtime_ns INTEGER: Nanoseconds since the Unix epoch, clock of the device.
-- - resolved_realtime_ns INTEGER: When it was resolved, nanoseconds since the Unix epoch; NULL:
--   never.
-- - note TEXT: The note that people wrote about the finding.
-- - fingerprint TEXT: A digest of the kind, the class, the selector, and the program's own
--   functions on the stacks of use and free. Each function counts once, however deep a recursion
--   was.
CREATE VIEW zombie_findings AS
SELECT z.zombie_id, z.kind, z.class, z.selector, z.state, z.used_in, z.freed_in, z.allocated_in, z.reports,
    (SELECT count(DISTINCT r.session_id) FROM zombie_reports r WHERE r.zombie_id = z.zombie_id) AS sessions,
    (SELECT count(DISTINCT s.device_id) FROM zombie_reports r JOIN sessions s USING (session_id)
     WHERE r.zombie_id = z.zombie_id) AS devices,
    (SELECT count(DISTINCT m.build_id) FROM zombie_reports r JOIN session_modules s USING (session_id)
     JOIN modules m USING (module_id)
     WHERE r.zombie_id = z.zombie_id AND m.path = (SELECT f.module FROM zombie_frames f
         WHERE f.report_id = r.report_id AND f.is_own
         ORDER BY f.stack = 'use' DESC, f.stack = 'free' DESC, f.depth LIMIT 1)) AS builds,
    z.first_seen_realtime_ns, z.last_seen_realtime_ns, z.resolved_realtime_ns, z.note, z.fingerprint
FROM zombies z;

-- The report of each occurrence of a finding.
CREATE TABLE zombie_reports (
    -- The report (`reports`).
    report_id INTEGER PRIMARY KEY REFERENCES reports ON DELETE CASCADE,
    -- The finding (`zombies`).
    zombie_id INTEGER NOT NULL REFERENCES zombies ON DELETE CASCADE,
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- Nanoseconds since the session's start.
    at_ns INTEGER NOT NULL,
    -- The name of the thread that used the block.
    thread_name TEXT NOT NULL,
    -- The number that the device's kernel gave the thread that used the block.
    tid INTEGER NOT NULL,
    -- `read` or `write`; NULL: the block was freed.
    access TEXT,
    -- The size of the block that the program asked for, bytes.
    size INTEGER NOT NULL,
    -- The offset of the used bytes from the block's beginning.
    offset INTEGER NOT NULL
) STRICT;
CREATE INDEX zombie_reports_by_zombie ON zombie_reports (zombie_id);
CREATE INDEX zombie_reports_by_session ON zombie_reports (session_id);

-- The stacks of a report in `zombie_reports`, a row for each frame.
CREATE TABLE zombie_frames (
    -- The report (`reports`).
    report_id INTEGER NOT NULL REFERENCES reports ON DELETE CASCADE,
    -- `use`, `free`, `allocation`, or `history` and the number of the event.
    stack TEXT NOT NULL,
    -- The number of the frame; 0 is the innermost.
    depth INTEGER NOT NULL,
    -- The thread, as the kernel calls it.
    tid INTEGER NOT NULL,
    -- The source name; empty: there is no symbol.
    function TEXT NOT NULL,
    -- The path of the module; empty: the code is in no module.
    module TEXT NOT NULL,
    -- The offset in the module's file. Without a file, it is the address. For callers, it is that
    -- of the return address.
    offset INTEGER NOT NULL,
    -- 1: the code is not in a system library.
    is_own INTEGER NOT NULL,
    PRIMARY KEY (report_id, stack, depth)
) STRICT, WITHOUT ROWID;

-- The events of an object before it was freed, if the policy keeps them.
CREATE TABLE zombie_events (
    -- The report (`reports`).
    report_id INTEGER NOT NULL REFERENCES reports ON DELETE CASCADE,
    -- The number of the event, from 0, oldest first. The stack of the event in `zombie_frames` is
    -- `history <number>`.
    number INTEGER NOT NULL,
    -- `allocation`, `retain`, `release` or `autorelease`.
    event TEXT NOT NULL,
    -- The number of owners after the event.
    owners INTEGER NOT NULL,
    -- The thread, as the kernel calls it.
    tid INTEGER NOT NULL,
    -- The time of the event by the device's clock, in ticks.
    ticks INTEGER NOT NULL,
    -- The program's own function that caused the event; empty: not known.
    function TEXT NOT NULL,
    -- The number of the event that takes back the owner that this event gave, or the reverse. It is
    -- found by function, then class, then sequence; NULL: there is none.
    partner INTEGER,
    PRIMARY KEY (report_id, number)
) STRICT, WITHOUT ROWID;

-- The counters of the monitor `zombies` in a process: what was watched, and what was not and why.
CREATE TABLE zombie_accounts (
    -- The report (`reports`).
    report_id INTEGER PRIMARY KEY REFERENCES reports ON DELETE CASCADE,
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The process (`processes.number`).
    process_number INTEGER,
    -- Why the process was not watched; empty: it was.
    not_watched TEXT NOT NULL,
    -- The sampling that the policy asked for: one allocation in so many is guarded.
    one_in INTEGER NOT NULL,
    -- Allocations that were guarded.
    guarded INTEGER NOT NULL,
    -- Guarded blocks that were freed.
    released INTEGER NOT NULL,
    -- Freed guarded blocks whose slot was used again.
    evicted INTEGER NOT NULL,
    -- Allocations that were too large to be guarded.
    refused_size INTEGER NOT NULL,
    -- Allocations for which no slot was free.
    refused_full INTEGER NOT NULL,
    -- Allocations for which the kernel refused to open or close pages.
    refused_memory INTEGER NOT NULL,
    -- Mistakes that were found.
    uses INTEGER NOT NULL,
    -- Mistakes that were found and not reported, because of the limit per minute or because no
    -- report was free.
    suppressed INTEGER NOT NULL,
    -- Freed objects that were kept.
    kept INTEGER NOT NULL DEFAULT 0,
    -- Kept objects that were freed because newer objects needed their place.
    kept_full INTEGER NOT NULL DEFAULT 0,
    -- Kept objects that were freed because of their age.
    kept_old INTEGER NOT NULL DEFAULT 0,
    -- Kept objects that were freed because memory was short, or on command.
    kept_pressure INTEGER NOT NULL DEFAULT 0,
    -- Kept objects that were freed because the agent detached from the program.
    kept_left INTEGER NOT NULL DEFAULT 0,
    -- Kept objects that were freed after a use, because the policy's `on_use` is `free`.
    kept_used INTEGER NOT NULL DEFAULT 0,
    -- Objects that were freed at once, because there was no space, or in a signal handler.
    not_kept INTEGER NOT NULL DEFAULT 0,
    -- Freed blocks whose content was dropped to save memory.
    emptied INTEGER NOT NULL DEFAULT 0,
    -- Blocks whose free was delayed.
    delayed INTEGER NOT NULL DEFAULT 0,
    -- Delayed blocks that were freed because newer blocks needed their place.
    delayed_full INTEGER NOT NULL DEFAULT 0,
    -- Delayed blocks that were freed because memory was short, or on command.
    delayed_pressure INTEGER NOT NULL DEFAULT 0,
    -- Delayed blocks that were freed because the agent detached, or the policy changed.
    delayed_left INTEGER NOT NULL DEFAULT 0,
    -- Blocks that were freed at once, because they were too small or too large, or in a signal
    -- handler.
    not_delayed INTEGER NOT NULL DEFAULT 0,
    -- The rarest sampling that the overhead budget set: one allocation in so many was guarded. It
    -- equals `one_in` if the budget did not reduce the sampling.
    one_in_most INTEGER NOT NULL DEFAULT 0,
    -- How often the overhead budget paused the histories of objects.
    history_pauses INTEGER NOT NULL DEFAULT 0,
    -- Methods that got no trampoline, because none was free. If the program has kept the code
    -- address of such a method, its calls to that address are not checked.
    methods_without_trampoline INTEGER NOT NULL DEFAULT 0,
    -- The facts about memory pressure that the kernel did not give: file names, or `control group`;
    -- empty: it gave all. Unknown facts did not count.
    pressure_unseen TEXT NOT NULL DEFAULT '',
    -- The rarest delay that the overhead budget set: one free in so many was delayed. It is 1 if
    -- the budget did not reduce the delays.
    delayed_one_in_most INTEGER NOT NULL DEFAULT 0,
    -- Allocations that would have exceeded the `memory` of the policy.
    refused_limit INTEGER NOT NULL DEFAULT 0,
    -- Allocations that sampling left out. The number is an estimate.
    not_sampled INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX zombie_accounts_by_session ON zombie_accounts (session_id);

-- A view: how many heap blocks of a process were watched, and why others were not.
--
-- - session_id INTEGER: The session (`sessions`).
-- - process_number INTEGER: The process (`processes.number`).
-- - allocations INTEGER: The sum of guarded, not_sampled, bad_size, no_block, over_memory and
--   refused.
-- - guarded INTEGER: Allocations whose uses after the free, overflows and wrong frees are found.
-- - recycled INTEGER: Guarded blocks that were freed and whose memory was used again. Later uses of
--   them are not found.
-- - not_sampled INTEGER: Allocations that sampling left out, an estimate.
-- - bad_size INTEGER: Allocations of more than 1 MiB, or of 0 bytes.
-- - no_block INTEGER: Allocations that found all `blocks` of the policy in use.
-- - over_memory INTEGER: Allocations that would have exceeded the policy's `memory`.
-- - refused INTEGER: Allocations for which the kernel refused pages.
CREATE VIEW zombie_coverage AS
SELECT session_id, process_number,
    guarded + not_sampled + refused_size + refused_full + refused_limit + refused_memory AS allocations,
    guarded, evicted AS recycled, not_sampled, refused_size AS bad_size, refused_full AS no_block,
    refused_limit AS over_memory, refused_memory AS refused
FROM zombie_accounts
WHERE guarded + not_sampled + refused_size + refused_full + refused_limit + refused_memory <> 0;

-- ## Calls kept by filters

-- Calls that the policy counted and did not keep.
CREATE TABLE filtered_calls (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The function (`functions`).
    function_id INTEGER NOT NULL REFERENCES functions,
    -- Why they were left out: `depth`, `minimum`, `sampled` or `thread`.
    reason TEXT NOT NULL,
    -- Calls that were left out.
    calls INTEGER NOT NULL,
    -- Their time, ns.
    total_ns INTEGER NOT NULL,
    PRIMARY KEY (session_id, function_id, reason)
) STRICT, WITHOUT ROWID;
-- Without this index SQLite searches all rows for each function that is removed.
CREATE INDEX filtered_calls_by_function ON filtered_calls (function_id);

-- The reports of filtered calls that were received. The collector uses them to count no report
-- twice.
CREATE TABLE filtered_frames (
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The number of the report in the session.
    number INTEGER NOT NULL,
    PRIMARY KEY (session_id, number)
) STRICT, WITHOUT ROWID;

-- ## The collector's own records

-- Invitations: each enrols one device, once.
CREATE TABLE enrolment_tokens (
    -- The key.
    enrolment_id INTEGER PRIMARY KEY,
    -- SHA-256 of the token.
    token_hash BLOB NOT NULL UNIQUE,
    -- Nanoseconds since the Unix epoch.
    created_realtime_ns INTEGER NOT NULL,
    -- Nanoseconds since the Unix epoch.
    expires_realtime_ns INTEGER NOT NULL,
    -- The device that used the invitation (`devices`); NULL: it was not used yet.
    device_id INTEGER REFERENCES devices,
    -- Nanoseconds since the Unix epoch; NULL: not yet.
    used_realtime_ns INTEGER,
    -- The device that the invitation is for, and that it may replace (`devices`); NULL: it is for a
    -- new device.
    for_device_id INTEGER REFERENCES devices
) STRICT;

-- Frames that were refused, because a device sent them for a session of another device. The table
-- has at most 1,000 rows.
CREATE TABLE refused_frames (
    -- The session that they were for (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The device that sent them.
    sender_uuid BLOB NOT NULL,
    -- The number of frames.
    frames INTEGER NOT NULL,
    -- Why the last one was refused.
    reason TEXT NOT NULL,
    -- Nanoseconds since the Unix epoch.
    first_realtime_ns INTEGER NOT NULL,
    -- Nanoseconds since the Unix epoch.
    last_realtime_ns INTEGER NOT NULL,
    PRIMARY KEY (session_id, sender_uuid)
) STRICT, WITHOUT ROWID;

-- Blocks that claim events which are stored already, with other contents. The collector does not
-- acknowledge them, so the sender keeps its own copy. At most 16 blocks of a session are kept, and
-- 256 blocks and 64 MB in all.
CREATE TABLE quarantined_blocks (
    -- The key.
    quarantined_id INTEGER PRIMARY KEY,
    -- The session (`sessions`).
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    -- The number of the stream in the session.
    stream INTEGER NOT NULL,
    -- The number of the block's first event in the stream.
    first_event INTEGER NOT NULL,
    -- Events that the block claims.
    event_count INTEGER NOT NULL,
    -- The device that sent it; NULL: the collector's own process.
    sender_uuid BLOB,
    -- The contradiction between the block and the stored data.
    reason TEXT NOT NULL,
    -- Nanoseconds since the Unix epoch.
    arrived_realtime_ns INTEGER NOT NULL,
    -- The block as it came.
    data BLOB NOT NULL
) STRICT;
CREATE INDEX quarantined_blocks_by_range ON quarantined_blocks (session_id, stream, first_event,
    event_count);

-- The identity of this database among those that feed one cluster. The table has one row, made when
-- the database first forwards.
CREATE TABLE lab (
    -- 16 random bytes: the identity of the database.
    uuid BLOB NOT NULL
) STRICT;

-- Sessions that were sent to a cluster (`sojourn forward`). Sessions that are not in this table, or
-- differ from their row, are still to be sent.
CREATE TABLE forwarded_sessions (
    -- The URL and database of the cluster.
    target TEXT NOT NULL,
    -- The identity of the session. The session may have been removed here.
    session_uuid BLOB NOT NULL,
    -- The version of the session's rows in the cluster.
    version INTEGER NOT NULL,
    -- The state of the session when it was sent; empty: the session was removed.
    content TEXT NOT NULL,
    -- Rows that were sent.
    rows INTEGER NOT NULL,
    -- Bytes of these rows.
    bytes INTEGER NOT NULL,
    -- Nanoseconds since the Unix epoch.
    forwarded_realtime_ns INTEGER NOT NULL,
    PRIMARY KEY (target, session_uuid)
) STRICT, WITHOUT ROWID;

-- Commands (`commands`) that were sent to a cluster.
CREATE TABLE forwarded_commands (
    -- The URL and database of the cluster.
    target TEXT NOT NULL,
    -- The command (`commands`). The command may have been removed here.
    command_id INTEGER NOT NULL,
    -- The state of the command when it was sent; empty: the command was removed.
    content TEXT NOT NULL,
    PRIMARY KEY (target, command_id)
) STRICT, WITHOUT ROWID;

-- Places outside of the database that hold blocks (`sojourn session move`).
CREATE TABLE block_places (
    -- The key.
    place_id INTEGER PRIMARY KEY,
    -- The kind of place: `folder`.
    kind TEXT NOT NULL,
    -- Its absolute path.
    address TEXT NOT NULL,
    UNIQUE (kind, address)
) STRICT;

-- Files in these places. Each file holds blocks of one session, one after the other.
CREATE TABLE block_files (
    -- The key, as in the `storage` of `blocks`.
    file_id INTEGER PRIMARY KEY,
    -- The place (`block_places`).
    place_id INTEGER NOT NULL REFERENCES block_places,
    -- The identity of the session.
    session_uuid BLOB NOT NULL,
    -- The name of the file.
    name TEXT NOT NULL,
    -- 0: no block refers to the file. The file is deleted as soon as its place is available.
    is_needed INTEGER NOT NULL,
    UNIQUE (place_id, name)
) STRICT;
CREATE INDEX block_files_unneeded ON block_files (file_id) WHERE is_needed = 0;

-- ## Views

-- A view: functions of a session that were not hooked, from the plan and from the agent. Cold parts
-- are not among them: they are recorded with their functions.
--
-- - session_id INTEGER: The session (`sessions`).
-- - function_id INTEGER: The function (`functions`).
-- - name TEXT: The name, demangled.
-- - module TEXT: The path of its file.
-- - offset INTEGER: The offset in the module, bytes.
-- - size_bytes INTEGER: The size of its code, bytes.
-- - reason TEXT: Why it was not hooked.
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

-- A view: functions that are Objective-C methods, their names taken apart.
--
-- - function_id INTEGER: The function (`functions`).
-- - name TEXT: The whole name.
-- - kind TEXT: `instance` or `class`: what the message was sent to.
-- - receiver TEXT: The class of the receiver, if another class defines the method. NULL: they are
--   the same, or the receiver was not recorded (`record --receivers`, `--objc dispatch`).
-- - class TEXT: The class that defines the method.
-- - category TEXT: The category of a method that was patched in place; NULL: there is none.
-- - selector TEXT: The message.
CREATE VIEW methods AS
SELECT function_id, name, kind,
       CASE WHEN colon > 0 THEN substr(class_part, 1, colon - 1) END AS receiver,
       CASE WHEN paren > 0 THEN substr(class_part, colon + 1, paren - colon - 1)
            ELSE substr(class_part, colon + 1) END AS class,
       CASE WHEN paren > 0 THEN rtrim(substr(class_part, paren + 1), ')') END AS category,
       selector
FROM (SELECT function_id, name, kind, class_part, selector,
             instr(class_part, ':') AS colon, instr(class_part, '(') AS paren
      FROM (SELECT function_id, name,
                   CASE substr(name, 1, 1) WHEN '+' THEN 'class' ELSE 'instance' END AS kind,
                   substr(name, 3, instr(name, ' ') - 3) AS class_part,
                   substr(name, instr(name, ' ') + 1, length(name) - instr(name, ' ') - 1) AS selector
            FROM functions
            WHERE (name GLOB '-[[]* *]' OR name GLOB '+[[]* *]')));

-- A view: global variables of the modules of a session, as a map file names them (`record --map`,
-- `attach --map`).
--
-- - session_id INTEGER: The session (`sessions`).
-- - module_id INTEGER: The module (`modules`).
-- - name TEXT: The name, as in the map file.
-- - offset INTEGER: The offset in the module, bytes.
-- - size_bytes INTEGER: The size in the map file. If the map has none, the size reaches to the next
--   variable or the end of the section.
CREATE VIEW globals AS
SELECT DISTINCT m.session_id, m.module_id, json_extract(g.value, '$.name') AS name,
       json_extract(g.value, '$.offset') AS offset, json_extract(g.value, '$.size') AS size_bytes
FROM reports AS r, json_each(r.payload, '$.globals') AS g, session_modules AS m
WHERE r.monitor = 'map' AND r.kind = 'globals' AND g.type = 'object'
  AND m.session_id = r.session_id AND m.number = json_extract(r.payload, '$.module');

-- A view: lines of the methods of a session's modules, by the symbol files beside assemblies, and
-- by Java classes (`record --lines`). A line that several methods share has a row for each.
--
-- - session_id INTEGER: The session (`sessions`).
-- - module_id INTEGER: The module (`modules`).
-- - function_id INTEGER: The method (`functions`).
-- - file TEXT: The source file, as the symbol file names it.
-- - line INTEGER: The number of the line, from 1.
-- - entered INTEGER: 1: some instruction of the line ran; 0: none; NULL: it is not known, because
--   the program was killed, a report of it was lost, or the runtime could not count (`reports`,
--   monitor `lines`).
CREATE VIEW source_lines AS
WITH told AS (
    SELECT r.session_id, r.kind, json_extract(r.payload, '$.module') AS number,
           json_extract(r.payload, '$.file') AS file, json_extract(m.value, '$[0]') AS token,
           l.value AS line
    FROM reports AS r, json_each(r.payload, '$.methods') AS m, json_each(m.value) AS l
    WHERE r.monitor = 'lines' AND m.type = 'array' AND l.key > 0),
known AS (
    SELECT DISTINCT session_id, json_extract(payload, '$.module') AS number
    FROM reports WHERE monitor = 'lines' AND kind = 'entered'
      AND json_extract(payload, '$.file') = '' AND json_array_length(payload, '$.methods') = 0)
SELECT t.session_id, s.module_id, f.function_id, t.file, t.line,
       max(CASE WHEN t.kind = 'entered' THEN 1
                WHEN k.number IS NOT NULL THEN 0 END) AS entered
FROM told AS t
JOIN session_modules AS s ON s.session_id = t.session_id AND s.number = t.number
JOIN functions AS f ON f.module_id = s.module_id AND f.offset = t.token
LEFT JOIN known AS k ON k.session_id = t.session_id AND k.number = t.number
GROUP BY t.session_id, f.function_id, t.file, t.line;

-- A view: the places of the code that Mono generated for methods. It covers methods whose code was
-- to be hooked in place (`record --mono-engine in_place`, rules about results, `attach`). A generic
-- method has a row for each of its instances.
--
-- - session_id INTEGER: The session (`sessions`).
-- - process_number INTEGER: Process, as numbered by the device.
-- - function_id INTEGER: The method (`functions`).
-- - address INTEGER: The address of the code.
-- - size_bytes INTEGER: The size of the code with the constants after it, bytes.
CREATE VIEW method_code AS
SELECT r.session_id, r.process_number, f.function_id, json_extract(c.value, '$[1]') AS address,
       json_extract(c.value, '$[2]') AS size_bytes
FROM reports AS r, json_each(r.payload, '$.code') AS c
JOIN session_modules AS s ON s.session_id = r.session_id
    AND json_extract(c.value, '$[0]') BETWEEN s.first_function
                                      AND s.first_function + s.function_count - 1
JOIN modules AS m ON m.module_id = s.module_id
JOIN functions AS f
    ON f.function_id = m.first_function_id + json_extract(c.value, '$[0]') - s.first_function
WHERE r.monitor = 'methods' AND r.kind = 'code' AND c.type = 'array';

-- A view: time that threads spent on and off the processor. Each row is a step of a thread. A step
-- lies between two readings of the scheduler's counters by the recorder. The steps of a thread
-- follow each other while the recorder reads its counters. A step without any work may take up to
-- 10 s. The kernel counts a running thread at its timer ticks. So work of the last 4 ms (at 250 Hz)
-- may be in the next step. Threads have steps from their first recorded call on. Flight dumps, and
-- recordings by a thread of the program itself, have no steps.
--
-- - session_id INTEGER: The session (`sessions`).
-- - process_number INTEGER: The process (`processes.number`).
-- - thread_number INTEGER: The thread (`threads.number`).
-- - from_ns INTEGER: The begin of the step, ns since the session's start.
-- - to_ns INTEGER: The end of the step, ns since the session's start.
-- - cpu_ns INTEGER: Nanoseconds that the thread ran.
-- - ready_ns INTEGER: Nanoseconds that the thread waited for a processor.
-- - waiting_ns INTEGER: Nanoseconds that the thread waited for anything else: the rest of the step.
-- - reported_ns INTEGER: When the device reported the step, ns since the session's start. It is
--   about a second after the step.
-- - allocations INTEGER: Blocks that the thread got from malloc's family in the step; NULL: not
--   counted (`record --thread-memory`, `--memory`).
-- - allocated_bytes INTEGER: The bytes of these blocks.
-- - frees INTEGER: Blocks that the thread gave back.
-- - freed_bytes INTEGER: The bytes of these blocks.
CREATE VIEW thread_times AS
SELECT r.session_id, r.process_number, e.value ->> 0 AS thread_number,
       r.at_ns - (e.value ->> 1) AS from_ns, r.at_ns - (e.value ->> 1) + (e.value ->> 2) AS to_ns,
       e.value ->> 3 AS cpu_ns, e.value ->> 4 AS ready_ns,
       max((e.value ->> 2) - (e.value ->> 3) - (e.value ->> 4), 0) AS waiting_ns,
       r.at_ns AS reported_ns, e.value ->> 5 AS allocations, e.value ->> 6 AS allocated_bytes,
       e.value ->> 7 AS frees, e.value ->> 8 AS freed_bytes
FROM reports AS r, json_each(r.payload, '$.steps') AS e
WHERE r.monitor = 'threads' AND r.kind = 'times' AND e.type = 'array';

-- A view: the start of a session on the collector's clock, so that sessions of many devices share
-- one time line. A session has no row if its clocks were never compared.
--
-- - session_id INTEGER: The session (`sessions`).
-- - started_collector_ns INTEGER: Nanoseconds since the Unix epoch; a call at `start_ns` was at
--   `started_collector_ns + start_ns`.
-- - uncertainty_ns INTEGER: The error of `started_collector_ns` is at most this, ns. It includes a
--   drift of 50 ppm since the clocks were compared.
-- - clock_error_ns INTEGER: The collector's real time minus the device's real time, ns.
CREATE VIEW session_collector_times AS
WITH first_pairs AS (
    SELECT s.session_id, s.device_id, p.boot_id, p.boottime_ns + CAST((s.started_ticks - p.ticks)
               * (CAST(s.tick_ns_numerator AS REAL) / s.tick_ns_denominator) AS INTEGER)
               AS boottime_ns, p.uncertainty_ns
    FROM sessions AS s JOIN clock_pairs AS p ON p.session_id = s.session_id
        AND p.ticks = (SELECT min(ticks) FROM clock_pairs WHERE session_id = s.session_id)
), ranked AS (
    SELECT f.session_id, f.boottime_ns + c.offset_ns AS started_collector_ns,
           f.uncertainty_ns + c.uncertainty_ns + abs(f.boottime_ns - c.boottime_ns) / 20000
               AS uncertainty_ns,
           row_number() OVER (PARTITION BY f.session_id ORDER BY
               c.uncertainty_ns + abs(f.boottime_ns - c.boottime_ns) / 20000) AS place
    FROM first_pairs AS f JOIN device_clocks AS c
        ON c.device_id = f.device_id AND c.boot_id = f.boot_id
)
SELECT r.session_id, r.started_collector_ns, r.uncertainty_ns,
       r.started_collector_ns - s.started_realtime_ns AS clock_error_ns
FROM ranked AS r JOIN sessions AS s ON s.session_id = r.session_id WHERE r.place = 1;

-- A view: sums of a thread's streams.
--
-- - thread_id INTEGER: The thread (`threads`).
-- - session_id INTEGER: The session (`sessions`).
-- - thread_number INTEGER: Its number in the session, from 1.
-- - tid INTEGER: The number that the device's kernel gave the thread. In another PID namespace: the
--   thread's number there, if it ended before the recorder found it.
-- - name TEXT: The name of the thread.
-- - is_main INTEGER: 1: the process's first thread.
-- - calls INTEGER: Calls that were entered.
-- - first_enter_ns INTEGER: Nanoseconds since the session's start.
-- - last_leave_ns INTEGER: Nanoseconds since the session's start.
-- - run_time_ns INTEGER: The last exit minus the first entry, ns.
-- - max_depth INTEGER: The deepest nesting of the thread's calls, counted from 1.
-- - dropped_calls INTEGER: Calls that were lost.
-- - dropped_events INTEGER: Entries and exits that were lost.
-- - waited_ns INTEGER: Time that the thread waited for the drain, ns.
CREATE VIEW thread_stats AS
SELECT t.thread_id, t.session_id, t.number AS thread_number, t.tid, t.name, t.is_main,
       sum(s.calls) AS calls, min(s.first_enter_ns) AS first_enter_ns,
       max(s.last_leave_ns) AS last_leave_ns,
       max(s.last_leave_ns) - min(s.first_enter_ns) AS run_time_ns,
       max(s.max_depth) AS max_depth, t.dropped_calls, t.dropped_events, t.waited_ns
FROM threads AS t JOIN streams AS s ON s.thread_id = t.thread_id
GROUP BY t.thread_id;
