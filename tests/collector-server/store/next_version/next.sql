-- A migration that tests make up. It changes the newest schema in the ways that a later version may:
-- it adds a column, fills it from rows that are there, and adds a table, an index and a view.

-- The location of the device.
ALTER TABLE devices ADD COLUMN room TEXT NOT NULL DEFAULT '';
UPDATE devices SET room = 'room of ' || name;

-- The locations of devices.
CREATE TABLE rooms (
    -- The key.
    room_id INTEGER PRIMARY KEY,
    -- The name.
    name TEXT NOT NULL
) STRICT;
INSERT INTO rooms (name) SELECT DISTINCT room FROM devices;
CREATE INDEX rooms_by_name ON rooms (name);

CREATE VIEW room_names AS SELECT name FROM rooms;
