-- Control from the lab: what a device is and belongs to, policies, files that commands carry, and
-- who was let in.

ALTER TABLE devices ADD COLUMN build TEXT NOT NULL DEFAULT '';      -- of its system software
ALTER TABLE devices ADD COLUMN own_tags TEXT NOT NULL DEFAULT '{}'; -- JSON: as the device says
-- JSON: set in the lab; they win, and null hides one. `tags` is both together.
ALTER TABLE devices ADD COLUMN lab_tags TEXT NOT NULL DEFAULT '{}';
UPDATE devices SET own_tags = tags;

-- Bytes that a command has made, in <database>.files/<command_id>; NULL: none.
ALTER TABLE commands ADD COLUMN file_bytes INTEGER;
CREATE INDEX commands_preparing ON commands (command_id) WHERE state = 'preparing';

CREATE TABLE token_events ( -- who was let in and who was thrown out: the audit
    event_id INTEGER PRIMARY KEY AUTOINCREMENT,
    device_id INTEGER NOT NULL REFERENCES devices,
    what TEXT NOT NULL,                  -- enrolled revoked
    done_by TEXT NOT NULL DEFAULT '',
    realtime_ns INTEGER NOT NULL
) STRICT;
CREATE INDEX token_events_by_device ON token_events (device_id);
INSERT INTO token_events (device_id, what, realtime_ns)
SELECT device_id, 'enrolled', enrolled_realtime_ns FROM device_tokens;
INSERT INTO token_events (device_id, what, realtime_ns)
SELECT device_id, 'revoked', revoked_realtime_ns FROM device_tokens
WHERE revoked_realtime_ns IS NOT NULL;

CREATE TABLE policy_rules ( -- which policy holds where; those that ended are the audit
    rule_id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL,                 -- all tag device
    subject TEXT NOT NULL DEFAULT '',    -- KEY or KEY=VALUE; device_id
    app TEXT NOT NULL DEFAULT '',        -- of the device's catalogue; '': everything
    document TEXT NOT NULL,              -- JSON, as `sojourn policy show` prints it
    set_by TEXT NOT NULL DEFAULT '',
    set_realtime_ns INTEGER NOT NULL,
    ended_realtime_ns INTEGER            -- replaced or removed; NULL: it holds
) STRICT;
CREATE UNIQUE INDEX policy_rules_in_force ON policy_rules (scope, subject, app)
WHERE ended_realtime_ns IS NULL;
