// Compares two sets of sessions: what became slower or faster, and whether the change exceeds the
// noise.
import { useEffect, useMemo } from "preact/hooks";
import { useQuestion } from "../answers";
import type { RowOf } from "../api";
import { change, changeOf, count, counted, duration, estimated, fileName, percent } from "../format";
import { route, setParameters } from "../router";
import { setOnDevice } from "../selection";
import { DeviceBar } from "../widgets/device_chip";
import { Engine } from "../widgets/engine";
import { Flame, type Frame } from "../widgets/flame";
import { Panel, RowTable } from "../widgets/panel";
import { SetFields, SetHelp } from "../widgets/session_sets";
import { Problem, Time } from "../widgets/small";
import { CoverageDifference } from "./coverage_difference";
import { Histograms } from "../widgets/histogram";

type Difference = RowOf<"web.compared_functions">;

type TreeRow = RowOf<"web.compared_paths">;

type Side = "a" | "b";

function SideTime({ row, what, side }: { row: Difference | TreeRow; what: "self" | "total"; side: Side }) {
    const ns = what === "self" ? row[`compared_${side}`] : (row as TreeRow)[`total_ns_${side}`];
    const error = row[`error_ns_${side}`];
    const isEstimate = what === "self" ? row[`is_self_estimate_${side}`] : error !== null;
    return <Time ns={ns} isEstimate={isEstimate} error={error} />;
}

// A ratio exists only if the number of calls never varies in a set, so it is exact.
function callsChange({ calls_ratio: ratio, calls_change: text }: Difference): string {
    return ratio === null || ratio === 1 ? text : `${(100 * Math.abs(ratio - 1)).toFixed(1)} % ${ratio > 1 ? "more" : "fewer"} in total`;
}

const verdicts = ["slower", "faster", "added", "removed", "inconclusive", "unmatched", "same", "minor"] as const;
const marks: Record<string, string> = {
    slower: "▲",
    faster: "▼",
    added: "+",
    removed: "−",
    inconclusive: "?",
    unmatched: "≠",
    same: "=",
    minor: "·",
};
const hues: Record<string, string> = {
    slower: "hsl(8 82% 76%)",
    added: "hsl(30 85% 76%)",
    faster: "hsl(150 48% 72%)",
    removed: "hsl(190 52% 74%)",
};

function Verdict({ verdict }: { verdict: string }) {
    return (
        <span class={`verdict ${verdict}`}>
            <span aria-hidden="true">{marks[verdict] ?? "·"}</span> {verdict}
        </span>
    );
}

interface TreeFrame extends Frame {
    about: TreeRow;
}

// Returns the total time on one side, with ~ if it is an estimate.
function totalOf(row: TreeRow, side: Side): string {
    return estimated(row[`total_ns_${side}`], row[`error_ns_${side}`] !== null);
}

// The width of a frame is the time of A and B together. Its colour shows the verdict.
function placeTree(rows: readonly TreeRow[]): TreeFrame[] {
    const weight = (row: TreeRow) => (row.total_ns_a ?? 0) + (row.total_ns_b ?? 0);
    const free = new Map<number, number>(); // by row: where its next callee begins
    const ends = new Map<number, number>();
    let root = 0;
    const frames: TreeFrame[] = [];
    for (const row of rows) {
        const parent = row.parent_row === null ? 0 : row.parent_row;
        const left = parent > 0 ? (free.get(parent) ?? 0) : root;
        const right = Math.min(left + weight(row), parent > 0 ? (ends.get(parent) ?? Infinity) : Infinity);
        if (right <= left) {
            continue;
        }
        if (parent > 0) {
            free.set(parent, right);
        } else {
            root = right;
        }
        free.set(row.row, left);
        ends.set(row.row, right);
        const name = row.name;
        frames.push({
            key: String(row.row),
            parent: parent > 0 ? String(parent) : "",
            left,
            right,
            row: row.depth,
            name,
            hue: hues[row.verdict] ?? "hsl(230 10% 82%)",
            label: `${marks[row.verdict] ?? ""} ${name}`,
            hint: `${name}: ${row.verdict}, ${totalOf(row, "a")} → ${totalOf(row, "b")}, self ${changeOf(row)}`,
            about: row,
        });
    }
    return frames;
}

function DiffFlame({ a, b }: { a: string; b: string }) {
    const isOfMarks = /(^|[,+])mark:/.test(`${a},${b}`);
    const answer = useQuestion(isOfMarks ? "" : "web.compared_paths", { a, b }, 0, { rows: 5000, ms: 30000 });
    const frames = useMemo(() => placeTree(answer.rows), [answer.value]);
    const chosen = route.value.parameters.get("frame") ?? "";
    if (isOfMarks) {
        return <p class="dim">Call paths exist only for whole sessions. Marks are compared by function.</p>;
    }
    if (answer.problem) {
        return <Problem message={answer.problem} />;
    }
    return (
        <Panel title="Call paths of both: width is the time of A and B together" question="web.compared_paths" values={{ a, b }}>
            {frames.length > 0 ? (
                <Flame<TreeFrame>
                    label="Call paths compared"
                    frames={frames}
                    chosen={chosen}
                    search=""
                    onChoose={(frame) => setParameters({ frame: frame?.key ?? "" }, true)}
                    columns={[
                        { title: "Function", mono: true, cell: ({ about }) => about.name },
                        { title: "Verdict", cell: ({ about }) => <Verdict verdict={about.verdict} /> },
                        { title: "Total A", number: true, cell: ({ about }) => <SideTime row={about} what="total" side="a" /> },
                        { title: "Total B", number: true, cell: ({ about }) => <SideTime row={about} what="total" side="b" /> },
                        { title: "Self A", number: true, cell: ({ about }) => <SideTime row={about} what="self" side="a" /> },
                        { title: "Self B", number: true, cell: ({ about }) => <SideTime row={about} what="self" side="b" /> },
                    ]}
                />
            ) : (
                <p class="dim">{answer.value ? "No call path has any time." : "Loading…"}</p>
            )}
            {answer.value?.truncated ? <p class="dim">The first {count(answer.rows.length)} paths.</p> : null}
        </Panel>
    );
}

function Functions({ a, b }: { a: string; b: string }) {
    const parameters = route.value.parameters;
    const only = parameters.get("verdict") ?? "";
    const search = (parameters.get("q") ?? "").toLowerCase();
    const picked = parameters.get("function") ?? "";
    const answer = useQuestion("web.compared_functions", { a, b }, 0, { rows: 20000, ms: 30000 });
    if (answer.problem) {
        return <Problem message={answer.problem} />;
    }
    if (!answer.value) {
        return <p class="empty">Comparing…</p>;
    }
    const counts = new Map<string, number>();
    answer.rows.forEach((row) => counts.set(row.verdict, (counts.get(row.verdict) ?? 0) + 1));
    const rows = answer.rows.filter(
        (row) => (only === "" || row.verdict === only) && row.name.toLowerCase().includes(search),
    );
    const chosen = answer.rows.find((row) => String(row.row) === picked);
    return (
        <Panel title="Functions" question="web.compared_functions" values={{ a, b }}>
            <div class="tools">
                <div class="switch" role="group" aria-label="Verdicts">
                    <button type="button" aria-pressed={only === ""} onClick={() => setParameters({ verdict: "" }, true)}>
                        all {count(answer.rows.length)}
                    </button>
                    {verdicts
                        .filter((verdict) => counts.has(verdict))
                        .map((verdict) => (
                            <button
                                type="button"
                                key={verdict}
                                aria-pressed={only === verdict}
                                onClick={() => setParameters({ verdict }, true)}
                            >
                                {verdict} {count(counts.get(verdict)!)}
                            </button>
                        ))}
                </div>
                <input
                    type="search"
                    aria-label="Search functions"
                    placeholder="Search functions…  /"
                    value={parameters.get("q") ?? ""}
                    onInput={(event) => setParameters({ q: event.currentTarget.value }, true)}
                />
            </div>
            {chosen ? <Histograms key={chosen.row} {...{ a, b }} row={chosen} /> : null}
            <RowTable<Difference>
                label="Functions compared"
                rows={rows.slice(0, 300)}
                rowClass={({ verdict }) => (["inconclusive", "minor", "unmatched"].includes(verdict) ? "unclear" : "")}
                columns={[
                    { title: "Verdict", cell: (row) => <Verdict verdict={row.verdict} /> },
                    {
                        title: "Function",
                        mono: true,
                        cell: (row) => (
                            <>
                                <button
                                    type="button"
                                    class="link-button"
                                    aria-pressed={String(row.row) === picked}
                                    onClick={() => setParameters({ function: String(row.row) }, true)}
                                >
                                    {row.name}
                                </button>{" "}
                                <span class="module" title={row.module}>
                                    {fileName(row.module)}
                                </span>
                            </>
                        ),
                    },
                    { title: "Self B / A", number: true, cell: changeOf },
                    {
                        title: "95 % interval",
                        number: true,
                        cell: (row) =>
                            row.ratio_low === null ? "–" : `${change(row.ratio_low)} to ${change(row.ratio_high)}`,
                    },
                    { title: "p", number: true, cell: (row) => (row.p_adjusted === null ? "–" : row.p_adjusted.toPrecision(2)) },
                    { title: "Self A", number: true, cell: (row) => <SideTime row={row} what="self" side="a" /> },
                    { title: "Self B", number: true, cell: (row) => <SideTime row={row} what="self" side="b" /> },
                    { title: "Calls A", number: true, cell: (row) => count(row.calls_a ?? 0) },
                    { title: "Calls B", number: true, cell: (row) => count(row.calls_b ?? 0) },
                    { title: "Calls", cell: callsChange },
                ]}
            />
            {answer.rows.some((row) => row.is_self_estimate_a || row.is_self_estimate_b) ? (
                <p class="dim">~ marks estimates: times of calls that were counted without a clock, and the self time of their callers.</p>
            ) : null}
            {rows.length > 300 ? <p class="dim">The first 300 of {count(rows.length)}.</p> : null}
        </Panel>
    );
}

function Summary({ a, b }: { a: string; b: string }) {
    const answer = useQuestion("web.compared_totals", { a, b }, 0, { ms: 30000 });
    const total = answer.rows[0];
    if (!total) {
        return null;
    }
    const few = Math.min(total.sessions_a, total.sessions_b);
    return (
        <p class={`banner ${total.verdict === "slower" ? "warn" : total.verdict === "faster" ? "good" : "neutral"}`}>
            <strong>
                Total: <Verdict verdict={total.verdict} />
            </strong>{" "}
            {duration(total.compared_a)} → {duration(total.compared_b)} ({changeOf(total)}),{" "}
            {count(total.sessions_a)} and {count(total.sessions_b)} sessions.
            {few < total.needed_sessions
                ? ` Too few sessions: this needs ${total.needed_sessions} per side; ${Math.max(10, total.needed_by_functions ?? 0)} per side decide most changes.`
                : (total.needed_by_functions ?? 0) > few
                  ? ` ${counted(few, "session")} a side cannot decide any function: record ${Math.max(10, total.needed_by_functions ?? 0)}.`
                  : ""}
            {total.matched_share === null
                ? ""
                : ` Functions without names: ${percent(total.matched_share, 1)} of their time was matched by their code.`}
            {total.is_comparable === 0 ? " Functions cannot be compared: the programs are stripped; add symbols." : ""}
        </p>
    );
}

export function ComparePage() {
    useEffect(() => {
        document.title = "Compare · Sojourn";
    }, []);
    const parameters = route.value.parameters;
    const a = setOnDevice(parameters.get("a") ?? "");
    const b = setOnDevice(parameters.get("b") ?? "");
    return (
        <div class="page">
            <h1>Compare</h1>
            <SetFields titles={["A, before", "B, after"]} action="Compare" clears={["function", "frame", "side"]} />
            <DeviceBar />
            {a && b ? (
                <>
                    <Summary key={`s ${a} ${b}`} a={a} b={b} />
                    <Functions key={`f ${a} ${b}`} a={a} b={b} />
                    <DiffFlame key={`d ${a} ${b}`} a={a} b={b} />
                    <CoverageDifference key={`c ${a} ${b}`} a={a} b={b} />
                </>
            ) : (
                <SetHelp>Choose two sessions, or two sets of sessions:</SetHelp>
            )}
            <Engine />
        </div>
    );
}
