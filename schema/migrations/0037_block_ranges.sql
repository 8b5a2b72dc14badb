-- Sojourn store, version 37: an index alone knows which blocks can answer.

-- Covers what a walk asks of a block before it reads it: a page of ranges instead of a page a block.
DROP INDEX blocks_by_call;
CREATE INDEX blocks_by_call ON blocks (stream_id, kind, first_call, call_count, first_ticks,
    last_ticks, max_duration_ticks, max_depth, lost_calls, quarantined);
