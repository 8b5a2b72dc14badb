// Call paths of a session or a selection as a flame graph, callers above callees. The user can hide
// functions and fold recursion.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { type SqlRows, useKept, useQuestion } from "../answers";
import type { Overview, RowOf } from "../api";
import { count, counted, estimated, percent } from "../format";
import { route, setParameters } from "../router";
import { addressOf, PART_MS, type Selection, selection, valuesOf } from "../selection";
import { Flame, type Frame } from "../widgets/flame";
import { Chip, Problem, Time } from "../widgets/small";
import { type Chain, type ChainFrame, framesOf } from "./chains";

const FRAMES = { rows: 20000, ms: PART_MS };

interface Around {
    function: string;
    side: "callers" | "callees";
}

export type FlameRow = RowOf<"web.flame">;

interface PathFrame extends Frame {
    about: FlameRow;
}

// Returns the total time of the roots.
export function widthOf(rows: readonly FlameRow[]): number {
    return rows.reduce((sum, row) => sum + (row.depth === 0 ? row.total_ns : 0), 0);
}

export function framesOfPaths(rows: readonly FlameRow[], whole: number): PathFrame[] {
    return rows.map((row) => ({
        key: String(row.path_id),
        parent: row.parent_path_id === null ? "" : String(row.parent_path_id),
        left: row.left_ns,
        right: row.left_ns + row.total_ns,
        row: row.depth,
        name: row.name,
        hint: `${row.name}: ${estimated(row.total_ns, row.is_estimate)}, ${percent(row.total_ns, whole)} of all, ${counted(row.calls, "call")}${row.open_calls > 0 ? ` (${count(row.open_calls)} open)` : ""}, ${estimated(row.self_ns, row.is_self_estimate)} self`,
        about: row,
    }));
}

interface TreeFlameProperties {
    session: Overview;
    changes: number;
    search: string;
    chosen: Selection;
    around?: Around;
    label: string;
}

// Loads the frames. If the user has zoomed to a frame, also loads the narrow frames below it.
function useFrames({ session, changes, chosen, around }: TreeFlameProperties) {
    const [, left, right] = (route.value.parameters.get("frame") ?? "").split("-");
    const values = { ...valuesOf(session.id, chosen), ...(around ? { [around.side]: around.function } : {}) };
    const everything = { left: 0, right: Number.MAX_SAFE_INTEGER, whole: 0 };
    const zoomed = { left: Number(left) || 0, right: Number(right), whole: Number(right) - (Number(left) || 0) };
    const isZoomed = Number(right) > 0;
    const all = useQuestion("web.flame", { ...values, ...everything }, changes, FRAMES);
    const part = useQuestion(isZoomed ? "web.flame" : "", { ...values, ...zoomed }, changes, FRAMES);
    const zoomedRows = useKept(part.value ? part.rows : null, JSON.stringify(values));
    const more = isZoomed && all.value ? zoomedRows : null;
    const frames = useMemo(() => {
        const rows = new Map<number, FlameRow>();
        [...all.rows, ...(more ?? [])].forEach((row) => rows.set(row.path_id, row));
        return framesOfPaths([...rows.values()], widthOf(all.rows));
    }, [all.rows, more]);
    return { all, frames };
}

function Frames({ answer, children }: { answer: SqlRows<FlameRow>; children: ComponentChildren }) {
    if (answer.problem || !answer.value) {
        return answer.problem ? <Problem message={answer.problem} /> : <p class="empty">Loading…</p>;
    }
    if (answer.rows.length === 0) {
        return <p class="empty">No selected call has ended.</p>;
    }
    return (
        <>
            {answer.value.truncated ? (
                <p class="warn-text">Only the first {count(answer.rows.length)} frames are shown.</p>
            ) : null}
            {children}
        </>
    );
}

// Draws call paths. A click on a frame zooms to it and loads the narrow frames that were left out.
export function TreeFlame(properties: TreeFlameProperties) {
    const { session, search, label } = properties;
    const { all, frames } = useFrames(properties);
    const [path] = (route.value.parameters.get("frame") ?? "").split("-");
    return (
        <Frames answer={all}>
            <Flame
                label={label}
                frames={frames}
                chosen={path ?? ""}
                search={search}
                onChoose={(frame) =>
                    setParameters({ frame: frame ? `${frame.key}-${frame.left}-${frame.right}` : "" })
                }
                columns={[
                    { title: "Function", mono: true, cell: ({ about }) => about.name },
                    { title: "Depth", number: true, cell: ({ about }) => about.depth },
                    { title: "Total", number: true, cell: ({ about }) => <Time ns={about.total_ns} isEstimate={about.is_estimate} /> },
                    { title: "Self", number: true, cell: ({ about }) => <Time ns={about.self_ns} isEstimate={about.is_self_estimate} /> },
                    { title: "Calls", number: true, cell: ({ about }) => count(about.calls) },
                    {
                        title: "",
                        cell: ({ about }) =>
                            properties.around ? (
                                ""
                            ) : (
                                <>
                                    <a href={addressOf(session.id, { view: "tree", path: about.path_id })}>call tree</a>{" "}
                                    <HideButton fn={about.function_id} name={about.name} />
                                </>
                            ),
                    },
                ]}
            />
        </Frames>
    );
}

// Returns the ids of the functions that the user has hidden. The time of a hidden function counts
// for its caller.
function hiddenFunctions(): string[] {
    return (route.value.parameters.get("hide") ?? "").split(",").filter((id) => /^[0-9]{1,15}$/.test(id));
}

function HideButton({ fn, name }: { fn: number; name: string }) {
    const hide = () => setParameters({ hide: [...hiddenFunctions(), fn].join(","), frame: "" });
    return (
        <button type="button" class="link-button" aria-label={`Hide ${name}`} onClick={hide}>
            hide
        </button>
    );
}

// Makes one chain for each path, without `hidden` functions and, if `folds`, without recursion. Its
// weight is the time that no path below it has.
export function transformedChains(rows: readonly FlameRow[], hidden: ReadonlySet<number>, folds: boolean): Chain[] {
    const below = new Map<number, number>();
    for (const row of rows) {
        if (row.parent_path_id !== null) {
            below.set(row.parent_path_id, (below.get(row.parent_path_id) ?? 0) + row.total_ns);
        }
    }
    const chains = new Map<number, Chain["links"]>();
    const made: Chain[] = [];
    for (const row of [...rows].sort((a, b) => a.depth - b.depth)) {
        let links = row.parent_path_id === null ? [] : (chains.get(row.parent_path_id) ?? []);
        if (!hidden.has(row.function_id)) {
            const before = folds ? links.findIndex((link) => link.id === row.function_id) : -1;
            links = before >= 0 ? links.slice(0, before + 1) : [...links, { id: row.function_id, name: row.name, isEstimate: row.is_estimate !== 0 }];
        }
        chains.set(row.path_id, links);
        made.push({ links, weight: Math.max(0, row.total_ns - (below.get(row.path_id) ?? 0)), calls: row.calls, isCut: false });
    }
    return made;
}

function TransformedFlame(properties: TreeFlameProperties & { hidden: string[]; folds: boolean }) {
    const { session, search, label, hidden, folds } = properties;
    const { all } = useFrames(properties);
    const frames = useMemo(() => {
        const whole = widthOf(all.rows);
        const chains = transformedChains(all.rows, new Set(hidden.map(Number)), folds);
        return framesOf(chains, (node) => `${node.name}: ${estimated(node.weight, node.isEstimate)}, ${percent(node.weight, whole)} of all`);
    }, [all.value, hidden.join(), folds]);
    return (
        <Frames answer={all}>
            <Flame<ChainFrame>
                label={label}
                frames={frames}
                chosen={route.value.parameters.get("frame") ?? ""}
                search={search}
                onChoose={(frame) => setParameters({ frame: frame?.key ?? "" })}
                columns={[
                    { title: "Function", mono: true, cell: (frame) => frame.name },
                    { title: "Depth", number: true, cell: (frame) => frame.row },
                    { title: "Total", number: true, cell: (frame) => <Time ns={frame.weight} isEstimate={frame.isEstimate} /> },
                    {
                        title: "",
                        cell: (frame) => (
                            <>
                                <a href={addressOf(session.id, { view: "tree", function: frame.function })}>call tree</a>{" "}
                                <HideButton fn={frame.function} name={frame.name} />
                            </>
                        ),
                    },
                ]}
            />
        </Frames>
    );
}

function Transforms({ session, hidden, folds }: { session: string; hidden: string[]; folds: boolean }) {
    const ids = `,${hidden.join(",")},`;
    const names = useQuestion(hidden.length > 0 ? "web.function_names" : "", { session, ids });
    return (
        <p class="chips" role="group" aria-label="Transforms">
            {hidden.map((id) => (
                <Chip
                    key={id}
                    label={`Hidden: ${names.rows.find((row) => String(row.function_id) === id)?.name ?? id}`}
                    onRemove={() =>
                        setParameters({ hide: hidden.filter((other) => other !== id).join(","), frame: "" })
                    }
                />
            ))}
            {folds ? (
                <Chip label="Recursion folded" onRemove={() => setParameters({ fold: "", frame: "" })} />
            ) : (
                <button type="button" class="quiet" onClick={() => setParameters({ fold: "1", frame: "" })}>
                    Fold recursion
                </button>
            )}
        </p>
    );
}

export function TopDown({ session, changes, search }: { session: Overview; changes: number; search: string }) {
    const hidden = hiddenFunctions();
    const folds = route.value.parameters.get("fold") === "1";
    const view = { session, changes, search, chosen: selection.value, label: "Call paths, callers above callees" };
    return (
        <>
            <Transforms session={session.id} hidden={hidden} folds={folds} />
            {folds || hidden.length > 0 ? <TransformedFlame {...view} {...{ hidden, folds }} /> : <TreeFlame {...view} />}
        </>
    );
}
