-- Sojourn store, version 17: late exits are read from an index of their own, without the blocks.

-- Covers what a reader asks of a list of late exits: 16 KiB pages of lists instead of a page a block.
CREATE INDEX blocks_late ON blocks (stream_id, kind, first_call, first_event, late_first_call,
    late_last_call, max_duration_ticks, first_ticks, late) WHERE kind = 1 AND late IS NOT NULL;
