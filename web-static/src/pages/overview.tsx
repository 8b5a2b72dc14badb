// The overview of a session: where its time went, its slow calls, threads, marks, triggers and
// losses.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useSql, type Values } from "../answers";
import type { List, Overview } from "../api";
import { isDoubtful, isUntimed } from "../estimates";
import { compact, count, duration, estimated, fileName, percent } from "../format";
import { type ListColumn, Panel, RowTable, SqlPanel } from "../widgets/panel";
import { Bar, OpenTag, Time } from "../widgets/small";
import { Notes } from "./notes";
import { addressOf, isPart, PART_MS, selection, valuesOf } from "../selection";
import { callAddress } from "./call_details";
import { valueOfTrigger } from "./live";
import {
    CALLERS_SQL,
    decisionsSql,
    filteredSql,
    hotSql,
    lastSql,
    marksSql,
    openSql,
    slowSql,
    threadsSql,
    triggersSql,
    unhookedSql,
    zombiesSql,
} from "./overview_sql";

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
    is_self_estimate: number;
}

interface SlowRow {
    call_id: number;
    function_id: number;
    name: string;
    thread: string | null;
    start_ns: number;
    duration_ns: number;
    self_ns: number;
    is_self_estimate: number;
    ending: string;
    flags: number;
    given: string | null;
}

function Callers({ call }: { call: number }) {
    const answer = useSql<{ name: string; duration_ns: number | null; is_estimate: number }>(CALLERS_SQL, { call });
    return (
        <p class="dim mono callers">
            {answer.problem ||
                (answer.value
                    ? answer.rows.length > 0
                        ? answer.rows.map((row) => `← ${row.name} (${estimated(row.duration_ns, row.is_estimate)})`).join(" ")
                        : "no recorded callers"
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
            {row.ending === "open" ? <> <OpenTag /></> : null}
            {isDoubtful(row.flags) ? <span class="warn-text" title="the time of this call is not exact"> ▲</span> : null}
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
    is_estimate: number;
}

// For a session that did not end normally: the calls that were open at the end, and the last calls.
function Crash({ session, changes }: { session: Overview; changes: number }) {
    const isBad = ["crashed", "killed", "lost", "lost contact", "interrupted"].includes(session.state);
    const chosen = selection.value;
    const values = valuesOf(session.id, chosen);
    const [openNow, lastNow] = [openSql(chosen), lastSql(chosen)];
    const open = useSql<OpenRow>(isBad ? openNow : "", values, changes, { rows: 500 });
    const last = useSql<LastRow>(isBad ? lastNow : "", values, changes, { rows: 3000 });
    if (!isBad) {
        return null;
    }
    return (
        <>
            <SqlPanel
                title="Open at the end, innermost first"
                sql={openNow}
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
                sql={lastNow}
                values={values}
                answer={last}
                isTall
                columns={[
                    { title: "Thread", cell: (row) => row.thread ?? "–" },
                    { title: "Depth", number: true, cell: (row) => row.depth },
                    { title: "Function", mono: true, cell: (row) => row.name ?? "–" },
                    { title: "Began", number: true, cell: (row) => <Time ns={row.start_ns} isEstimate={row.is_estimate} /> },
                    { title: "Took", number: true, cell: (row) => <Time ns={row.duration_ns} isEstimate={row.is_estimate} /> },
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
    cpu_ns: number | null; // NULL if the scheduler's times were not recorded
    ready_ns: number | null;
    waiting_ns: number | null;
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
                        { title: "Self time", number: true, cell: (row) => <Time ns={row.self_ns} isEstimate={row.is_self_estimate} /> },
                        { title: "Calls", number: true, cell: (row) => compact(row.calls) },
                    ],
                    "No matching call has ended yet.",
                )}
                {panel<SlowRow>(
                    "Calls with the most self time",
                    slowSql(chosen),
                    [
                        { title: "Call", mono: true, cell: (row) => <SlowName key={row.call_id} session={session.id} row={row} /> },
                        { title: "Thread", cell: (row) => row.thread ?? "–" },
                        { title: "Self", number: true, cell: (row) => <Time ns={row.self_ns} isEstimate={row.is_self_estimate} /> },
                        { title: "Took", number: true, cell: (row) => <Time ns={row.duration_ns} isEstimate={isUntimed(row.flags)} /> },
                        {
                            title: "",
                            cell: (row) => <a href={addressOf(session.id, { view: "why", call: row.call_id })}>why?</a>,
                        },
                    ],
                    "No matching call has a self time of 1 µs or more.",
                )}
            </div>
            <Crash session={session} changes={changes} />
            {panel<ZombieRow>("Uses of freed memory and other heap errors", zombiesSql(chosen), [
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
                { title: "Active", number: true, cell: (row) => duration(row.run_ns) },
                { title: "Deepest call", number: true, cell: (row) => count(row.deepest ?? 0) },
                { title: "CPU time", number: true, cell: (row) => duration(row.cpu_ns) },
                { title: "Blocked", number: true, cell: (row) => duration(row.waiting_ns) },
                { title: "Ready, not running", number: true, cell: (row) => duration(row.ready_ns) },
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
                { title: "Subject", mono: true, cell: (row) => row.subject },
                { title: "Value", number: true, cell: valueOfTrigger },
                { title: "Actions", cell: (row) => row.actions },
                { title: "Suppressed", number: true, cell: (row) => (row.suppressed > 0 ? count(row.suppressed) : "none") },
                { title: "", cell: (row) => (row.dump === null ? "" : <a href={`/sessions/${row.dump}`}>dump</a>) },
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
                `Calls that were counted but not stored${isPart(chosen) ? ", of the whole session" : ""}`,
                filteredSql(chosen),
                [
                    { title: "Function", mono: true, cell: (row) => row.name ?? "–" },
                    { title: "Reason", cell: (row) => row.reason },
                    { title: "Calls", number: true, cell: (row) => count(row.calls) },
                    { title: "Time", number: true, cell: (row) => duration(row.total_ns) },
                ],
            )}
            {panel<{ reason: string; functions: number; bytes: number; example: string }>(
                "Functions that were not instrumented, by reason",
                unhookedSql(chosen),
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
            <Notes session={session.id} changes={changes} />
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
