-- Sojourn store, version 14: names that say what holds, in the words of the field.

DROP INDEX sessions_unsummed;
-- First block that the aggregates do not count yet; NULL: they count every block.
ALTER TABLE sessions RENAME COLUMN unsummed_from_block TO aggregates_valid_before_block;
CREATE INDEX sessions_stale_aggregates ON sessions (session_id)
WHERE aggregates_valid_before_block IS NOT NULL;
-- Quarantined session: why the aggregates cannot be computed; NULL: they can.
ALTER TABLE sessions RENAME COLUMN unsummed_because TO quarantine_reason;

ALTER TABLE devices RENAME COLUMN lab_tags TO collector_tags;

DROP VIEW session_lab_times;
-- Where sessions lie on the collector's clock. A pair ties the session's ticks to the device's boot
-- time, a device clock that to the collector's. Clocks of devices drift by 50 ppm at most, which
-- counts.
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
