-- One time line for many devices: how far their clocks are from the lab's, and how sure that is.

CREATE TABLE device_clocks (
    device_id INTEGER NOT NULL REFERENCES devices,
    boot_id TEXT NOT NULL,
    boottime_ns INTEGER NOT NULL,        -- of the device, when it held
    offset_ns INTEGER NOT NULL,          -- lab's real time = device's boot time + offset
    uncertainty_ns INTEGER NOT NULL,     -- at most so far off
    PRIMARY KEY (device_id, boot_id, boottime_ns)
) STRICT, WITHOUT ROWID;

-- Where sessions lie on the lab's clock. A pair ties the session's ticks to the device's boot time,
-- a device clock that to the lab's. Clocks of devices drift by 50 ppm at most, which counts.
CREATE VIEW session_lab_times AS
WITH first_pairs AS (
    SELECT s.session_id, s.device_id, p.boot_id, p.boottime_ns + CAST((s.started_ticks - p.ticks)
               * (CAST(s.tick_ns_numerator AS REAL) / s.tick_ns_denominator) AS INTEGER)
               AS boottime_ns, p.uncertainty_ns
    FROM sessions AS s JOIN clock_pairs AS p ON p.session_id = s.session_id
        AND p.ticks = (SELECT min(ticks) FROM clock_pairs WHERE session_id = s.session_id)
), ranked AS (
    SELECT f.session_id, f.boottime_ns + c.offset_ns AS started_lab_ns,
           f.uncertainty_ns + c.uncertainty_ns + abs(f.boottime_ns - c.boottime_ns) / 20000
               AS uncertainty_ns,
           row_number() OVER (PARTITION BY f.session_id ORDER BY
               c.uncertainty_ns + abs(f.boottime_ns - c.boottime_ns) / 20000) AS place
    FROM first_pairs AS f JOIN device_clocks AS c
        ON c.device_id = f.device_id AND c.boot_id = f.boot_id
)
SELECT r.session_id, r.started_lab_ns, r.uncertainty_ns,
       r.started_lab_ns - s.started_realtime_ns AS clock_error_ns
FROM ranked AS r JOIN sessions AS s ON s.session_id = r.session_id WHERE r.place = 1;
