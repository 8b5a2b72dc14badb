// One call: its times, thread and values, its callers and its callees.
import { Fragment } from "preact";
import { useSql } from "../answers";
import { anyUntimedSql, isUntimed, selfUntimedSql, untimedSql } from "../estimates";
import { bytes, count, duration } from "../format";
import { SqlPanel } from "../widgets/panel";
import { addressOf } from "../selection";
import { Problem, Time } from "../widgets/small";

const CALL_SQL = `SELECT c.*, ${selfUntimedSql("c.flags", "c.function_id", "c.session_id")}, k.allocated_bytes, f.name, m.path AS module, t.name AS thread
FROM calls c LEFT JOIN call_costs k ON k.session_id = c.session_id AND k.call_id = c.call_id LEFT JOIN functions f USING (function_id) LEFT JOIN modules m USING (module_id)
LEFT JOIN threads t ON t.thread_id = c.thread_id WHERE c.call_id = :call`;

const CALLERS_SQL = `SELECT a.call_id, a.function_id, f.name, a.start_ns, a.duration_ns, a.self_ns,
       ${untimedSql("a.flags")}, ${selfUntimedSql("a.flags", "a.function_id", "a.session_id")}
FROM ancestors(:call) a LEFT JOIN functions f USING (function_id)`;

const CALLEES_SQL = `SELECT d.function_id, f.name, count(*) AS calls, sum(d.duration_ns) AS total_ns,
       max(d.duration_ns) AS longest_ns, ${anyUntimedSql("d.flags")}
FROM calls d LEFT JOIN functions f USING (function_id) WHERE d.parent_id = :call
GROUP BY d.function_id ORDER BY total_ns DESC LIMIT 20`;

export const VALUES_SQL = `SELECT a.position, max(t.name) AS name, a.kind, max(t.type) AS type, a.value, a.note, a.rule
FROM arguments a LEFT JOIN value_types t
  ON t.session_id = :session AND t.function_id = :function AND t.position = a.position
WHERE a.session_id = :session AND a.call_id = :call
GROUP BY a.position, a.kind, a.rule ORDER BY a.position = 0, a.position, a.kind = 'errno', a.rule`;

interface Call {
    call_id: number | string;
    function_id: number;
    name: string;
    module: string;
    thread: string | null;
    depth: number;
    start_ns: number;
    end_ns: number | null;
    duration_ns: number | null;
    self_ns: number | null;
    cpu_ns: number | null;
    cpu_self_ns: number | null;
    ending: string;
    flags: number;
    is_self_estimate: number;
    [measured: string]: unknown; // other counted costs of the call
}

interface Caller {
    call_id: number | string;
    name: string;
    start_ns: number;
    duration_ns: number | null;
    self_ns: number | null;
    is_estimate: number;
    is_self_estimate: number;
}

interface Callee {
    name: string;
    calls: number;
    total_ns: number | null;
    longest_ns: number | null;
    is_estimate: number;
}

export interface Value {
    position: number;
    name: string | null; // from debug data or from a rule's signature
    kind: string;
    type: string | null;
    value: unknown;
    note: string | null;
    rule: string;
}

const doubts: readonly (readonly [number, string])[] = [
    [1, "it was open when recording began, which counts as its start"],
    [2, "calls were lost while it ran"],
    [4, "calls were lost before it, so its caller is uncertain"],
    [8, "its thread waited for the recorder while it ran"],
];

function doubtsOf(flags: number): string[] {
    return doubts.filter(([bit]) => (flags & bit) !== 0).map(([, text]) => text);
}

// Returns the memory counters that were recorded for the call, each with its column name.
function memoryOf(call: Call): [string, number][] {
    return Object.entries(call).filter(
        (entry): entry is [string, number] =>
            (entry[0].endsWith("_bytes") || entry[0] === "allocations" || entry[0] === "frees") &&
            typeof entry[1] === "number",
    );
}

function titleOf(column: string): string {
    const words = column.replace(/_bytes$/, "").replaceAll("_", " ");
    return words[0]!.toUpperCase() + words.slice(1);
}

// Names the value: "result", "errno" or "thrown", else the parameter's name or its position.
export function valueName(value: { position: number; name: string | null; kind: string }): string {
    if (value.position === 0) {
        return value.kind === "errno" || value.kind === "thrown" ? value.kind : "result";
    }
    return value.name || `argument ${value.position}`;
}

// Returns the address of the timeline around a call, with the call selected.
export function callAddress(session: string, call: Pick<Caller, "call_id" | "start_ns" | "duration_ns">): string {
    const length = Math.max(1000, call.duration_ns ?? 1e6);
    const from = Math.max(0, Math.floor(call.start_ns - length * 0.2));
    const to = Math.ceil(call.start_ns + length * 1.2);
    return addressOf(session, { view: "timeline", from, to, call: call.call_id });
}

export function CallDetails({ session, call }: { session: string; call: string }) {
    const values = { call };
    const about = useSql<Call>(CALL_SQL, values);
    const callers = useSql<Caller>(CALLERS_SQL, values);
    const known = about.rows[0];
    const isSettled = known !== undefined && String(known.call_id) === call;
    const callees = useSql<Callee>(isSettled ? CALLEES_SQL : "", values);
    const ofCall = { session, function: String(known?.function_id ?? 0), call };
    const given = useSql<Value>(isSettled ? VALUES_SQL : "", ofCall);
    if (about.problem) {
        return <Problem message={about.problem} />;
    }
    if (!known) {
        return <p class="dim">{about.value ? `There is no call ${call}.` : "Loading…"}</p>;
    }
    const doubt = doubtsOf(known.flags);
    const time = (ns: number | null) => <Time ns={ns} isEstimate={isUntimed(known.flags)} />;
    return (
        <section class="card panel call-details" aria-label="Selected call">
            <div class="title-line">
                <h2 class="mono">{known.name ?? `function ${known.function_id}`}</h2>
                <span>
                    <a href={addressOf(session, { view: "why", call })}>Why slow?</a>{" "}
                    <a href={addressOf(session, { view: "tree", function: known.function_id })}>Call tree</a>
                </span>
            </div>
            <dl class="facts">
                <dt>Took</dt>
                <dd>
                    {known.duration_ns === null ? "not ended" : time(known.duration_ns)}
                    {known.self_ns === null ? null : <>, <Time ns={known.self_ns} isEstimate={known.is_self_estimate} /> of it itself</>}
                </dd>
                {known.cpu_ns === null ? null : (
                    <>
                        <dt>CPU time</dt>
                        <dd>
                            {duration(known.cpu_ns)}, {duration(known.cpu_self_ns)} of it itself
                            {known.duration_ns === null
                                ? ""
                                : `; it waited ${duration(Math.max(0, known.duration_ns - known.cpu_ns))}`}
                        </dd>
                    </>
                )}
                {memoryOf(known).map(([column, value]) => (
                    <Fragment key={column}>
                        <dt>{titleOf(column)}</dt>
                        <dd>{column.endsWith("_bytes") ? bytes(value) : count(value)}</dd>
                    </Fragment>
                ))}
                <dt>Began</dt>
                <dd title={`${count(known.start_ns)} ns`}>{time(known.start_ns)}</dd>
                <dt>Thread</dt>
                <dd>{known.thread ?? "–"}</dd>
                <dt>Depth</dt>
                <dd>{known.depth}</dd>
                <dt>Ending</dt>
                <dd>{known.ending}</dd>
                <dt>Call</dt>
                <dd class="mono">{String(known.call_id)}</dd>
            </dl>
            {doubt.length > 0 ? <p class="warn-text">▲ Not exact: {doubt.join("; ")}.</p> : null}
            <div class="columns">
                <SqlPanel
                    title="Values"
                    sql={VALUES_SQL}
                    values={ofCall}
                    answer={given}
                    columns={[
                        { title: "Name", cell: valueName },
                        { title: "Type", cell: (row) => row.type || row.kind },
                        { title: "Value", mono: true, cell: (row) => (row.value === null ? "–" : String(row.value)) },
                        { title: "Note", cell: (row) => row.note ?? "" },
                        { title: "Rule", cell: (row) => row.rule },
                    ]}
                />
                <SqlPanel
                    title="Callers, innermost first"
                    sql={CALLERS_SQL}
                    values={values}
                    answer={callers}
                    none="No recorded callers."
                    columns={[
                        {
                            title: "Function",
                            mono: true,
                            cell: (row) => <a href={callAddress(session, row)}>{row.name}</a>,
                        },
                        { title: "Took", number: true, cell: (row) => <Time ns={row.duration_ns} isEstimate={row.is_estimate} /> },
                        { title: "Self", number: true, cell: (row) => <Time ns={row.self_ns} isEstimate={row.is_self_estimate} /> },
                    ]}
                />
                <SqlPanel
                    title="Callees"
                    sql={CALLEES_SQL}
                    values={values}
                    answer={callees}
                    none="No recorded callees."
                    columns={[
                        { title: "Function", mono: true, cell: (row) => row.name },
                        { title: "Calls", number: true, cell: (row) => count(row.calls) },
                        { title: "Total", number: true, cell: (row) => <Time ns={row.total_ns} isEstimate={row.is_estimate} /> },
                        { title: "Longest", number: true, cell: (row) => <Time ns={row.longest_ns} isEstimate={row.is_estimate} /> },
                    ]}
                />
            </div>
        </section>
    );
}
