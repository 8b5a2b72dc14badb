-- Statements of maintenance/session_join.c. ?1 is the session in the source.

-- part: join_both
source.sessions AS s JOIN main.sessions AS t ON t.uuid = s.uuid

-- part: join_lacking(table, same)
EXISTS (SELECT 1 FROM {join_both} JOIN source.{table} AS r ON r.session_id = s.session_id
    WHERE s.session_id = ?1 AND NOT EXISTS (SELECT 1 FROM main.{table} AS o
    WHERE o.session_id = t.session_id AND o.number = r.number AND {same}))

-- name: session_join_has_more
-- Selects 1 if the source has something of the session that the target lacks.
SELECT EXISTS (SELECT 1 FROM {join_both} JOIN source.streams AS x ON x.session_id = s.session_id
    JOIN source.blocks AS b ON b.stream_id = x.stream_id WHERE s.session_id = ?1 AND NOT EXISTS
    (SELECT 1 FROM main.streams AS y JOIN main.blocks AS c ON c.stream_id = y.stream_id
    WHERE y.session_id = t.session_id AND y.number = x.number AND c.kind = b.kind
    AND c.first_event = b.first_event AND c.event_count = b.event_count))
OR EXISTS (SELECT 1 FROM {join_both} WHERE s.session_id = ?1
    AND coalesce(s.sent_calls, -1) > coalesce(t.sent_calls, -1))
OR {join_lacking(marks, o.source = r.source)}
OR {join_lacking(processes, 1)}
OR {join_lacking(threads, 1)}
OR {join_lacking(streams, 1)}
OR {join_lacking(session_modules, 1)}
OR {join_lacking(reports, 1)}
OR {join_lacking(triggers, 1)}
OR {join_lacking(profiles, 1)}

-- name: session_join_conflict
-- Selects why two parts cannot be joined, or nothing.
SELECT 'the session is being removed here'
FROM {join_both}
WHERE s.session_id = ?1
AND t.state = 'removing'
UNION ALL
SELECT 'another device has recorded it'
FROM {join_both}
WHERE s.session_id = ?1
AND t.device_id <> (SELECT device_id FROM temp.moved)
UNION ALL
SELECT 'the clock of the session differs'
FROM {join_both}
WHERE s.session_id = ?1
AND (s.started_ticks <> t.started_ticks OR s.tick_ns_numerator <> t.tick_ns_numerator
    OR s.tick_ns_denominator <> t.tick_ns_denominator)
UNION ALL
SELECT 'another recorder has recorded it'
FROM {join_both}
WHERE s.session_id = ?1
AND s.secret_digest <> t.secret_digest
UNION ALL
SELECT 'it has profiles, whose sums no block holds'
FROM {join_both}
WHERE s.session_id = ?1
AND (EXISTS (SELECT 1 FROM source.profiles AS p WHERE p.session_id = s.session_id)
    OR EXISTS (SELECT 1 FROM main.profiles AS p WHERE p.session_id = t.session_id))
UNION ALL
SELECT 'the functions of its modules have other numbers'
FROM {join_both}
WHERE s.session_id = ?1
AND EXISTS (SELECT 1 FROM source.session_modules AS x JOIN temp.moved_modules AS v ON v.old_id = x.module_id
    JOIN main.session_modules AS y ON y.session_id = t.session_id WHERE x.session_id = s.session_id
    AND (x.number = y.number AND (y.module_id <> v.new_id OR x.first_function <> y.first_function
    OR x.function_count <> y.function_count)
    OR x.number <> y.number AND x.first_function < y.first_function + y.function_count
    AND y.first_function < x.first_function + x.function_count))
UNION ALL
SELECT 'both parts have counts of the same filtered calls'
FROM {join_both}
WHERE s.session_id = ?1
AND EXISTS (SELECT number FROM source.filtered_frames WHERE session_id = s.session_id
    INTERSECT SELECT number FROM main.filtered_frames WHERE session_id = t.session_id)
AND EXISTS (SELECT number FROM source.filtered_frames WHERE session_id = s.session_id
    EXCEPT SELECT number FROM main.filtered_frames WHERE session_id = t.session_id)
AND EXISTS (SELECT number FROM main.filtered_frames WHERE session_id = t.session_id
    EXCEPT SELECT number FROM source.filtered_frames WHERE session_id = s.session_id)
LIMIT 1

-- name: session_join_tables
-- replaced_blocks are blocks of the target. wrong_ends are streams that a block ends too early.
CREATE TEMP TABLE joined_blocks (block_id INTEGER PRIMARY KEY);
CREATE TEMP TABLE replaced_blocks (block_id INTEGER PRIMARY KEY);
CREATE TEMP TABLE wrong_ends (stream_id INTEGER NOT NULL, is_own INTEGER NOT NULL,
    PRIMARY KEY (stream_id, is_own));
CREATE TEMP TABLE new_filtered AS
SELECT number
FROM source.filtered_frames
WHERE session_id = (SELECT id FROM temp.wanted)
EXCEPT
SELECT number
FROM main.filtered_frames
WHERE session_id = (SELECT session_id FROM temp.moved)

-- name: session_join_blocks
-- The blocks of the source. `stream_id` is the stream's id in the target.
SELECT b.block_id, v.new_id, b.kind, b.first_event, b.event_count, b.storage, b.data,
    b.quarantined IS NOT NULL
FROM temp.moved_streams AS v
CROSS JOIN source.blocks AS b ON b.stream_id = v.old_id
ORDER BY v.old_id, b.kind, b.first_event

-- name: session_join_overlapping
-- Blocks of the target that may share events with a block that ends before event ?3, the last first.
SELECT block_id, stream_id, kind, first_event, event_count, storage, data, quarantined IS NOT NULL
FROM main.blocks
WHERE stream_id = ?1
AND kind = ?2
AND first_event < ?3
AND event_count > 0
ORDER BY first_event DESC

-- name: session_join_empty
-- A block without events has the same numbers as another one.
SELECT block_id, stream_id, kind, first_event, event_count, storage, data, quarantined IS NOT NULL
FROM main.blocks
WHERE stream_id = ?1
AND kind = ?2
AND first_event = ?3
AND event_count = 0

-- part: join_may_end
b.kind = 1 AND b.call_count = 0 AND b.event_count > 0 AND b.event_count = b.open_depth

-- name: session_join_own_ends
-- Blocks of the target that may end a stream before a block of the source.
SELECT b.block_id, b.stream_id, b.kind, b.first_event, b.event_count, b.storage, b.data, 0
FROM temp.moved_streams AS v
CROSS JOIN main.blocks AS b ON b.stream_id = v.new_id
WHERE {join_may_end}
AND b.block_id NOT IN (SELECT block_id FROM temp.replaced_blocks)
AND EXISTS (SELECT 1 FROM source.blocks AS l WHERE l.stream_id = v.old_id AND l.kind = 1
    AND l.event_count > 0 AND l.first_event > b.first_event
    AND l.block_id IN (SELECT block_id FROM temp.joined_blocks))

-- name: session_join_other_ends
-- Blocks of the source that may end a stream before a block of the target.
SELECT b.block_id, v.new_id, b.kind, b.first_event, b.event_count, b.storage, b.data, 0
FROM temp.moved_streams AS v
CROSS JOIN source.blocks AS b ON b.stream_id = v.old_id
WHERE {join_may_end}
AND b.block_id IN (SELECT block_id FROM temp.joined_blocks)
AND EXISTS (SELECT 1 FROM main.blocks AS l WHERE l.stream_id = v.new_id AND l.kind = 1
    AND l.event_count > 0 AND l.first_event > b.first_event
    AND l.block_id NOT IN (SELECT block_id FROM temp.replaced_blocks))

-- name: session_join_remove
DELETE FROM main.gaps
WHERE block_id IN (SELECT block_id FROM temp.replaced_blocks);
DELETE FROM main.blocks
WHERE block_id IN (SELECT block_id FROM temp.replaced_blocks);
DELETE FROM main.open_calls
WHERE stream_id IN (SELECT stream_id FROM temp.wrong_ends WHERE is_own);
UPDATE main.streams SET ended = 0
WHERE stream_id IN (SELECT stream_id FROM temp.wrong_ends WHERE is_own);
DELETE FROM main.filtered_calls
WHERE session_id = (SELECT session_id FROM temp.moved)
AND EXISTS (SELECT 1 FROM temp.new_filtered)
AND NOT EXISTS (SELECT number FROM main.filtered_frames WHERE session_id = (SELECT session_id FROM temp.moved)
    EXCEPT SELECT number FROM source.filtered_frames WHERE session_id = (SELECT id FROM temp.wanted))

-- part: join_later(column)
{column} = coalesce(max(t.{column}, s.{column}), t.{column}, s.{column})

-- name: session_join_merge
-- Adds what the source knows of rows that both have. The larger of two counts is the later one.
UPDATE main.sessions AS t SET (state, ended_ticks, ended_realtime_ns, sent_calls, sent_records,
    device_lost_calls, device_lost_events, traced_cpu_ns, estimated_probe_ns) = (SELECT s.state, s.ended_ticks,
    s.ended_realtime_ns, s.sent_calls, s.sent_records, s.device_lost_calls, s.device_lost_events,
    s.traced_cpu_ns, s.estimated_probe_ns FROM source.sessions AS s WHERE s.session_id =
    (SELECT id FROM temp.wanted))
WHERE t.session_id = (SELECT session_id FROM temp.moved)
AND coalesce(t.sent_calls, -1) < (SELECT coalesce(sent_calls, -1) FROM source.sessions
    WHERE session_id = (SELECT id FROM temp.wanted));
UPDATE main.sessions AS t SET sent_blocks = s.blocks
FROM (SELECT max(coalesce(t.sent_blocks - (SELECT count(*) FROM temp.wrong_ends WHERE is_own), -1),
    coalesce(s.sent_blocks - (SELECT count(*) FROM temp.wrong_ends WHERE NOT is_own), -1)) AS blocks,
    t.session_id FROM source.sessions AS s CROSS JOIN main.sessions AS t
    WHERE s.session_id = (SELECT id FROM temp.wanted) AND t.session_id = (SELECT session_id FROM temp.moved)) AS s
WHERE t.session_id = s.session_id
AND s.blocks >= 0
AND t.sent_blocks IS NOT s.blocks;
UPDATE main.sessions AS t SET policy_version = max(t.policy_version, s.policy_version),
    secret_digest = coalesce(t.secret_digest, s.secret_digest)
FROM source.sessions AS s
WHERE s.session_id = (SELECT id FROM temp.wanted)
AND t.session_id = (SELECT session_id FROM temp.moved)
AND (s.policy_version > t.policy_version OR t.secret_digest IS NULL AND s.secret_digest IS NOT NULL);
UPDATE main.processes AS t SET executable = iif(t.executable = '', s.executable, t.executable),
    command = iif(t.command = '', s.command, t.command), {join_later(ended_ns)},
    exit_code = coalesce(t.exit_code, s.exit_code), exit_signal = coalesce(t.exit_signal, s.exit_signal),
    core_dumped = max(t.core_dumped, s.core_dumped),
    disarm_reason = iif(t.disarm_reason = '', s.disarm_reason, t.disarm_reason)
FROM source.processes AS s
WHERE s.session_id = (SELECT id FROM temp.wanted)
AND t.session_id = (SELECT session_id FROM temp.moved)
AND t.number = s.number
AND (t.ended_ns IS NOT s.ended_ns OR t.exit_code IS NOT s.exit_code OR t.exit_signal IS NOT s.exit_signal
    OR t.disarm_reason <> s.disarm_reason OR t.executable <> s.executable OR t.command <> s.command);
UPDATE main.threads AS t SET name = iif(t.name = '' OR t.ended_ns IS NULL AND s.ended_ns IS NOT NULL, s.name,
    t.name), {join_later(ended_ns)}, dropped_calls = max(t.dropped_calls, s.dropped_calls),
    dropped_events = max(t.dropped_events, s.dropped_events), waited_ns = max(t.waited_ns, s.waited_ns),
    {join_later(cpu_ns)}, {join_later(allocated_bytes)}, {join_later(malloc_allocations)},
    {join_later(malloc_bytes)}, {join_later(malloc_frees)}, {join_later(malloc_freed_bytes)}
FROM source.threads AS s
JOIN temp.moved_threads AS v ON v.old_id = s.thread_id
WHERE t.thread_id = v.new_id
AND (t.name, t.ended_ns, t.dropped_calls, t.dropped_events, t.waited_ns, t.cpu_ns, t.allocated_bytes,
    t.malloc_allocations, t.malloc_bytes, t.malloc_frees, t.malloc_freed_bytes) IS NOT (s.name, s.ended_ns,
    s.dropped_calls, s.dropped_events, s.waited_ns, s.cpu_ns, s.allocated_bytes, s.malloc_allocations,
    s.malloc_bytes, s.malloc_frees, s.malloc_freed_bytes);
UPDATE main.streams AS t SET (thread_id, own_stack) = (w.new_id, s.own_stack)
FROM source.streams AS s
JOIN temp.moved_streams AS v ON v.old_id = s.stream_id
JOIN temp.moved_threads AS w ON w.old_id = s.thread_id
WHERE t.stream_id = v.new_id
AND t.thread_id IS NULL;
UPDATE main.streams AS t SET ended = 1
FROM source.streams AS s
JOIN temp.moved_streams AS v ON v.old_id = s.stream_id
WHERE t.stream_id = v.new_id
AND s.ended
AND NOT t.ended
AND v.new_id NOT IN (SELECT stream_id FROM temp.wrong_ends WHERE NOT is_own);
UPDATE main.mappings AS t SET unloaded_ns = s.unloaded_ns
FROM source.mappings AS s
WHERE s.session_id = (SELECT id FROM temp.wanted)
AND t.session_id = (SELECT session_id FROM temp.moved)
AND (t.process_number, t.module_number, t.bias) = (s.process_number, s.module_number, s.bias)
AND t.unloaded_ns IS NULL
AND s.unloaded_ns IS NOT NULL;
UPDATE main.session_modules AS t SET (hook_plan_id, hooked_count) = (p.new_id, s.hooked_count)
FROM source.session_modules AS s
JOIN temp.moved_plans AS p ON p.old_id = s.hook_plan_id
WHERE s.session_id = (SELECT id FROM temp.wanted)
AND t.session_id = (SELECT session_id FROM temp.moved)
AND t.number = s.number
AND s.hooked_count > t.hooked_count
