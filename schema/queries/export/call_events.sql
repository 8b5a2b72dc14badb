-- Parts of the statement of export/call_events.c, for call_part.

-- name: call_events_columns
f.name, c.start_ns, c.end_ns, coalesce(p.pid, ?1), {track_number}, c.function_id, c.call_id, c.flags,
    c.ending, c.stream_id, c.depth, c.tail_caller_id, s.own_stack,
    iif(s.own_stack, t.name, t.name || ', stack ' || s.number), p.executable

-- name: call_events_joins
LEFT JOIN functions AS f ON f.function_id = c.function_id
LEFT JOIN streams AS s ON s.stream_id = c.stream_id
LEFT JOIN threads AS t ON t.thread_id = c.thread_id
LEFT JOIN processes AS p ON p.session_id = t.session_id AND p.number = t.process_number
