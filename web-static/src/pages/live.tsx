// A session while it is being recorded: calls per second, losses, triggers and flight dumps. This
// page takes a sample at each change of the session. The samples are lost when the page is closed.
import { useEffect, useState } from "preact/hooks";
import { useSql } from "../answers";
import type { Overview, SqlAnswer } from "../api";
import { isUntimed, selfEstimateSql } from "../estimates";
import { compact, count, counted, dateTime, duration, percent } from "../format";
import { addressOf } from "../selection";
import { lazy } from "../widgets/lazy";
import { Panel, RowTable, SqlPanel } from "../widgets/panel";
import { StatePill, Tile, Time } from "../widgets/small";
import { callAddress } from "./call_details";

const LineChart = lazy<{ answer: SqlAnswer }>(() => import("../widgets/line_chart").then((part) => part.LineChart));

const SAMPLES_MAX = 600;

export const TRIGGERS_SQL = `SELECT t.number, t.at_ns, t.event, t.subject, t.value, t.actions, t.suppressed,
       (SELECT s.session_id FROM sessions s WHERE s.uuid = t.child_session_uuid) AS dump
FROM triggers t WHERE t.session_id = :session ORDER BY t.number DESC LIMIT 200`;

const DUMPS_SQL = `SELECT s.session_id, s.cause, s.state, s.started_realtime_ns, s.stored_calls,
       (SELECT max(last_leave_ns) - min(first_enter_ns) FROM streams x WHERE x.session_id = s.session_id) AS length_ns
FROM sessions s WHERE s.parent_session_id = :session ORDER BY s.session_id DESC LIMIT 200`;

const HOT_SQL = `SELECT f.function_id, f.name, s.calls, s.self_ns, ${selfEstimateSql("s.function_id")} FROM function_stats s JOIN functions f USING (function_id)
WHERE s.session_id = :session ORDER BY s.self_ns DESC LIMIT 15`;

// The latest calls with recorded values, newest first: at most 12 of each thread, 12 in all.
const VALUES_SQL = `WITH types AS MATERIALIZED (SELECT function_id, position, max(name) AS name FROM value_types
  WHERE session_id = :session GROUP BY function_id, position),
latest AS MATERIALIZED (SELECT c.call_id, c.function_id, c.start_ns, c.duration_ns, c.flags FROM streams s
  JOIN calls c ON c.session_id = s.session_id AND c.call_id IN (SELECT DISTINCT a.call_id FROM arguments a
    WHERE a.session_id = s.session_id AND a.call_id BETWEEN s.stream_id << 38 AND (s.stream_id + 1 << 38) - 1
    ORDER BY a.call_id DESC LIMIT 12)
  WHERE s.session_id = :session ORDER BY c.start_ns DESC LIMIT 12),
kept AS MATERIALIZED (SELECT l.call_id, a.position, a.kind, coalesce(max(t.name), '') AS name,
    coalesce(a.value, a.note, '') || iif(a.note = 'cut', '…', '') AS text
  FROM latest l JOIN arguments a ON a.session_id = :session AND a.call_id = l.call_id
  LEFT JOIN types t ON t.function_id = l.function_id AND t.position = a.position
  GROUP BY l.call_id, a.position, a.kind ORDER BY a.position)
SELECT l.call_id, l.start_ns, l.duration_ns, l.flags, l.function_id, f.name,
  (SELECT group_concat(iif(k.name = '', '', k.name || '=') || k.text, ', ') FROM kept k
    WHERE k.call_id = l.call_id AND k.position > 0) AS arguments,
  (SELECT group_concat(iif(k.kind IN ('errno', 'thrown'), k.kind || ' ', '') || k.text, ', ') FROM kept k
    WHERE k.call_id = l.call_id AND k.position = 0) AS result
FROM latest l JOIN functions f USING (function_id) ORDER BY l.start_ns DESC`;

interface ValuedCall {
    call_id: number | string;
    start_ns: number;
    duration_ns: number | null;
    flags: number;
    function_id: number;
    name: string;
    arguments: string | null;
    result: string | null;
}

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

interface TriggerRow {
    at_ns: number;
    event: string;
    subject: string;
    value: number;
    actions: string;
    suppressed: number;
    dump: number | null;
}

export function valueOfTrigger({ event, value }: { event: string; value: number }): string {
    return ["slow_call", "jank"].includes(event) ? duration(value) : count(value);
}

interface DumpRow {
    session_id: number;
    cause: string;
    state: string;
    started_realtime_ns: number | string;
    stored_calls: number;
    length_ns: number | null;
}

interface HotRow {
    function_id: number;
    name: string;
    calls: number;
    self_ns: number;
    is_self_estimate: number;
}

function Events({ session, changes }: { session: Overview; changes: number }) {
    const values = { session: session.id };
    const triggers = useSql<TriggerRow>(TRIGGERS_SQL, values, changes);
    const dumps = useSql<DumpRow>(DUMPS_SQL, values, changes);
    return (
        <>
            <SqlPanel<TriggerRow>
                title="Triggers that fired, latest first"
                sql={TRIGGERS_SQL}
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
                sql={DUMPS_SQL}
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
    const any = useSql<{ one: number }>("SELECT 1 AS one FROM arguments WHERE session_id = :session LIMIT 1", values, changes);
    const latest = useSql<ValuedCall>(any.rows.length > 0 ? VALUES_SQL : "", values, changes);
    if (latest.rows.length === 0 && !latest.problem) {
        return null;
    }
    const time = (row: ValuedCall, ns: number | null) => <Time ns={ns} isEstimate={isUntimed(row.flags)} />;
    return (
        <SqlPanel<ValuedCall>
            title="Latest calls with values"
            sql={VALUES_SQL}
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
    const hot = useSql<HotRow>(HOT_SQL, values, changes);
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
                    sql={HOT_SQL}
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
