// A session while it is being recorded: calls per second, losses, triggers and flight dumps. This
// page takes a sample at each change of the session. The samples are lost when the page is closed.
import { useEffect, useState } from "preact/hooks";
import { useQuestion } from "../answers";
import type { Overview, SqlAnswer, RowOf } from "../api";
import { isUntimed,  } from "../estimates";
import { compact, count, counted, dateTime, duration, percent } from "../format";
import { addressOf } from "../selection";
import { lazy } from "../widgets/lazy";
import { Panel, RowTable, SqlPanel } from "../widgets/panel";
import { StatePill, Tile, Time } from "../widgets/small";
import { callAddress } from "./call_details";

const LineChart = lazy<{ answer: SqlAnswer }>(() => import("../widgets/line_chart").then((part) => part.LineChart));

const SAMPLES_MAX = 600;

type ValuedCall = RowOf<"web.latest_values">;

interface Sample {
    at_ms: number;
    stored: number;
    lost: number;
}

// Keeps one sample for each state of the session that this page has seen.
function useSamples(session: Overview): Sample[] {
    const [samples, setSamples] = useState<Sample[]>([]);
    useEffect(() => {
        const sample = { at_ms: performance.now(), stored: session.stored_calls, lost: session.lost_calls };
        setSamples((before) => [...before.slice(1 - SAMPLES_MAX), sample]);
    }, [session]);
    return samples;
}

// The calls between two samples.
interface Rate {
    at_ns: number; // time since the first sample
    took_ns: number;
    stored: number;
    lost: number;
}

const aSecond = (calls: number, { took_ns: took }: Rate) => (calls / took) * 1e9;

function ratesOf(samples: readonly Sample[]): Rate[] {
    const first = samples[0]?.at_ms ?? 0;
    return samples.slice(1).map((sample, index) => {
        const before = samples[index]!;
        return {
            at_ns: Math.round((sample.at_ms - first) * 1e6),
            took_ns: Math.max(1e6, Math.round((sample.at_ms - before.at_ms) * 1e6)),
            stored: Math.max(0, sample.stored - before.stored),
            lost: Math.max(0, sample.lost - before.lost),
        };
    });
}

// Converts the rates into the rows of a line chart.
function chartOf(rates: readonly Rate[]): SqlAnswer {
    const rows = rates.map((rate) => [
        rate.at_ns,
        Math.round(aSecond(rate.stored, rate)),
        Math.round(aSecond(rate.lost, rate)),
    ]);
    const columns = ["watched_ns", "stored a second", "lost a second"];
    return { columns, rows, truncated: false, is_full: false, elapsed_us: 0, warnings: "" };
}

function Rates({ rates }: { rates: readonly Rate[] }) {
    return (
        <>
            <LineChart answer={chartOf(rates)} />
            <details class="twin">
                <summary>The same as a table</summary>
                <RowTable<Rate>
                    label="Calls a second, as a table"
                    rows={[...rates].reverse().slice(0, 100)}
                    columns={[
                        { title: "Time since opening", number: true, cell: (rate) => duration(rate.at_ns) },
                        { title: "Interval", number: true, cell: (rate) => duration(rate.took_ns) },
                        { title: "Stored", number: true, cell: (rate) => count(rate.stored) },
                        { title: "Stored a second", number: true, cell: (rate) => compact(Math.round(aSecond(rate.stored, rate))) },
                        { title: "Lost", number: true, cell: (rate) => count(rate.lost) },
                        { title: "Lost a second", number: true, cell: (rate) => compact(Math.round(aSecond(rate.lost, rate))) },
                    ]}
                />
            </details>
        </>
    );
}

function LossGauge({ session }: { session: Overview }) {
    const known = session.stored_calls + session.lost_calls;
    const share = known > 0 ? session.lost_calls / known : 0;
    return (
        <Tile label="Lost" hint={`${count(session.lost_calls)} of ${count(known)} calls`}>
            <meter class="gauge" aria-label="Share of calls that were lost" min={0} max={0.1} high={0.001} value={share} />{" "}
            <span class={session.lost_calls > 0 ? "warn-text" : "good-text"}>
                {session.lost_calls > 0 ? percent(session.lost_calls, known) : "none"}
            </span>
        </Tile>
    );
}

type TriggerRow = RowOf<"web.latest_triggers">;

export function valueOfTrigger({ event, value }: { event: string; value: number }): string {
    return ["slow_call", "jank"].includes(event) ? duration(value) : count(value);
}

type DumpRow = RowOf<"web.flight_dumps">;

type HotRow = RowOf<"web.hot_so_far">;

function Events({ session, changes }: { session: Overview; changes: number }) {
    const values = { session: session.id };
    const triggers = useQuestion("web.latest_triggers", values, changes);
    const dumps = useQuestion("web.flight_dumps", values, changes);
    return (
        <>
            <SqlPanel<TriggerRow>
                title="Triggers that fired, latest first"
                question="web.latest_triggers"
                values={values}
                answer={triggers}
                none="No trigger has fired yet."
                columns={[
                    { title: "At", number: true, cell: (row) => duration(row.at_ns) },
                    { title: "Event", cell: (row) => row.event.replaceAll("_", " ") },
                    { title: "Subject", mono: true, cell: (row) => row.subject },
                    { title: "Value", number: true, cell: valueOfTrigger },
                    { title: "Actions", cell: (row) => row.actions },
                    { title: "Suppressed", number: true, cell: (row) => (row.suppressed > 0 ? count(row.suppressed) : "none") },
                    { title: "", cell: (row) => (row.dump === null ? "" : <a href={`/sessions/${row.dump}`}>dump</a>) },
                ]}
            />
            <SqlPanel<DumpRow>
                title="Flight dumps, latest first"
                question="web.flight_dumps"
                values={values}
                answer={dumps}
                none="No flight dumps yet."
                columns={[
                    { title: "Dump", cell: (row) => <a href={`/sessions/${row.session_id}`}>{`session ${row.session_id}`}</a> },
                    { title: "Cause", cell: (row) => row.cause },
                    { title: "State", cell: (row) => <StatePill state={row.state} /> },
                    { title: "Began", cell: (row) => dateTime(String(row.started_realtime_ns)) },
                    { title: "Duration", number: true, cell: (row) => duration(row.length_ns) },
                    { title: "Calls", number: true, cell: (row) => count(row.stored_calls) },
                ]}
            />
        </>
    );
}

// Shows nothing if no values were recorded.
function LatestValues({ session, changes }: { session: Overview; changes: number }) {
    const values = { session: session.id };
    const any = useQuestion("web.has_values", values, changes);
    const latest = useQuestion(any.rows.length > 0 ? "web.latest_values" : "", values, changes);
    if (latest.rows.length === 0 && !latest.problem) {
        return null;
    }
    const time = (row: ValuedCall, ns: number | null) => <Time ns={ns} isEstimate={isUntimed(row.flags)} />;
    return (
        <SqlPanel<ValuedCall>
            title="Latest calls with values"
            question="web.latest_values"
            values={values}
            answer={latest}
            columns={[
                {
                    title: "Function",
                    mono: true,
                    cell: (row) => <a href={addressOf(session.id, { view: "function", function: row.function_id })}>{row.name}</a>,
                },
                { title: "Arguments", mono: true, cell: (row) => row.arguments ?? "" },
                { title: "Result", mono: true, cell: (row) => row.result ?? "" },
                { title: "Began", number: true, cell: (row) => <a href={callAddress(session.id, row)}>{time(row, row.start_ns)}</a> },
                { title: "Took", number: true, cell: (row) => time(row, row.duration_ns) },
            ]}
        />
    );
}

// Says how many calls are still open: the sums do not count them yet.
function runningNote({ state, counts }: Overview): string {
    if (state !== "recording") {
        return "";
    }
    const open = counts.running_calls > 0 ? `${counted(counts.running_calls, "call")} open now, the first since ${duration(counts.running_since_ns)}. ` : "";
    return `${open}Calls that are still open count when they end, or when recording does.`;
}

export function LiveView({ session, changes }: { session: Overview; changes: number }) {
    const samples = useSamples(session);
    const values = { session: session.id };
    const hot = useQuestion("web.hot_so_far", values, changes);
    const rates = ratesOf(samples);
    const last = rates.at(-1);
    const isRecording = session.state === "recording";
    return (
        <section class="lists" aria-label="Live">
            <dl class="tiles">
                <Tile label="State">
                    <StatePill state={session.state} />
                </Tile>
                <Tile label="Calls a second">{isRecording && last ? compact(Math.round(aSecond(last.stored, last))) : "–"}</Tile>
                <LossGauge session={session} />
                <Tile label="Blocks">{count(session.stored_blocks)}</Tile>
                <Tile label="Not exact">{count(session.counts.untrusted_calls)}</Tile>
            </dl>
            <p class="dim">
                {isRecording
                    ? "This page updates itself. "
                    : "The session has ended. "}
                <a href={addressOf(session.id, { view: "timeline", follow: isRecording ? "1" : "" })}>
                    {isRecording ? "Follow it on the timeline" : "Timeline"}
                </a>
            </p>
            {isRecording || samples.length > 2 ? (
                <Panel title="Calls a second since this page was opened">
                    {samples.length > 2 ? (
                        <Rates rates={rates} />
                    ) : (
                        <p class="dim">Waiting for the session to change…</p>
                    )}
                </Panel>
            ) : null}
            <LatestValues session={session} changes={changes} />
            <div class="columns">
                <SqlPanel<HotRow>
                    title="Where the time goes so far"
                    question="web.hot_so_far"
                    values={values}
                    answer={hot}
                    none="No call has ended yet."
                    note={runningNote(session)}
                    columns={[
                        {
                            title: "Function",
                            mono: true,
                            cell: (row) => <a href={addressOf(session.id, { view: "function", function: row.function_id })}>{row.name}</a>,
                        },
                        { title: "Self", number: true, cell: (row) => <Time ns={row.self_ns} isEstimate={row.is_self_estimate} /> },
                        { title: "Calls", number: true, cell: (row) => count(row.calls) },
                    ]}
                />
                <div class="lists">
                    <Events session={session} changes={changes} />
                </div>
            </div>
        </section>
    );
}
