// The statements of a session's overview, for all calls or for a selection.
import { selfEstimateSql, selfUntimedSql, untimedSql } from "../estimates";
import { isPart, isPicked, matches, pickedSql, type Selection } from "../selection";

export function hotSql(chosen: Selection): string {
    if (!isPart(chosen)) {
        return `SELECT f.function_id, f.name, s.self_ns, s.total_ns, s.calls,
       CAST(s.self_ns AS REAL) / sum(s.self_ns) OVER () AS share, ${selfEstimateSql("s.function_id")}
FROM function_stats s JOIN functions f USING (function_id)
WHERE s.session_id = :session AND s.calls > 0 AND ${matches(chosen, "f.name")} ORDER BY s.self_ns DESC LIMIT 10`;
    }
    return `${pickedSql(chosen)}
SELECT f.function_id, f.name, sum(a.self_ns) AS self_ns, sum(a.total_ns) AS total_ns, sum(a.calls) AS calls,
       CAST(sum(a.self_ns) AS REAL) / sum(sum(a.self_ns)) OVER () AS share, ${selfEstimateSql("a.function_id")}
FROM picked p JOIN call_aggregate(:session, p.from_ns, p.to_ns, p.stream_id) a JOIN functions f USING (function_id)
WHERE ${matches(chosen, "f.name")} GROUP BY a.function_id ORDER BY 3 DESC LIMIT 10`;
}

// The ten single calls with the most self time, of at least SLOW_LEAST_NS. The tenth of the stored
// slow calls gives a lower bound, so that the query skips blocks that cannot contain a slower call.
// If the calls are not stored here (copies from a cluster), the result is the stored slow calls.
const SLOW_LEAST_NS = 1000;

export function slowSql(chosen: Selection): string {
    const given = `(SELECT group_concat(value, ', ') FROM (SELECT value FROM arguments a
                 WHERE a.call_id = c.call_id AND a.position > 0 ORDER BY a.position))`;
    const part = isPart(chosen)
        ? "picked p CROSS JOIN calls c ON c.stream_id = p.stream_id AND c.start_ns >= p.from_ns AND c.start_ns < p.to_ns"
        : "calls c";
    return `${pickedSql(chosen)},
stored AS MATERIALIZED (SELECT s.call_id, s.function_id, x.thread_id, s.start_ns, s.duration_ns, s.self_ns,
        iif(s.ending = 2, 'open', '') AS ending, s.flags
    FROM slow_calls s JOIN functions f USING (function_id) LEFT JOIN streams x ON x.stream_id = s.call_id >> 38
    WHERE s.session_id = :session AND ${matches(chosen, "f.name")} AND ${isPicked(chosen, "s.call_id >> 38", "s.start_ns")}
    ORDER BY s.self_ns DESC LIMIT 10),
least AS (SELECT max(${SLOW_LEAST_NS}, coalesce((SELECT self_ns FROM stored ORDER BY self_ns DESC LIMIT 1 OFFSET 9), 0)) AS ns),
found AS MATERIALIZED (SELECT c.call_id, c.function_id, c.thread_id, c.start_ns, c.duration_ns, c.self_ns, c.ending, c.flags
    FROM ${part} CROSS JOIN functions f ON f.function_id = c.function_id
    WHERE c.session_id = :session AND c.duration_ns >= (SELECT ns FROM least) AND c.self_ns >= (SELECT ns FROM least)
      AND ${matches(chosen, "f.name")} ORDER BY c.self_ns DESC LIMIT 10)
SELECT c.call_id, c.function_id, f.name, t.name AS thread, c.start_ns, c.duration_ns, c.self_ns, c.ending,
       c.flags, ${selfUntimedSql("c.flags", "c.function_id")}, ${given} AS given
FROM (SELECT * FROM found UNION ALL SELECT * FROM stored
      WHERE NOT EXISTS (SELECT 1 FROM found) AND self_ns >= (SELECT ns FROM least)) c
JOIN functions f ON f.function_id = c.function_id LEFT JOIN threads t ON t.thread_id = c.thread_id
ORDER BY c.self_ns DESC LIMIT 10`;
}

// Returns a condition: true if the time `at` lies in the selected time and mark.
function isThen(chosen: Selection, at: string): string {
    return chosen.area || chosen.mark
        ? `EXISTS (SELECT 1 FROM picked WHERE ${at} >= from_ns AND ${at} < to_ns)`
        : "1";
}

export const CALLERS_SQL = `SELECT f.name, a.duration_ns, a.start_ns, a.call_id, ${untimedSql("a.flags")} FROM ancestors(:call) a
LEFT JOIN functions f USING (function_id)`;

export function openSql(chosen: Selection): string {
    return `${pickedSql(chosen)}
SELECT t.name AS thread, t.tid, o.depth, f.name, o.start_ns FROM open_calls o
JOIN streams s USING (stream_id) LEFT JOIN threads t USING (thread_id)
LEFT JOIN functions f USING (function_id)
WHERE s.session_id = :session AND ${matches(chosen, "f.name")} AND ${isPicked(chosen, "o.stream_id", "o.start_ns")}
ORDER BY t.is_main DESC, o.stream_id, o.depth DESC`;
}

// The last 100 calls of each stream. Call ids also count lost calls, so the call counts of the
// blocks tell where the last 100 stored calls begin.
export function lastSql(chosen: Selection): string {
    return `${pickedSql(chosen)},
counted AS (
    SELECT s.stream_id, s.thread_id, b.first_call,
           sum(b.call_count) OVER (PARTITION BY b.stream_id ORDER BY b.first_call DESC) - b.call_count AS later_calls
    FROM streams s JOIN blocks b USING (stream_id)
    WHERE s.session_id = :session AND b.kind = 1 AND b.quarantined IS NULL),
begins AS (
    SELECT stream_id, thread_id, (stream_id << 38) + min(first_call) AS call_id
    FROM counted WHERE later_calls < 100 GROUP BY stream_id),
numbered AS (
    SELECT b.thread_id, b.stream_id, c.call_id, c.depth, c.function_id, c.start_ns, c.duration_ns, c.ending, c.flags,
           row_number() OVER (PARTITION BY c.stream_id ORDER BY c.call_id DESC) AS nth
    FROM begins b CROSS JOIN calls c ON c.stream_id = b.stream_id AND c.call_id >= b.call_id)
SELECT t.name AS thread, n.call_id, n.depth, f.name, n.start_ns, n.duration_ns, n.ending, ${untimedSql("n.flags")}
FROM numbered n LEFT JOIN threads t USING (thread_id) LEFT JOIN functions f USING (function_id)
WHERE n.nth <= 100 AND ${matches(chosen, "f.name")} AND ${isPicked(chosen, "n.stream_id", "n.start_ns")}
ORDER BY n.start_ns DESC LIMIT 3000`;
}

export function threadsSql(chosen: Selection): string {
    return `${pickedSql(chosen)}
SELECT t.number, t.name, t.tid, t.is_main, sum(s.calls) AS calls,
       max(s.last_leave_ns) - min(s.first_enter_ns) AS run_ns, max(s.max_depth) AS deepest,
       t.dropped_calls, t.waited_ns, w.cpu_ns, w.ready_ns, w.waiting_ns
FROM threads t LEFT JOIN streams s USING (thread_id)
LEFT JOIN (SELECT thread_number, sum(cpu_ns) AS cpu_ns, sum(ready_ns) AS ready_ns, sum(waiting_ns) AS waiting_ns
           FROM thread_times WHERE session_id = :session GROUP BY thread_number) w ON w.thread_number = t.number
WHERE t.session_id = :session
  AND ${chosen.threads.length > 0 ? "t.thread_id IN (SELECT thread_id FROM picked)" : "1"}
GROUP BY t.thread_id ORDER BY t.is_main DESC, calls DESC LIMIT 100`;
}

export function unhookedSql(chosen: Selection): string {
    return `SELECT reason, count(*) AS functions, sum(size_bytes) AS bytes, min(name) AS example
FROM unhooked_functions WHERE session_id = :session AND ${matches(chosen, "name")} GROUP BY reason ORDER BY functions DESC`;
}

export function marksSql(chosen: Selection): string {
    return `${pickedSql(chosen)}
SELECT b.name, b.at_ns, b.source, (SELECT min(e.at_ns) FROM marks e
       WHERE e.session_id = b.session_id AND e.name = b.name AND e.is_end = 1 AND e.at_ns >= b.at_ns) AS end_ns
FROM marks b WHERE b.session_id = :session AND b.is_end = 0 AND ${isThen(chosen, "b.at_ns")} ORDER BY b.at_ns LIMIT 200`;
}

export function decisionsSql(chosen: Selection): string {
    return `${pickedSql(chosen)}
SELECT d.at_ns, d.what, f.name, d.reason, d.total_calls, d.overhead_ppm, d.budget_ppm
FROM decisions d LEFT JOIN functions f USING (function_id)
WHERE d.session_id = :session AND ${isThen(chosen, "d.at_ns")} ORDER BY d.number LIMIT 200`;
}

export function triggersSql(chosen: Selection): string {
    return `${pickedSql(chosen)}
SELECT t.at_ns, t.event, t.subject, t.value, t.actions, t.suppressed,
       (SELECT s.session_id FROM sessions s WHERE s.uuid = t.child_session_uuid) AS dump
FROM triggers t WHERE t.session_id = :session AND ${isThen(chosen, "t.at_ns")} ORDER BY t.number LIMIT 200`;
}

export const NOTES_SQL = `SELECT note, author, start_ns, end_ns,
       strftime('%Y-%m-%d %H:%M UTC', created_realtime_ns / 1000000000, 'unixepoch') AS written
FROM annotations WHERE session_id = :session ORDER BY annotation_id DESC LIMIT 200`;

export function filteredSql(chosen: Selection): string {
    return `SELECT f.name, c.reason, c.calls, c.total_ns FROM filtered_calls c LEFT JOIN functions f USING (function_id)
WHERE c.session_id = :session AND ${matches(chosen, "f.name")} ORDER BY c.calls DESC LIMIT 50`;
}

export function zombiesSql(chosen: Selection): string {
    const isThere = chosen.threads.length > 0
        ? `EXISTS (SELECT 1 FROM picked p JOIN threads t USING (thread_id)
       WHERE t.tid = r.tid AND r.at_ns >= p.from_ns AND r.at_ns < p.to_ns)`
        : isThen(chosen, "r.at_ns"); // a report may be of a thread without recorded calls
    return `${pickedSql(chosen)}
SELECT z.zombie_id, z.kind, z.used_in, z.freed_in, z.allocated_in, count(*) AS reports
FROM zombie_reports r JOIN zombies z USING (zombie_id) WHERE r.session_id = :session AND ${isThere}
GROUP BY z.zombie_id ORDER BY reports DESC`;
}
