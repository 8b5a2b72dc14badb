-- Stores streams and their blocks.

-- name: hole_list
-- row: stream_id, events, calls, start_ticks count, end_ticks count
-- The streams of a flight dump begin at any event.
SELECT *
FROM (SELECT b.stream_id, b.first_event - lag(b.first_event + b.event_count + b.lost_events, 1,
    s.first_event) OVER w AS events, b.first_call - lag(b.first_call + b.call_count + b.lost_calls, 1,
    iif(s.first_event = 0, 0, b.first_call)) OVER w AS calls, lag(b.last_ticks, 1, s.started_ticks) OVER w,
    b.first_ticks FROM (SELECT st.stream_id, e.started_ticks, iif(e.parent_session_id IS NULL, 0,
    (SELECT min(first_event) FROM blocks WHERE stream_id = st.stream_id AND kind = 1)) AS first_event
    FROM streams AS st JOIN sessions AS e USING (session_id) WHERE st.session_id = :session_id) AS s
    JOIN blocks AS b ON b.stream_id = s.stream_id AND b.kind = 1 WINDOW w AS (PARTITION BY b.stream_id
    ORDER BY b.first_event, b.block_id))
WHERE events > 0

-- name: block_uncounted_list
-- row: block_id
SELECT b.block_id
FROM streams st
CROSS JOIN blocks b ON b.stream_id = st.stream_id
WHERE st.session_id = :session_id
AND +b.block_id >= :first_block
ORDER BY b.block_id

-- name: block_read
-- row: number, storage, data blob
SELECT st.number, b.storage, b.data
FROM blocks b
JOIN streams st USING (stream_id)
WHERE b.block_id = :block_id
AND b.quarantined IS NULL

-- name: block_quarantine
-- bind: quarantined text
UPDATE blocks SET quarantined = :quarantined
WHERE block_id = :block_id

-- name: stream_link
INSERT INTO streams (session_id, number, thread_id, own_stack)
VALUES (:session_id, :number, :thread_id, :own_stack)
ON CONFLICT (session_id, number) DO UPDATE SET thread_id = excluded.thread_id, own_stack = excluded.own_stack

-- name: stream_add
-- row: stream_id
INSERT INTO streams (session_id, number)
VALUES (:session_id, :number)
ON CONFLICT (session_id, number) DO UPDATE SET number = number
RETURNING stream_id

-- name: stream_sums
-- bind: calls count, first_enter_ns optional, last_leave_ns optional
UPDATE streams SET calls = :calls, first_enter_ns = :first_enter_ns, last_leave_ns = :last_leave_ns,
    max_depth = :max_depth, ended = :ended
WHERE stream_id = :stream_id

-- name: stream_end
UPDATE streams SET ended = 1
WHERE stream_id = :stream_id

-- name: stream_last_block
-- row: storage, data blob, has_later
SELECT storage, data, later
FROM (SELECT b.storage, b.data, b.quarantined, EXISTS (SELECT 1 FROM streams AS n
    WHERE n.session_id = s.session_id AND n.thread_id = s.thread_id AND n.own_stack AND s.own_stack
    AND n.number > s.number) AS later FROM streams AS s JOIN blocks AS b USING (stream_id)
    WHERE s.stream_id = :stream_id AND b.kind = 1 ORDER BY b.first_event DESC, b.block_id DESC LIMIT 1)
WHERE quarantined IS NULL

-- name: stream_list
-- row: stream_id, number, calls count, first_enter_ns optional, last_leave_ns optional, max_depth, ended
SELECT stream_id, number, calls, first_enter_ns, last_leave_ns, max_depth, ended
FROM streams
WHERE session_id = :session_id
ORDER BY number

-- name: stream_highest
-- row: stream_id
SELECT coalesce(max(stream_id), 0)
FROM streams

-- name: block_before
-- row: first_event, event_count, block_id, is_sound
SELECT first_event, event_count, block_id, quarantined IS NULL
FROM blocks
WHERE stream_id = :stream_id
AND kind = :kind
AND first_event < :end_event
AND event_count > 0
ORDER BY first_event DESC, event_count DESC
LIMIT 1

-- name: block_find
-- row: block_id
SELECT block_id
FROM blocks
WHERE stream_id = :stream_id
AND kind = :kind
AND first_event = :first_event
AND event_count = :event_count

-- name: block_stack
-- row: storage, data blob
SELECT storage, data
FROM blocks
WHERE stream_id = :stream_id
AND kind = 2
AND first_event = :first_event
AND quarantined IS NULL

-- name: block_add
-- bind: max_duration_ticks count, lost_calls count, lost_events count, functions blob
-- bind: late_first_call optional, late_last_call optional, late optional_blob, data blob
INSERT INTO blocks (stream_id, kind, first_event, event_count, first_call, call_count, first_ticks,
    last_ticks, open_depth, max_depth, max_duration_ticks, lost_calls, lost_events, functions,
    late_first_call, late_last_call, late, data)
VALUES (:stream_id, :kind, :first_event, :event_count, :first_call, :call_count, :first_ticks, :last_ticks,
    :open_depth, :max_depth, :max_duration_ticks, :lost_calls, :lost_events, :functions, :late_first_call,
    :late_last_call, :late, :data)

-- name: outline_put
-- bind: floor_ticks count, calls blob
INSERT OR REPLACE INTO block_outlines (block_id, stream_id, floor_ticks, calls)
VALUES (:block_id, :stream_id, :floor_ticks, :calls)

-- name: block_keep_aside
-- bind: sender_uuid blob, reason text, data blob
INSERT INTO quarantined_blocks (session_id, stream, first_event, event_count, sender_uuid, reason,
    arrived_realtime_ns, data)
SELECT :session_id, :stream, :first_event, :event_count, iif(length(:sender_uuid) = 16, :sender_uuid, NULL),
    :reason, :arrived_realtime_ns, :data
WHERE (SELECT count(*) FROM quarantined_blocks) < 256
AND (SELECT count(*) FROM quarantined_blocks WHERE session_id = :session_id) < 16
AND (SELECT coalesce(sum(length(data)), 0) FROM quarantined_blocks) < 67108864

-- name: block_is_aside
-- bind: data blob
-- row: is_aside
SELECT 1
FROM quarantined_blocks
WHERE session_id = :session_id
AND stream = :stream
AND first_event = :first_event
AND event_count = :event_count
AND data = :data

-- name: open_call_add
-- bind: call_index count
INSERT OR REPLACE INTO open_calls (stream_id, call_index, function_id, depth, start_ns, flags)
VALUES (:stream_id, :call_index, :function_id, :depth, :start_ns, :flags)
