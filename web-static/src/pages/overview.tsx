// The overview of a session: where its time went, its slow calls, threads, marks, triggers and
// losses.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useQuestion } from "../answers";
import type { List, Overview, QuestionName, RowOf, ValuesOf } from "../api";
import { isDoubtful, isUntimed } from "../estimates";
import { compact, count, duration, estimated, fileName, percent } from "../format";
import { type ListColumn, Panel, RowTable, SqlPanel } from "../widgets/panel";
import { Bar, OpenTag, Time } from "../widgets/small";
import { Notes } from "./notes";
import { addressOf, isPart, PART_MS, selection, type SelectedValues, valuesOf } from "../selection";
import { callAddress } from "./call_details";
import { valueOfTrigger } from "./live";

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

type SlowRow = RowOf<"web.slow">;

function Callers({ call }: { call: number | string }) {
    const answer = useQuestion("web.callers_of_call", { call });
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

// For a session that did not end normally: the calls that were open at the end, and the last calls.
function Crash({ session, changes }: { session: Overview; changes: number }) {
    const isBad = ["crashed", "killed", "lost", "lost contact", "interrupted"].includes(session.state);
    const chosen = selection.value;
    const values = valuesOf(session.id, chosen);
    const open = useQuestion(isBad ? "web.open_at_end" : "", values, changes, { rows: 500 });
    const last = useQuestion(isBad ? "web.last_calls" : "", values, changes, { rows: 3000 });
    if (!isBad) {
        return null;
    }
    return (
        <>
            <SqlPanel
                title="Open at the end, innermost first"
                question="web.open_at_end"
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
                question="web.last_calls"
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

function Sections({ session, changes }: { session: Overview; changes: number }) {
    const chosen = selection.value;
    const values = valuesOf(session.id, chosen);
    const panel = <Name extends QuestionName>(
        title: string,
        question: Name,
        columns: readonly ListColumn<RowOf<Name>>[],
        none?: string,
    ): ComponentChildren => (
        <Section<Name> key={title} {...{ title, question, values, changes, columns }} {...(none ? { none } : {})} />
    );
    const isSelected = isPart(chosen);
    const at = (ns: number, end: number | null): string =>
        addressOf(session.id, { view: "timeline", from: Math.max(0, ns - 1000), to: end ?? ns + 1000000 });
    return (
        <>
            <div class="columns">
                {panel(
                    "Where the time goes",
                    isSelected ? "web.selected_hot" : "web.hot",
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
                {panel(
                    "Calls with the most self time",
                    isSelected ? "web.selected_slow" : "web.slow",
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
            {panel("Uses of freed memory and other heap errors", "web.findings_of_session", [
                { title: "Kind", cell: (row) => <a href={`/zombies?finding=${row.zombie_id}`}>{row.kind.replaceAll("_", " ")}</a> },
                { title: "Used in", mono: true, cell: (row) => row.used_in || "–" },
                { title: "Freed in", mono: true, cell: (row) => row.freed_in || "–" },
                { title: "Allocated in", mono: true, cell: (row) => row.allocated_in || "–" },
                { title: "Reports", number: true, cell: (row) => count(row.reports) },
            ])}
            {panel("Threads", "web.threads", [
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
            {panel("Marks", "web.marks", [
                { title: "Mark", cell: (row) => <a href={at(row.at_ns, row.end_ns)}>{row.name}</a> },
                { title: "Began", number: true, cell: (row) => duration(row.at_ns) },
                { title: "Took", number: true, cell: (row) => (row.end_ns === null ? "–" : duration(row.end_ns - row.at_ns)) },
                { title: "Set by", cell: (row) => row.source },
            ])}
            {panel("Triggers that fired", "web.triggers", [
                { title: "At", number: true, cell: (row) => duration(row.at_ns) },
                { title: "Event", cell: (row) => row.event.replaceAll("_", " ") },
                { title: "Subject", mono: true, cell: (row) => row.subject },
                { title: "Value", number: true, cell: valueOfTrigger },
                { title: "Actions", cell: (row) => row.actions },
                { title: "Suppressed", number: true, cell: (row) => (row.suppressed > 0 ? count(row.suppressed) : "none") },
                { title: "", cell: (row) => (row.dump === null ? "" : <a href={`/sessions/${row.dump}`}>dump</a>) },
            ])}
            {panel("Decisions of the overhead budget", "web.decisions", [
                { title: "At", number: true, cell: (row) => duration(row.at_ns) },
                { title: "What", cell: (row) => row.what },
                { title: "Function", mono: true, cell: (row) => row.name ?? "–" },
                { title: "Why", cell: (row) => row.reason },
                { title: "Calls so far", number: true, cell: (row) => compact(row.total_calls) },
                { title: "Overhead", number: true, cell: (row) => percent(row.overhead_ppm, 1e6) },
                { title: "Budget", number: true, cell: (row) => percent(row.budget_ppm, 1e6) },
            ])}
            {panel(
                `Calls that were counted but not stored${isSelected ? ", of the whole session" : ""}`,
                "web.filtered",
                [
                    { title: "Function", mono: true, cell: (row) => row.name ?? "–" },
                    { title: "Reason", cell: (row) => row.reason },
                    { title: "Calls", number: true, cell: (row) => count(row.calls) },
                    { title: "Time", number: true, cell: (row) => duration(row.total_ns) },
                ],
            )}
            {panel(
                "Functions that were not instrumented, by reason",
                "web.unhooked",
                [
                    { title: "Reason", cell: (row) => <a href={addressOf(session.id, { view: "missing" })}>{row.reason}</a> },
                    { title: "Functions", number: true, cell: (row) => count(row.functions) },
                    { title: "For example", mono: true, cell: (row) => row.example },
                ],
            )}
        </>
    );
}

interface SectionProperties<Name extends QuestionName> {
    title: string;
    question: Name;
    values: SelectedValues;
    changes: number;
    columns: readonly ListColumn<RowOf<Name>>[];
    none?: string;
}

function Section<Name extends QuestionName>({ changes, ...panel }: SectionProperties<Name>) {
    const answer = useQuestion(panel.question, panel.values as ValuesOf<Name>, changes, { ms: PART_MS });
    return <SqlPanel<RowOf<Name>> {...panel} answer={answer} />;
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
