import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Overview, PathNode } from "../api";
import { compact, count, fileName, percent } from "../format";
import { route, setParameters } from "../router";
import { Bar, OpenTag, Problem, Time } from "../widgets/small";
import { type TreeColumn, TreeGrid } from "../widgets/tree_grid";
import { isPart, selection } from "../selection";
import { selectedTree } from "./selected_tree";
import { storedTree, TreeModel, type TreeRow } from "./tree_model";

function NodeName({ node }: { node: PathNode }) {
    return (
        <>
            <span class="mono" title={node.name}>
                {node.name}
            </span>
            {node.is_recursive ? (
                <span class="tag" title="this function calls itself on this path">
                    recursive
                </span>
            ) : null}
            {node.calls > 0 && node.open_calls > 0 ? <OpenTag calls={node.calls > 1 ? node.open_calls : 0} /> : null}
            {node.calls === 0 ? (
                <span class="tag" title="no call of this path has ended yet; the time is that of its callees">
                    open
                </span>
            ) : null}
            {node.untrusted > 0 ? (
                <span class="warn-text" title={`${count(node.untrusted)} calls are not exact`}>
                    ▲
                </span>
            ) : null}
            <span class="module" title={node.module}>
                {fileName(node.module)}
            </span>
        </>
    );
}

function MoreName({ row }: { row: TreeRow }) {
    return (
        <span class="link">
            {row.rest ? `${count(row.rest.paths)} more` : "show the siblings"}
        </span>
    );
}

// Each row has its own flags for estimates. The "n more" row has no flags, so it counts as an
// estimate if the session has any.
function columnsOf(sessionNs: number, hasEstimates: boolean, toggle: (row: TreeRow) => void): TreeColumn[] {
    const time = (row: TreeRow, ns: number | null | undefined) => <Time ns={ns} isEstimate={row.node?.is_estimate ?? hasEstimates} />;
    const selfTime = (row: TreeRow) => (
        <Time ns={row.node?.self_ns ?? row.rest?.self_ns} isEstimate={row.node?.is_self_estimate ?? hasEstimates} />
    );
    return [
        {
            key: "name",
            title: "Function",
            className: "name",
            cell: (row) => (
                <span class="indent" style={{ paddingLeft: `${Math.min(row.level - 1, 40) * 16}px` }}>
                    <span
                        class={`twisty ${row.node && row.node.child_count > 0 ? (row.open ? "open" : "closed") : ""}`}
                        aria-hidden="true"
                        onClick={() => toggle(row)}
                    />
                    {row.node ? <NodeName node={row.node} /> : <MoreName row={row} />}
                </span>
            ),
        },
        {
            key: "total",
            title: "Total",
            hint: "time in the calls of this path and their callees",
            className: "number share",
            cell: (row) => {
                const ns = row.node?.known_ns ?? row.rest?.known_ns;
                return ns === undefined ? null : (
                    <>
                        <Bar part={ns} whole={sessionNs} />
                        <span>{percent(ns, sessionNs)}</span>
                        <span class="value">{time(row, ns)}</span>
                    </>
                );
            },
        },
        {
            key: "self",
            title: "Self",
            hint: "time in the calls themselves, callees not counted",
            className: "number",
            cell: selfTime,
        },
        {
            key: "calls",
            title: "Calls",
            className: "number",
            cell: (row) => {
                if (row.node?.calls === 0) {
                    return <span title="no exit of this path is known: its calls are open, or the exits were lost">no end</span>;
                }
                const calls = row.node?.calls ?? row.rest?.calls;
                return calls === undefined ? null : <span title={count(calls)}>{compact(calls)}</span>;
            },
        },
        {
            key: "p50",
            title: "p50",
            hint: "half of the calls were shorter",
            className: "number",
            cell: (row) => (row.node ? time(row, row.node.p50_ns) : null),
        },
        {
            key: "p95",
            title: "p95",
            hint: "95 % of the calls were shorter",
            className: "number",
            cell: (row) => (row.node ? time(row, row.node.p95_ns) : null),
        },
    ];
}

interface Shown {
    model: TreeModel;
    of: string; // the selection, as a key
    rows: TreeRow[];
}

// Loads the call tree of the selection. When the session changes, the old rows stay visible until
// the new ones are loaded. Old rows cannot be opened. Rows of another selection are not shown.
function useTree(session: string, changes: number) {
    const chosen = selection.value;
    const of = isPart(chosen) || chosen.functions ? JSON.stringify(chosen) : "";
    const key = of ? `${of} ${changes}` : "";
    const model = useMemo(
        () => new TreeModel(key ? selectedTree(session, chosen) : storedTree(session)),
        [session, key],
    );
    const [shown, setShown] = useState<Shown | null>(null);
    const [failed, setFailed] = useState({ of: "", problem: "" });
    const latest = useRef<TreeModel | null>(null);
    latest.current = model;
    useEffect(() => () => void (latest.current = null), []);
    const isLatest = () => latest.current === model; // false if another selection is shown now
    const update = (work: Promise<unknown>) =>
        work.then(
            () => {
                if (isLatest()) {
                    setFailed({ of, problem: "" });
                    setShown({ model, of, rows: model.rows() });
                }
            },
            (failure: Error) => isLatest() && setFailed({ of, problem: failure.message }),
        );
    const isReady = shown?.model === model;
    const rows = shown?.of === of ? shown.rows : [];
    const problem = failed.of === of ? failed.problem : "";
    return { model, rows, problem, update, isLatest, isReady, sessionNs: shown?.model.sessionNs ?? 0, isSelected: key !== "" };
}

const HOT_STEPS_MAX = 60;

// Opens the callee with the most time, step by step. From the second step on, stops when that
// callee has less than half of its caller's time.
async function openHottest(model: TreeModel, start: PathNode): Promise<string> {
    let node = start;
    for (let step = 0; step < HOT_STEPS_MAX && node.child_count > 0; step++) {
        await model.open(node);
        const hottest = model.hottestChild(node.id);
        if (!hottest || (step > 0 && hottest.known_ns * 2 < node.known_ns)) {
            break;
        }
        node = hottest;
    }
    return node.id;
}

type Focus = Parameters<TreeModel["loadFocus"]>[0];

export function CallTreeView({ session, changes }: { session: Overview; changes: number }) {
    const { model, rows, problem, update, isLatest, isReady, sessionNs, isSelected } = useTree(session.id, changes);
    const [vanished, setVanished] = useState("");
    const parameters = route.value.parameters;
    const selected = parameters.get("path") ?? "";
    const wantedFunction = parameters.get("function") ?? "";
    const select = (key: string) => setParameters({ path: key, function: "" }, true);

    // If the path or function does not exist, or no longer exists, shows the whole tree and a
    // message.
    const focusOn = (target: Focus) =>
        model.loadFocus(target).catch(async (failure: Error) => {
            await model.loadRoots();
            if (isLatest()) {
                setVanished(`${failure.message}: this is the whole tree.`);
            }
            return "";
        });
    const first = useRef(changes);
    useEffect(() => {
        if (changes !== first.current) {
            first.current = changes;
            if (!isSelected) {
                void update(model.refresh()); // a selection gets a new model instead
            }
        }
    }, [model, changes]);

    useEffect(() => {
        setVanished("");
        if (wantedFunction) {
            void update(focusOn({ function: wantedFunction }).then((id) => id && isLatest() && select(id)));
        } else if (/^[0-9]{1,18}$/.test(selected)) {
            void update(focusOn({ focus: selected }));
        } else {
            void update(model.loadRoots());
        }
    }, [model]);

    const toggle = (row: TreeRow, open: boolean) => {
        if (!row.node || !isReady) {
            return;
        }
        if (open) {
            void update(model.open(row.node));
        } else {
            model.close(row.node);
            void update(Promise.resolve());
        }
    };
    const activate = (row: TreeRow) => {
        if (row.node) {
            toggle(row, !row.open);
        } else if (isReady) {
            void update(model.loadMore(row.parent)).then(() => {
                if (selected === row.key && isLatest()) {
                    const last = model.rows().filter((each) => each.parent === row.parent);
                    select(last[row.position - 1]?.key ?? row.parent);
                }
            });
        }
    };
    const hottest = (row: TreeRow) => {
        if (row.node && isReady) {
            void update(openHottest(model, row.node).then((id) => isLatest() && select(id)));
        }
    };
    return (
        <section class="fill" aria-label="Call tree">
            {problem ? <Problem message={problem} /> : null}
            {vanished ? (
                <p class="banner warn" role="status">
                    {vanished}
                </p>
            ) : null}
            <div class="tools">
                <span class="dim">
                    {isPart(selection.value) ? "Calls that began in the selection" : "All threads together"}, by time. <kbd>→</kbd> opens, <kbd>←</kbd> closes,{" "}
                    <kbd>h</kbd> follows the hottest path.
                </span>
                {parameters.get("path") ? (
                    <button
                        type="button"
                        class="quiet"
                        onClick={() => {
                            setParameters({ path: "" });
                            setVanished("");
                            void update(model.loadRoots());
                        }}
                    >
                        Whole tree
                    </button>
                ) : null}
            </div>
            <TreeGrid
                label="Call tree"
                className="tree card"
                columns={columnsOf(sessionNs, session.counts.untimed_calls > 0, (row) => toggle(row, !row.open))}
                rows={rows}
                selected={selected}
                onSelect={select}
                onToggle={toggle}
                onActivate={activate}
                onHottest={hottest}
            />
        </section>
    );
}
