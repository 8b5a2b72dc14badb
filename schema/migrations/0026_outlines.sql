-- Sojourn store, version 26: what blocks tell of their calls.

CREATE TABLE block_outlines ( -- the longest calls of blocks with many
    block_id INTEGER PRIMARY KEY REFERENCES blocks ON DELETE CASCADE,
    stream_id INTEGER NOT NULL,
    floor_ticks INTEGER NOT NULL, -- calls that were entered and ended in the block and took longer are all in `calls`
    calls BLOB NOT NULL           -- those, and the ones that were open at its end: block_outline.h
) STRICT;
