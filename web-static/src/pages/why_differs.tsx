// Compares a slow call with a typical call: what their threads did, what they called, and their
// values.
import { useSql } from "../answers";
import { duration } from "../format";
import { Panel, RowTable } from "../widgets/panel";
import { Problem, Time } from "../widgets/small";

// Splits the time of a call by what its thread did. The scheduler's counters come in steps, which
// are longer than most calls. A step counts in proportion to its overlap with the call, so the
// result is an estimate. CPU time that was measured for the call itself is exact.
const STATES_SQL = `WITH asked AS (
    SELECT c.session_id, c.stream_id, c.start_ns, c.end_ns, c.duration_ns, c.self_ns, c.cpu_ns, t.number AS thread_number
    FROM calls c LEFT JOIN threads t USING (thread_id) WHERE c.call_id = :call),
steps AS (
    SELECT x.cpu_ns, x.ready_ns, x.waiting_ns, x.to_ns - x.from_ns AS step_ns,
           min(x.to_ns, a.end_ns) - max(x.from_ns, a.start_ns) AS shared_ns
    FROM asked a JOIN thread_times x ON x.session_id = a.session_id AND x.thread_number = a.thread_number
    WHERE x.from_ns < a.end_ns AND x.to_ns > a.start_ns),
recorder AS (
    SELECT sum(min(g.end_ns, a.end_ns) - max(g.start_ns, a.start_ns)) AS ns
    FROM asked a JOIN gaps g ON g.session_id = a.session_id AND g.reason = 'waited'
      AND (g.thread_number = a.thread_number OR g.stream_id = a.stream_id)
    WHERE g.start_ns < a.end_ns AND g.end_ns > a.start_ns)
SELECT coalesce(a.cpu_ns, (SELECT CAST(sum(1.0 * cpu_ns * shared_ns / step_ns) AS INTEGER) FROM steps)) AS cpu_ns,
       a.cpu_ns IS NULL AS is_cpu_estimate,
       (SELECT CAST(sum(1.0 * ready_ns * shared_ns / step_ns) AS INTEGER) FROM steps) AS ready_ns,
       (SELECT CAST(max(0, sum(1.0 * waiting_ns * shared_ns / step_ns) - coalesce((SELECT ns FROM recorder), 0)) AS INTEGER)
        FROM steps) AS blocked_ns,
       coalesce((SELECT ns FROM recorder), 0) AS recorder_ns, a.duration_ns - a.self_ns AS below_ns, a.self_ns,
       a.duration_ns
FROM asked a`;

const VALUES_SQL = `SELECT a.position, a.value AS this, b.value AS typical
FROM arguments a JOIN arguments b ON b.session_id = a.session_id AND b.position = a.position AND b.kind = a.kind AND b.rule = a.rule
WHERE a.session_id = :session AND a.call_id = :call AND b.call_id = :typical AND a.value IS NOT b.value
GROUP BY a.position ORDER BY a.position = 0, a.position`;

interface States {
    cpu_ns: number | null;
    is_cpu_estimate: number;
    ready_ns: number | null; // NULL if the recording has no steps of the thread for this time
    blocked_ns: number | null;
    recorder_ns: number;
    below_ns: number | null;
    self_ns: number | null;
    duration_ns: number | null;
}

interface Value {
    position: number;
    this: string | number | null;
    typical: string | number | null;
}

interface Part {
    name: string;
    slow: number | null;
    typical: number | null;
    isEstimate: boolean;
    ofThread: boolean; // true for a state of the thread
    most: number | null; // the most that the typical call can have spent on it
}

function partsOf(slow: States, typical: States): Part[] {
    const part = (name: string, column: keyof States, isEstimate: boolean, ofThread: boolean): Part => ({
        name, slow: slow[column], typical: typical[column], isEstimate, ofThread, most: typical.duration_ns,
    });
    return [
        part("CPU", "cpu_ns", Boolean(slow.is_cpu_estimate || typical.is_cpu_estimate), true),
        part("Ready, but not running", "ready_ns", true, true),
        part("Blocked", "blocked_ns", true, true),
        part("Waiting for the recorder", "recorder_ns", false, true),
        part("Calls below it", "below_ns", false, false),
        part("Itself", "self_ns", false, false),
    ];
}

// Returns the difference, or NULL if it is unknown. If the typical call's state is unknown, returns
// a lower bound: that call spent at most its own duration in that state.
function differenceOf({ slow, typical, ofThread, most }: Part): number | null {
    if (slow === null || typical !== null) {
        return slow === null ? null : slow - typical!;
    }
    return ofThread && most !== null && slow > most ? slow - most : null;
}

function signed(ns: number, isEstimate: boolean): string {
    return `${isEstimate ? "~" : ""}${ns > 0 ? "+" : ns < 0 ? "−" : ""}${duration(Math.abs(ns))}`;
}

function MostOfIt({ parts }: { parts: readonly Part[] }) {
    const known = parts.filter((part) => part.ofThread && differenceOf(part) !== null);
    const most = known.reduce<Part | null>((a, b) => (a && differenceOf(a)! >= differenceOf(b)! ? a : b), null);
    const ns = most && differenceOf(most)!;
    return most && ns && ns > 0 ? (
        <p>
            The state of its thread that differs most: <strong>{most.name}</strong>, {signed(ns, most.isEstimate)}.
        </p>
    ) : null;
}

export function Differences({ session, call, typical }: { session: string; call: string; typical: string }) {
    const slow = useSql<States>(STATES_SQL, { call });
    const other = useSql<States>(STATES_SQL, { call: typical });
    const given = useSql<Value>(VALUES_SQL, { session, call, typical });
    const problem = slow.problem || other.problem || given.problem;
    if (problem) {
        return <Problem message={problem} />;
    }
    if (!slow.rows[0] || !other.rows[0]) {
        return <p class="empty">Loading…</p>;
    }
    const parts = partsOf(slow.rows[0], other.rows[0]);
    return (
        <Panel title="What differs" sql={STATES_SQL} values={{ call }}>
            <MostOfIt parts={parts} />
            <RowTable<Part>
                label="Time of both calls, by what it was spent on"
                rows={parts}
                columns={[
                    { title: "Spent on", cell: (row) => row.name },
                    { title: "This", number: true, cell: (row) => <Time ns={row.slow} isEstimate={row.isEstimate} /> },
                    { title: "Typical", number: true, cell: (row) => <Time ns={row.typical} isEstimate={row.isEstimate} /> },
                    {
                        title: "Difference",
                        number: true,
                        cell: (row) => {
                            const ns = differenceOf(row);
                            return ns === null ? "–" : <strong>{signed(ns, row.isEstimate)}</strong>;
                        },
                    },
                ]}
            />
            {given.rows.length > 0 ? (
                <RowTable<Value>
                    label="Values that differ"
                    rows={given.rows}
                    columns={[
                        { title: "Value", cell: (row) => (row.position === 0 ? "Result" : `Argument ${row.position}`) },
                        { title: "This", mono: true, cell: (row) => (row.this === null ? "–" : String(row.this)) },
                        { title: "Typical", mono: true, cell: (row) => (row.typical === null ? "–" : String(row.typical)) },
                    ]}
                />
            ) : null}
        </Panel>
    );
}
