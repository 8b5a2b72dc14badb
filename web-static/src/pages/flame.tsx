// Flame graphs of a session: top-down, bottom-up, and around one function.
import { useMemo } from "preact/hooks";
import { type SqlRows, useQuestion } from "../answers";
import type { Overview, RowOf } from "../api";
import { compact, count, counted, estimated, estimateHint, percent } from "../format";
import { route, setParameters } from "../router";
import { Flame } from "../widgets/flame";
import { Panel } from "../widgets/panel";
import { Chip, Problem, Time } from "../widgets/small";
import { addressOf, isPart, PART_MS, selection, valuesOf } from "../selection";
import { TopDown, TreeFlame } from "./flame_tree";
import { type Chain, type ChainFrame, framesOf } from "./chains";

// A chain is cut after CHAIN_LINKS functions. At most CHAINS chains are shown. The page says what
// was cut.
const CHAIN_LINKS = 16;
const CHAINS = 1200;

type PathRow = RowOf<"web.call_tree">;

type UpRow = RowOf<"web.paths_to_function">;

// Makes one chain for each leaf: from the leaf's function up to its callers. Its weight is the
// leaf's time.
function chainsUp(rows: readonly UpRow[]): Chain[] {
    const chains = new Map<number, Chain>();
    for (const row of rows) {
        const chain = chains.get(row.leaf) ?? { links: [], weight: row.weight, calls: row.calls, isCut: false };
        chain.isCut = row.has_caller !== 0; // the last row of a chain decides: if it has a caller, the chain was cut
        chain.links.push({ id: row.function_id, name: row.name, isEstimate: chain.links[0]?.isEstimate ?? row.is_estimate !== 0 });
        chains.set(row.leaf, chain);
    }
    return [...chains.values()];
}

type DownRow = RowOf<"web.paths_from_function">;

// Makes one chain for each path, from the chosen function down to the path's own. Its weight is the
// path's self time.
function chainsDown(rows: readonly DownRow[]): Chain[] {
    const links = new Map<number, Chain["links"]>();
    return rows.map((row) => {
        const above = row.step === 0 ? [] : (links.get(row.parent_path_id!) ?? []);
        const chain = [...above, { id: row.function_id, name: row.name, isEstimate: row.is_estimate !== 0 }];
        links.set(row.path_id, chain);
        return { links: chain, weight: row.self_ns, calls: row.calls, isCut: row.has_hidden_callees !== 0 };
    });
}

// Says how many chains were cut or left out.
function Cut({ chains }: { chains: readonly Chain[] }) {
    const cut = chains.filter((chain) => chain.isCut).length;
    const longest = chains.reduce((most, chain) => Math.max(most, chain.links.length), 0);
    return (
        <>
            {cut > 0 ? (
                <p class="warn-text">
                    {counted(cut, "path")} {cut === 1 ? "continues" : "continue"} below the {longest} levels that are shown.
                </p>
            ) : null}
            {chains.length === CHAINS ? <p class="warn-text">Only the {count(CHAINS)} paths with the most time are shown.</p> : null}
        </>
    );
}

function ChainFlame({ session, answer, chains, label, search, unit }: {
    session: Overview;
    answer: SqlRows<unknown>;
    chains: Chain[];
    label: string;
    search: string;
    unit: string;
}) {
    const chosen = route.value.parameters.get("frame") ?? "";
    const whole = chains.reduce((sum, chain) => sum + chain.weight, 0);
    const frames = useMemo(
        () => framesOf(chains, (node) => `${node.name}: ${estimated(node.weight, node.isEstimate)} ${unit}, ${percent(node.weight, whole)}`),
        [answer.value],
    );
    if (!answer.value) {
        return answer.problem ? <Problem message={answer.problem} /> : <p class="empty">Loading…</p>;
    }
    if (frames.length === 0) {
        return <p class="dim">None.</p>;
    }
    return (
        <>
            <Cut chains={chains} />
            <Flame<ChainFrame>
                label={label}
                frames={frames}
                chosen={chosen}
                search={search}
                onChoose={(frame) => setParameters({ frame: frame?.key ?? "" })}
                columns={[
                    {
                        title: "Function",
                        mono: true,
                        cell: (frame) => (
                            <a href={addressOf(session.id, { view: "flame", mode: "around", function: frame.function })}>
                                {frame.name}
                            </a>
                        ),
                    },
                    { title: "Level", number: true, cell: (frame) => frame.row },
                    { title: unit === "self" ? "Self" : "Time", number: true, cell: (frame) => <Time ns={frame.weight} isEstimate={frame.isEstimate} /> },
                    { title: "Share", number: true, cell: (frame) => percent(frame.weight, whole) },
                ]}
            />
        </>
    );
}

// Makes one chain for each path of a selection, from its function up to its callers.
function chainsOfPaths(rows: readonly PathRow[]): Chain[] {
    const byId = new Map(rows.map((row) => [row.path_id, row]));
    return rows
        .filter((row) => row.self_ns > 0)
        .map((leaf) => {
            const links = [];
            let at: PathRow | undefined = leaf;
            for (let step = 0; at && step < CHAIN_LINKS; step++) {
                links.push({ id: at.function_id, name: at.name, isEstimate: leaf.is_self_estimate !== 0 });
                at = at.parent_path_id === null ? undefined : byId.get(at.parent_path_id);
            }
            return { links, weight: leaf.self_ns, calls: leaf.calls, isCut: at !== undefined };
        });
}

function SelectedBottomUp({ session, changes, search }: ViewProperties) {
    const chosen = selection.value;
    const limits = { rows: 20000, ms: PART_MS };
    const answer = useQuestion("web.call_tree", valuesOf(session.id, chosen), changes, limits);
    const chains = useMemo(() => chainsOfPaths(answer.rows), [answer.value]);
    return (
        <>
            <p class="dim">
                Functions by self time in the selection, with their callers below.
                {answer.value?.truncated ? " Only the first 20,000 call paths are counted." : ""}
            </p>
            <ChainFlame {...{ session, answer, chains, search }} label="Functions above their callers" unit="self" />
        </>
    );
}

function BottomUp({ session, changes, search }: ViewProperties) {
    const answer = useQuestion("web.paths_by_self_time", { session: session.id }, changes, { rows: 20000 });
    const chains = useMemo(() => chainsUp(answer.rows), [answer.value]);
    const totals = useQuestion("web.session_self_time", { session: session.id }, changes);
    const shown = chains.reduce((sum, chain) => sum + chain.weight, 0);
    return (
        <>
            <p class="dim">
                Functions by self time, with their callers below. {percent(shown, totals.rows[0]?.self_ns ?? 0)} of
                all self time is shown{answer.value?.truncated ? "; more paths are left out" : ""}.
            </p>
            <ChainFlame {...{ session, answer, chains, search }} label="Functions above their callers" unit="self" />
        </>
    );
}

function Around({ session, changes, search }: ViewProperties) {
    const asked = route.value.parameters.get("function") ?? "";
    const top = useQuestion(asked ? "" : "web.hottest_function", { session: session.id }, changes);
    const fn = /^[0-9]{1,15}$/.test(asked) ? asked : String(top.rows[0]?.function_id ?? "");
    const values = { session: session.id, function: fn };
    const isWhole = !isPart(selection.value);
    const about = useQuestion(fn ? "web.function_sums" : "", values, changes);
    const up = useQuestion(fn && isWhole ? "web.paths_to_function" : "", values, changes, { rows: 20000 });
    const down = useQuestion(fn && isWhole ? "web.paths_from_function" : "", values, changes, { rows: 20000 });
    const callers = useMemo(() => chainsUp(up.rows), [up.value]);
    const callees = useMemo(() => chainsDown(down.rows), [down.value]);
    const known = about.rows[0];
    const chip = known ? (
        <p class="chips">
            <Chip
                label={`${known.name}: ${estimated(known.total_ns, known.untimed_calls ?? 0)} total, ${estimated(known.self_ns, known.is_self_estimate)} self, ${compact(known.calls)} calls${isWhole ? "" : " of the whole session"}`}
                {...(known.is_self_estimate ? { hint: estimateHint(known.error_ns) } : {})}
                onRemove={() => setParameters({ function: "", frame: "" })}
            />
        </p>
    ) : null;
    if (fn && !isWhole) {
        const chosen = { ...selection.value, functions: "" };
        return (
            <>
                {chip}
                {(["callers", "callees"] as const).map((side) => (
                    <Panel key={side} title={side === "callers" ? "Callers, the function on top" : "Callees"}>
                        <TreeFlame
                            {...{ session, changes, search, chosen }}
                            around={{ function: fn, side }}
                            label={`The function above its ${side}`}
                        />
                    </Panel>
                ))}
            </>
        );
    }
    return (
        <>
            {chip}
            <Panel title="Callers, the function on top" question="web.paths_to_function" values={values}>
                <ChainFlame
                    {...{ session, search }}
                    answer={up}
                    chains={callers}
                    label="The function above its callers"
                    unit="total"
                />
            </Panel>
            <Panel title="Callees" question="web.paths_from_function" values={values}>
                <ChainFlame
                    {...{ session, search }}
                    answer={down}
                    chains={callees}
                    label="The function above its callees"
                    unit="total"
                />
            </Panel>
        </>
    );
}

interface ViewProperties {
    session: Overview;
    changes: number;
    search: string;
}

const modes: readonly (readonly [string, string])[] = [
    ["", "Top-down"],
    ["bottom", "Bottom-up"],
    ["around", "Around a function"],
];

export function FlameView({ session, changes }: { session: Overview; changes: number }) {
    const parameters = route.value.parameters;
    const mode = parameters.get("mode") ?? "";
    const search = parameters.get("q") ?? "";
    const view = { session, changes, search };
    const Bottom = isPart(selection.value) || selection.value.functions ? SelectedBottomUp : BottomUp;
    return (
        <section class="lists" aria-label="Flame graph">
            <div class="tools">
                <div class="switch" role="group" aria-label="Direction">
                    {modes.map(([key, title]) => (
                        <button
                            type="button"
                            key={key}
                            aria-pressed={key === mode}
                            onClick={() => setParameters({ mode: key, frame: "" })}
                        >
                            {title}
                        </button>
                    ))}
                </div>
                <input
                    type="search"
                    aria-label="Search frames"
                    placeholder="Highlight functions…  /"
                    value={search}
                    onInput={(event) => setParameters({ q: event.currentTarget.value }, true)}
                />
            </div>
            {mode === "bottom" ? <Bottom {...view} /> : mode === "around" ? <Around {...view} /> : <TopDown {...view} />}
        </section>
    );
}
