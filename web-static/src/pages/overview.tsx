// What a colleague wants to know of a session first.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useSql, type Values } from "../answers";
import type { List, Overview } from "../api";
import { compact, count, duration, fileName, percent } from "../format";
import { type ListColumn, Panel, RowTable, SqlPanel } from "../widgets/panel";
import { Bar } from "../widgets/small";
import { addressOf, isPart, isPicked, matches, PART_MS, pickedSql, type Selection, selection, valuesOf } from "../selection";
import { callAddress } from "./call_details";
import { valueOfTrigger } from "./live";

function hotSql(chosen: Selection): string {
    if (!isPart(chosen)) {
        return `SELECT f.function_id, f.name, s.self_ns, s.total_ns, s.calls,
       CAST(s.self_ns AS REAL) / sum(s.self_ns) OVER () AS share
FROM function_stats s JOIN functions f USING (function_id)
WHERE s.session_id = :session AND ${matches(chosen, "f.name")} ORDER BY s.self_ns DESC LIMIT 10`;
    }
    return `${pickedSql(chosen)}
SELECT f.function_id, f.name, sum(a.self_ns) AS self_ns, sum(a.total_ns) AS total_ns, sum(a.calls) AS calls,
       CAST(sum(a.self_ns) AS REAL) / sum(sum(a.self_ns)) OVER () AS share
FROM picked p JOIN call_aggregate(:session, p.from_ns, p.to_ns, p.stream_id) a JOIN functions f USING (function_id)
WHERE ${matches(chosen, "f.name")} GROUP BY a.function_id ORDER BY 3 DESC LIMIT 10`;
}

function slowSql(chosen: Selection): string {
    return `${pickedSql(chosen)}
SELECT s.call_id, s.function_id, f.name, t.name AS thread, s.start_ns, s.duration_ns, s.self_ns,
       s.flags, (SELECT group_concat(value, ', ') FROM (SELECT value FROM arguments a
                 WHERE a.call_id = s.call_id AND a.position > 0 ORDER BY a.position)) AS given
FROM slow_calls s JOIN functions f USING (function_id)
LEFT JOIN streams x ON x.stream_id = s.call_id >> 38 LEFT JOIN threads t ON t.thread_id = x.thread_id
WHERE s.session_id = :session AND ${matches(chosen, "f.name")} AND ${isPicked(chosen, "s.call_id >> 38", "s.start_ns")}
ORDER BY s.self_ns DESC LIMIT 10`;
}

// Of what a thread or the session did at some time: whether it lies in the selected time and mark.
function isThen(chosen: Selection, at: string): string {
    return chosen.area || chosen.mark
        ? `EXISTS (SELECT 1 FROM picked WHERE ${at} >= from_ns AND ${at} < to_ns)`
        : "1";
}

const CALLERS_SQL = `SELECT f.name, a.duration_ns, a.start_ns, a.call_id FROM ancestors(:call) a
LEFT JOIN functions f USING (function_id)`;

const OPEN_SQL = `SELECT t.name AS thread, t.tid, o.depth, f.name, o.start_ns FROM open_calls o
JOIN streams s USING (stream_id) LEFT JOIN threads t USING (thread_id)
LEFT JOIN functions f USING (function_id)
WHERE s.session_id = :session ORDER BY t.is_main DESC, o.stream_id, o.depth DESC`;

const LAST_SQL = `SELECT t.name AS thread, c.call_id, c.depth, f.name, c.start_ns, c.duration_ns, c.ending
FROM streams s JOIN calls c ON c.call_id BETWEEN (s.stream_id << 38) + max(s.calls - 100, 0)
     AND (s.stream_id << 38) + s.calls
LEFT JOIN threads t ON t.thread_id = s.thread_id LEFT JOIN functions f USING (function_id)
WHERE s.session_id = :session ORDER BY c.start_ns DESC LIMIT 100`;

function threadsSql(chosen: Selection): string {
    return `${pickedSql(chosen)}
SELECT t.number, t.name, t.tid, t.is_main, sum(s.calls) AS calls,
       max(s.last_leave_ns) - min(s.first_enter_ns) AS run_ns, max(s.max_depth) AS deepest,
       t.dropped_calls, t.waited_ns
FROM threads t LEFT JOIN streams s USING (thread_id) WHERE t.session_id = :session
  AND ${chosen.threads.length > 0 ? "t.thread_id IN (SELECT thread_id FROM picked)" : "1"}
GROUP BY t.thread_id ORDER BY t.is_main DESC, calls DESC LIMIT 100`;
}

const UNHOOKED_SQL = `SELECT reason, count(*) AS functions, sum(size_bytes) AS bytes, min(name) AS example
FROM unhooked_functions WHERE session_id = :session GROUP BY reason ORDER BY functions DESC`;

function marksSql(chosen: Selection): string {
    return `${pickedSql(chosen)}
SELECT b.name, b.at_ns, b.source, (SELECT min(e.at_ns) FROM marks e
       WHERE e.session_id = b.session_id AND e.name = b.name AND e.is_end = 1 AND e.at_ns >= b.at_ns) AS end_ns
FROM marks b WHERE b.session_id = :session AND b.is_end = 0 AND ${isThen(chosen, "b.at_ns")} ORDER BY b.at_ns LIMIT 200`;
}

function decisionsSql(chosen: Selection): string {
    return `${pickedSql(chosen)}
SELECT d.at_ns, d.what, f.name, d.reason, d.total_calls, d.overhead_ppm, d.budget_ppm
FROM decisions d LEFT JOIN functions f USING (function_id)
WHERE d.session_id = :session AND ${isThen(chosen, "d.at_ns")} ORDER BY d.number LIMIT 200`;
}

function triggersSql(chosen: Selection): string {
    return `${pickedSql(chosen)}
SELECT t.at_ns, t.event, t.subject, t.value, t.actions, t.suppressed,
       (SELECT s.session_id FROM sessions s WHERE s.uuid = t.child_session_uuid) AS dump
FROM triggers t WHERE t.session_id = :session AND ${isThen(chosen, "t.at_ns")} ORDER BY t.number LIMIT 200`;
}

const FILTERED_SQL = `SELECT f.name, c.reason, c.calls, c.total_ns FROM filtered_calls c
LEFT JOIN functions f USING (function_id) WHERE c.session_id = :session ORDER BY c.calls DESC LIMIT 50`;

const ZOMBIES_SQL = `SELECT z.zombie_id, z.kind, z.used_in, z.freed_in, z.allocated_in, count(*) AS reports
FROM zombie_reports r JOIN zombies z USING (zombie_id) WHERE r.session_id = :session
GROUP BY z.zombie_id ORDER BY reports DESC`;

interface ListPanelProperties<Row> {
    title: string;
    list: List<Row>;
    columns: readonly ListColumn<Row>[];
}

function ListPanel<Row>({ title, list, columns }: ListPanelProperties<Row>) {
    return (
        <Panel title={title}>
            {list.items.length === 0 ? (
                <p class="dim">None.</p>
            ) : (
                <RowTable label={title} columns={columns} rows={list.items} />
            )}
            {list.truncated ? <p class="dim">The first {count(list.items.length)} are shown.</p> : null}
        </Panel>
    );
}

function ending(code: number | null, signal: number | null): string {
    return signal ? `signal ${signal}` : code === null ? "–" : `exit ${code}`;
}

interface HotRow {
    function_id: number;
    name: string;
    self_ns: number;
    total_ns: number;
    calls: number;
    share: number;
}

interface SlowRow {
    call_id: number;
    function_id: number;
    name: string;
    thread: string | null;
    start_ns: number;
    duration_ns: number;
    self_ns: number;
    flags: number;
    given: string | null;
}

function Callers({ call }: { call: number }) {
    const answer = useSql<{ name: string; duration_ns: number | null }>(CALLERS_SQL, { call });
    return (
        <p class="dim mono callers">
            {answer.problem ||
                (answer.value
                    ? answer.rows.length > 0
                        ? answer.rows.map((row) => `← ${row.name} (${duration(row.duration_ns)})`).join(" ")
                        : "called by nothing that was recorded"
                    : "…")}
        </p>
    );
}

function SlowName({ session, row }: { session: string; row: SlowRow }) {
    const [open, setOpen] = useState(false);
    return (
        <>
            <button
                type="button"
                class="plain"
                aria-expanded={open}
                aria-label={`Callers of ${row.name}`}
                onClick={() => setOpen(!open)}
            >
                {open ? "▾" : "▸"}
            </button>{" "}
            <a href={callAddress(session, row)}>{row.name}</a>
            {row.given ? <span class="dim"> ({row.given})</span> : null}
            {row.flags ? <span class="warn-text" title="its time is not exact"> ▲</span> : null}
            {open ? <Callers call={row.call_id} /> : null}
        </>
    );
}

interface OpenRow {
    thread: string | null;
    tid: number;
    depth: number;
    name: string | null;
    start_ns: number;
}

interface LastRow {
    thread: string | null;
    depth: number;
    name: string | null;
    start_ns: number;
    duration_ns: number | null;
    ending: string;
}

// How a session that did not end well ended: what was open, and the last calls.
function Crash({ session, changes }: { session: Overview; changes: number }) {
    const isBad = ["crashed", "killed", "lost", "interrupted"].includes(session.state);
    const values = { session: session.id };
    const open = useSql<OpenRow>(isBad ? OPEN_SQL : "", values, changes, { rows: 500 });
    const last = useSql<LastRow>(isBad ? LAST_SQL : "", values, changes, { rows: 3000 });
    if (!isBad) {
        return null;
    }
    return (
        <>
            <SqlPanel
                title="Open at the end, innermost first"
                sql={OPEN_SQL}
                values={values}
                answer={open}
                none="No call was open."
                columns={[
                    { title: "Thread", cell: (row) => row.thread || row.tid },
                    { title: "Depth", number: true, cell: (row) => row.depth },
                    { title: "Function", mono: true, cell: (row) => row.name ?? "–" },
                    { title: "Began", number: true, cell: (row) => duration(row.start_ns) },
                ]}
            />
            <SqlPanel
                title="Last calls, at most 100 of each thread, latest first"
                sql={LAST_SQL}
                values={values}
                answer={last}
                columns={[
                    { title: "Thread", cell: (row) => row.thread ?? "–" },
                    { title: "Depth", number: true, cell: (row) => row.depth },
                    { title: "Function", mono: true, cell: (row) => row.name ?? "–" },
                    { title: "Began", number: true, cell: (row) => duration(row.start_ns) },
                    { title: "Took", number: true, cell: (row) => duration(row.duration_ns) },
                    { title: "Ending", cell: (row) => row.ending },
                ]}
            />
        </>
    );
}

interface ThreadRow {
    number: number;
    name: string;
    tid: number;
    is_main: number;
    calls: number | null;
    run_ns: number | null;
    deepest: number | null;
    dropped_calls: number;
    waited_ns: number;
}

interface MarkRow {
    name: string;
    at_ns: number;
    end_ns: number | null;
    source: string;
}

interface DecisionRow {
    at_ns: number;
    what: string;
    name: string | null;
    reason: string;
    total_calls: number;
    overhead_ppm: number;
    budget_ppm: number;
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

interface ZombieRow {
    zombie_id: number;
    kind: string;
    used_in: string;
    freed_in: string;
    allocated_in: string;
    reports: number;
}

function Sections({ session, changes }: { session: Overview; changes: number }) {
    const chosen = selection.value;
    const values = valuesOf(session.id, chosen);
    const panel = <Row,>(
        title: string,
        sql: string,
        columns: readonly ListColumn<Row>[],
        none?: string,
    ): ComponentChildren => (
        <Section<Row> key={title} {...{ title, sql, values, changes, columns }} {...(none ? { none } : {})} />
    );
    const at = (ns: number, end: number | null): string =>
        addressOf(session.id, { view: "timeline", from: Math.max(0, ns - 1000), to: end ?? ns + 1000000 });
    return (
        <>
            <div class="columns">
                {panel<HotRow>(
                    "Where the time goes",
                    hotSql(chosen),
                    [
                        {
                            title: "Function",
                            mono: true,
                            cell: (row) => (
                                <a href={addressOf(session.id, { view: "flame", mode: "around", function: row.function_id })}>
                                    {row.name}
                                </a>
                            ),
                        },
                        {
                            title: "Self",
                            number: true,
                            cell: (row) => (
                                <>
                                    {percent(row.share, 1)} <Bar part={row.share} whole={1} />
                                </>
                            ),
                        },
                        { title: "Self time", number: true, cell: (row) => duration(row.self_ns) },
                        { title: "Calls", number: true, cell: (row) => compact(row.calls) },
                    ],
                    "No such call has ended yet.",
                )}
                {panel<SlowRow>(
                    "Single calls with most time of their own",
                    slowSql(chosen),
                    [
                        { title: "Call", mono: true, cell: (row) => <SlowName session={session.id} row={row} /> },
                        { title: "Thread", cell: (row) => row.thread ?? "–" },
                        { title: "Self", number: true, cell: (row) => duration(row.self_ns) },
                        { title: "Took", number: true, cell: (row) => duration(row.duration_ns) },
                        {
                            title: "",
                            cell: (row) => <a href={addressOf(session.id, { view: "why", call: row.call_id })}>why?</a>,
                        },
                    ],
                    "No such call took a microsecond or longer.",
                )}
            </div>
            <Crash session={session} changes={changes} />
            {panel<ZombieRow>("Uses of freed memory and other heap mistakes", ZOMBIES_SQL, [
                { title: "Kind", cell: (row) => <a href={`/zombies?finding=${row.zombie_id}`}>{row.kind.replaceAll("_", " ")}</a> },
                { title: "Used in", mono: true, cell: (row) => row.used_in || "–" },
                { title: "Freed in", mono: true, cell: (row) => row.freed_in || "–" },
                { title: "Allocated in", mono: true, cell: (row) => row.allocated_in || "–" },
                { title: "Reports", number: true, cell: (row) => count(row.reports) },
            ])}
            {panel<ThreadRow>("Threads", threadsSql(chosen), [
                {
                    title: "Thread",
                    cell: (row) => (
                        <>
                            {row.name || `thread ${row.number}`} {row.is_main ? <span class="tag">main</span> : null}
                        </>
                    ),
                },
                { title: "tid", number: true, cell: (row) => row.tid },
                { title: "Calls", number: true, cell: (row) => <span title={count(row.calls ?? 0)}>{compact(row.calls ?? 0)}</span> },
                { title: "Active for", number: true, cell: (row) => duration(row.run_ns) },
                { title: "Deepest", number: true, cell: (row) => count(row.deepest ?? 0) },
                { title: "Waited for the recorder", number: true, cell: (row) => (row.waited_ns > 0 ? duration(row.waited_ns) : "never") },
                { title: "Lost", number: true, cell: (row) => (row.dropped_calls > 0 ? count(row.dropped_calls) : "none") },
            ])}
            {panel<MarkRow>("Marks", marksSql(chosen), [
                { title: "Mark", cell: (row) => <a href={at(row.at_ns, row.end_ns)}>{row.name}</a> },
                { title: "Began", number: true, cell: (row) => duration(row.at_ns) },
                { title: "Took", number: true, cell: (row) => (row.end_ns === null ? "–" : duration(row.end_ns - row.at_ns)) },
                { title: "Set by", cell: (row) => row.source },
            ])}
            {panel<TriggerRow>("Triggers that fired", triggersSql(chosen), [
                { title: "At", number: true, cell: (row) => duration(row.at_ns) },
                { title: "Event", cell: (row) => row.event.replaceAll("_", " ") },
                { title: "About", mono: true, cell: (row) => row.subject },
                { title: "Value", number: true, cell: valueOfTrigger },
                { title: "Done", cell: (row) => row.actions },
                { title: "Held back", number: true, cell: (row) => (row.suppressed > 0 ? count(row.suppressed) : "none") },
                { title: "", cell: (row) => (row.dump === null ? "" : <a href={`/sessions/${row.dump}`}>its dump</a>) },
            ])}
            {panel<DecisionRow>("Decisions of the overhead budget", decisionsSql(chosen), [
                { title: "At", number: true, cell: (row) => duration(row.at_ns) },
                { title: "What", cell: (row) => row.what },
                { title: "Function", mono: true, cell: (row) => row.name ?? "–" },
                { title: "Why", cell: (row) => row.reason },
                { title: "Calls so far", number: true, cell: (row) => compact(row.total_calls) },
                { title: "Overhead", number: true, cell: (row) => percent(row.overhead_ppm, 1e6) },
                { title: "Budget", number: true, cell: (row) => percent(row.budget_ppm, 1e6) },
            ])}
            {panel<{ name: string | null; reason: string; calls: number; total_ns: number }>(
                "Calls that were counted and not kept",
                FILTERED_SQL,
                [
                    { title: "Function", mono: true, cell: (row) => row.name ?? "–" },
                    { title: "Because of", cell: (row) => row.reason },
                    { title: "Calls", number: true, cell: (row) => count(row.calls) },
                    { title: "Time", number: true, cell: (row) => duration(row.total_ns) },
                ],
            )}
            {panel<{ reason: string; functions: number; bytes: number; example: string }>(
                "Functions that were not instrumented, by reason",
                UNHOOKED_SQL,
                [
                    { title: "Reason", cell: (row) => <a href={addressOf(session.id, { view: "missing" })}>{row.reason}</a> },
                    { title: "Functions", number: true, cell: (row) => count(row.functions) },
                    { title: "For example", mono: true, cell: (row) => row.example },
                ],
            )}
        </>
    );
}

interface SectionProperties<Row> {
    title: string;
    sql: string;
    values: Values;
    changes: number;
    columns: readonly ListColumn<Row>[];
    none?: string;
}

function Section<Row>({ changes, ...panel }: SectionProperties<Row>) {
    const answer = useSql<Row>(panel.sql, panel.values, changes, { ms: PART_MS });
    return <SqlPanel<Row> {...panel} answer={answer} />;
}

export function OverviewView({ session, changes }: { session: Overview; changes: number }) {
    return (
        <div class="lists">
            <Sections session={session} changes={changes} />
            <ListPanel
                title="Processes"
                list={session.processes}
                columns={[
                    { title: "pid", cell: (process) => process.pid },
                    {
                        title: "Program",
                        cell: (process) => <span title={process.command}>{fileName(process.executable)}</span>,
                    },
                    { title: "How", cell: (process) => process.how },
                    {
                        title: "End",
                        cell: (process) =>
                            `${ending(process.exit_code, process.exit_signal)}${process.disarm_reason ? ` · ${process.disarm_reason}` : ""}`,
                    },
                ]}
            />
            <ListPanel
                title="Modules"
                list={session.modules}
                columns={[
                    { title: "Module", cell: (module) => <span title={module.path}>{fileName(module.path)}</span> },
                    {
                        title: "Build",
                        mono: true,
                        cell: (module) => <span title={module.build}>{module.build.slice(0, 10)}</span>,
                    },
                    { title: "Hooked", number: true, cell: (module) => count(module.hooked_count) },
                    { title: "Functions", number: true, cell: (module) => count(module.function_count) },
                ]}
            />
        </div>
    );
}
