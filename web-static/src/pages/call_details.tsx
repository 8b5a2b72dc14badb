// One call: its times, thread and values, its callers and its callees.
import { Fragment } from "preact";
import { useQuestion } from "../answers";
import type { RowOf } from "../api";
import { isUntimed } from "../estimates";
import { bytes, count, duration } from "../format";
import { SqlPanel } from "../widgets/panel";
import { addressOf } from "../selection";
import { Problem, Time } from "../widgets/small";

type Call = RowOf<"web.call"> & Record<string, unknown>; // with other counted costs of the call

type Caller = RowOf<"web.callers_and_costs">;

export type Value = RowOf<"web.values_of_call">;

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
    const about = useQuestion("web.call", values);
    const callers = useQuestion("web.callers_and_costs", values);
    const known = about.rows[0];
    const isSettled = known !== undefined && String(known.call_id) === call;
    const callees = useQuestion(isSettled ? "web.callees_of_call" : "", values);
    const ofCall = { session, function: String(known?.function_id ?? 0), call };
    const given = useQuestion(isSettled ? "web.values_of_call" : "", ofCall);
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
                    question="web.values_of_call"
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
                    question="web.callers_and_costs"
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
                    question="web.callees_of_call"
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
