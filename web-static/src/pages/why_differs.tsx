// Compares a slow call with a typical call: what their threads did, what they called, and their
// values.
import { useQuestion } from "../answers";
import type { RowOf } from "../api";
import { duration } from "../format";
import { Panel, RowTable } from "../widgets/panel";
import { Problem, Time } from "../widgets/small";

type States = RowOf<"web.thread_states">;

type Value = RowOf<"web.values_that_differ">;

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
    const slow = useQuestion("web.thread_states", { call });
    const other = useQuestion("web.thread_states", { call: typical });
    const given = useQuestion("web.values_that_differ", { session, call, typical });
    const problem = slow.problem || other.problem || given.problem;
    if (problem) {
        return <Problem message={problem} />;
    }
    if (!slow.rows[0] || !other.rows[0]) {
        return <p class="empty">Loading…</p>;
    }
    const parts = partsOf(slow.rows[0], other.rows[0]);
    return (
        <Panel title="What differs" question="web.thread_states" values={{ call }}>
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
