// A session, or a part of it, as one page that needs no server. The page contains its data.
import { render } from "preact";
import { useMemo, useState } from "preact/hooks";
import { isUntimed } from "./estimates";
import { bytes, compact, count, counted, dateTime, duration, estimated, estimateHint, fileName, percent } from "./format";
import { waitsText } from "./waits";
import type { OneFile, OnePanel } from "./one_file_data";
import { parse } from "./parse";
import { type FlameRow, framesOfPaths, widthOf } from "./pages/flame_tree";
import { Flame } from "./widgets/flame";
import { EstimatesNote, StatePill, Tile, Time } from "./widgets/small";

const SHOWN = 200;

const titles: Record<string, string> = {
    name: "Function",
    given: "Values",
    start_ns: "Began",
    at_ns: "At",
    duration_ns: "Took",
    p50_ns: "p50",
    p95_ns: "p95",
    p99_ns: "p99",
    is_main: "Main",
    tid: "tid",
    run_ns: "Active",
    cpu_ns: "CPU time",
    waiting_ns: "Blocked",
    ready_ns: "Ready, not running",
    waited_ns: "Waited for the recorder",
    dropped_calls: "Lost",
};
const names: Record<string, string> = { Threads: "Thread", Marks: "Mark" }; // the "name" column of a panel is titled by what it names

function titleOf(column: string, panel: string): string {
    const words = column.replace(/_ns$/, "").replaceAll("_", " ");
    return (column === "name" ? names[panel] : undefined) ?? titles[column] ?? words[0]!.toUpperCase() + words.slice(1);
}

// These columns tell whether a row's times are estimates. They are not shown; the times get a ~
// instead.
const ABOUT_TIMES = new Set(["untimed_calls", "error_ns", "is_self_estimate", "flags"]);

interface Doubt {
    isEstimate: boolean;
    isSelfEstimate: boolean;
    error: number | null; // ns: standard error of a total
}

function doubtOf({ columns }: OnePanel, row: readonly unknown[]): Doubt {
    const number = (column: string) => {
        const value = row[columns.indexOf(column)];
        return typeof value === "number" ? value : null;
    };
    const isEstimate = (number("untimed_calls") ?? 0) > 0 || isUntimed(number("flags") ?? 0);
    return { isEstimate, isSelfEstimate: isEstimate || number("is_self_estimate") === 1, error: number("error_ns") };
}

function textOf(column: string, value: unknown, isEstimate = false): string {
    if (value === null || value === "") {
        return "–";
    }
    if (typeof value !== "number") {
        return column === "module" ? fileName(String(value)) : String(value);
    }
    if (column.endsWith("_ns")) {
        return estimated(value, isEstimate);
    }
    return column.endsWith("_ppm") ? percent(value, 1e6) : column === "tid" ? String(value) : count(value);
}

// Orders numbers from the greatest, texts from A to Z, and puts null last.
function compare(a: unknown, b: unknown): number {
    if (typeof a === "number" && typeof b === "number") {
        return b - a;
    }
    return a === null ? 1 : b === null ? -1 : String(a).localeCompare(String(b));
}

function Cell({ column, value, isNumber, doubt }: { column: string; value: unknown; isNumber: boolean; doubt: Doubt }) {
    const text = textOf(column, value, column === "self_ns" ? doubt.isSelfEstimate : doubt.isEstimate);
    const hint = column.endsWith("_ns") && text.startsWith("~") ? `; ${estimateHint(doubt.error)}` : "";
    return (
        <td class={isNumber ? "number" : "mono"} title={`${String(value ?? "")}${hint}`}>
            {text}
        </td>
    );
}

function Table({ panel }: { panel: OnePanel }) {
    const [sort, setSort] = useState(-1);
    const [search, setSearch] = useState("");
    const numeric = panel.columns.map((_, at) => panel.rows.some((row) => typeof row[at] === "number"));
    const shown = panel.columns.map((_, at) => at).filter((at) => !ABOUT_TIMES.has(panel.columns[at]!));
    const rows = useMemo(() => {
        const wanted = search.toLowerCase();
        const found = panel.rows.filter((row) => shown.some((at) => String(row[at]).toLowerCase().includes(wanted)));
        return sort < 0 ? found : [...found].sort((a, b) => compare(a[sort], b[sort]));
    }, [panel, sort, search]);
    return (
        <section class="card panel" aria-label={panel.title}>
            <div class="title-line">
                <h2>{panel.title}</h2>
                {panel.rows.length > 20 ? (
                    <input
                        type="search"
                        aria-label={`Search in ${panel.title}`}
                        placeholder="Search…"
                        value={search}
                        onInput={(event) => setSearch(event.currentTarget.value)}
                    />
                ) : null}
            </div>
            <div class="scroll-x" tabIndex={0} role="group" aria-label={panel.title}>
                <table>
                    <thead>
                        <tr>
                            {shown.map((at) => (
                                <th
                                    scope="col"
                                    key={at}
                                    class={numeric[at] ? "number" : ""}
                                    {...(sort === at ? { "aria-sort": numeric[at] ? "descending" : "ascending" } : {})}
                                >
                                    <button type="button" class="sort" onClick={() => setSort(at)}>
                                        {titleOf(panel.columns[at]!, panel.title)}
                                    </button>
                                </th>
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {rows.slice(0, SHOWN).map((row, index) => (
                            <tr key={index}>
                                {shown.map((at) => (
                                    <Cell key={at} column={panel.columns[at]!} value={row[at]} isNumber={numeric[at]!} doubt={doubtOf(panel, row)} />
                                ))}
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
            {rows.length > SHOWN ? <p class="dim">{`The first ${SHOWN} of ${count(rows.length)}; search shows others.`}</p> : null}
            {panel.truncated ? <p class="warn-text">{`Only ${count(panel.rows.length)} rows are in this file.`}</p> : null}
        </section>
    );
}

function rowsOfPanel<Row>({ columns, rows }: OnePanel): Row[] {
    return rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])) as Row);
}

function Graph({ panel }: { panel: OnePanel }) {
    const [chosen, setChosen] = useState("");
    const [search, setSearch] = useState("");
    const frames = useMemo(() => {
        const rows = rowsOfPanel<FlameRow>(panel);
        return framesOfPaths(rows, widthOf(rows));
    }, [panel]);
    return frames.length === 0 ? null : (
        <section class="lists" aria-label="Flame graph">
            <div class="title-line">
                <h2>Call paths</h2>
                <input
                    type="search"
                    aria-label="Highlight functions"
                    placeholder="Highlight functions…"
                    value={search}
                    onInput={(event) => setSearch(event.currentTarget.value)}
                />
            </div>
            <Flame
                label="Call paths, callers above callees"
                frames={frames}
                chosen={chosen}
                search={search}
                onChoose={(frame) => setChosen(frame?.key ?? "")}
                columns={[
                    { title: "Function", mono: true, cell: ({ about }) => about.name },
                    { title: "Depth", number: true, cell: ({ about }) => about.depth },
                    { title: "Total", number: true, cell: ({ about }) => <Time ns={about.total_ns} isEstimate={about.is_estimate} /> },
                    { title: "Self", number: true, cell: ({ about }) => <Time ns={about.self_ns} isEstimate={about.is_self_estimate} /> },
                    { title: "Calls", number: true, cell: ({ about }) => count(about.calls) },
                ]}
            />
        </section>
    );
}

// Describes the loss: the calls that were lost, else the blocks that are not stored.
function lossText({ lost_calls: calls, missing_blocks: blocks }: OneFile["session"]): string {
    if (calls > 0) {
        return `${counted(calls, "call")} of the session ${calls === 1 ? "was" : "were"} lost`;
    }
    return blocks > 0 ? `${counted(blocks, "block")} of the session ${blocks === 1 ? "is" : "are"} not stored` : "";
}

function Page({ data }: { data: OneFile }) {
    const { session } = data;
    const gone = lossText(session);
    const lost = session.loss.items.map((loss) => `${loss.reason.replaceAll("_", " ")}: ${counted(loss.calls, "call")} in ${counted(loss.gaps, "gap")}`);
    return (
        <main class="page session" id="main">
            <div class="title-line">
                <h1 class="mono">{session.name || session.command}</h1>
                <StatePill state={session.state} />
                <span class="grow" />
            </div>
            <p class="dim">
                {[session.device_name, session.device_model, session.device_os].filter(Boolean).join(" · ")} · started{" "}
                {dateTime(session.started_realtime_ns)} · {session.mode} · session {session.uuid} · this file was made{" "}
                {data.made.slice(0, 16).replace("T", " ")} UTC
            </p>
            <p class="chips" aria-label="Selection">
                <span class="dim">{data.selection.length > 0 ? "Only calls of" : "All calls"}</span>
                {data.selection.map((words) => (
                    <span class="chip whole" key={words}>
                        {words}
                    </span>
                ))}
            </p>
            <p class={`banner ${gone === "" ? "good" : "warn"}`}>
                <strong>{gone === "" ? "✓ No loss is known." : `▲ ${gone}.`}</strong>{" "}
                {lost.join("; ")}
                {waitsText(session)}
            </p>
            <EstimatesNote untimed={session.counts.untimed_calls} calls={session.stored_calls} />
            <dl class="tiles">
                <Tile label="Duration">{duration(session.duration_ns)}</Tile>
                <Tile label="Calls of the session">{compact(session.stored_calls)}</Tile>
                <Tile label="Functions">{count(session.counts.functions)}</Tile>
                <Tile label="Threads">{count(session.counts.threads)}</Tile>
                <Tile label="Stored">{bytes(session.stored_bytes)}</Tile>
            </dl>
            <div class="lists">
                <Graph panel={data.panels[0]!} />
                {data.panels
                    .slice(1)
                    .filter((panel) => panel.rows.length > 0)
                    .map((panel) => (
                        <Table key={panel.title} panel={panel} />
                    ))}
            </div>
        </main>
    );
}

const data = parse(document.getElementById("data")!.textContent!) as OneFile;
document.title = `${data.session.name || data.session.command} · Sojourn`;
render(<Page data={data} />, document.getElementById("app")!);
