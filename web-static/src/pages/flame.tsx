// Flame graphs of a session: top-down, bottom-up, and around one function.
import { useMemo } from "preact/hooks";
import { type SqlRows, useSql } from "../answers";
import type { Overview } from "../api";
import { estimateSql, selfEstimateSql } from "../estimates";
import { compact, count, counted, estimated, estimateHint, percent } from "../format";
import { route, setParameters } from "../router";
import { Flame } from "../widgets/flame";
import { Panel } from "../widgets/panel";
import { Chip, Problem, Time } from "../widgets/small";
import { addressOf, isPart, PART_MS, selection, valuesOf } from "../selection";
import { TopDown, TreeFlame } from "./flame_tree";
import { selectedTreeSql } from "./selected_tree";
import { type Chain, type ChainFrame, framesOf } from "./chains";

// A chain is cut after CHAIN_LINKS functions. At most CHAINS chains are shown. The page says what
// was cut.
const CHAIN_LINKS = 16;
const CHAINS = 1200;
const CALLEE_LEVELS = 40;

// The call paths with the most self time, each with its callers.
const BOTTOM_UP_SQL = `WITH RECURSIVE leaf AS (SELECT path_id, self_ns, calls FROM call_paths
    WHERE session_id = :session AND self_ns > 0 ORDER BY self_ns DESC LIMIT ${CHAINS}),
up(leaf, path_id, step, self_ns, calls) AS (SELECT path_id, path_id, 0, self_ns, calls FROM leaf
    UNION ALL SELECT up.leaf, p.parent_path_id, step + 1, up.self_ns, up.calls FROM up
    JOIN call_paths p ON p.path_id = up.path_id WHERE p.parent_path_id IS NOT NULL AND step < ${CHAIN_LINKS - 1})
SELECT up.leaf, up.step, up.self_ns AS weight, up.calls, p.function_id, f.name, p.parent_path_id IS NOT NULL AS has_caller,
       ${selfEstimateSql("p.function_id", ":session", "is_estimate")} FROM up
JOIN call_paths p ON p.path_id = up.path_id JOIN functions f USING (function_id) ORDER BY up.leaf, up.step`;

// All paths of one function, each with its callers. A recursive path is skipped, because another
// path contains its time.
const CALLERS_SQL = `WITH RECURSIVE leaf AS (SELECT path_id, total_ns, calls FROM call_paths
    WHERE session_id = :session AND function_id = :function AND recursive = 0
    ORDER BY total_ns DESC LIMIT ${CHAINS}),
up(leaf, path_id, step, weight, calls) AS (SELECT path_id, path_id, 0, total_ns, calls FROM leaf
    UNION ALL SELECT up.leaf, p.parent_path_id, step + 1, up.weight, up.calls FROM up
    JOIN call_paths p ON p.path_id = up.path_id WHERE p.parent_path_id IS NOT NULL AND step < ${CHAIN_LINKS - 1})
SELECT up.leaf, up.step, up.weight, up.calls, p.function_id, f.name, p.parent_path_id IS NOT NULL AS has_caller, ${estimateSql("p.function_id")} FROM up
JOIN call_paths p ON p.path_id = up.path_id JOIN functions f USING (function_id) ORDER BY up.leaf, up.step`;

const CALLEES_SQL = `WITH RECURSIVE down(path_id, step) AS (SELECT path_id, 0 FROM call_paths
    WHERE session_id = :session AND function_id = :function AND recursive = 0
    UNION ALL SELECT p.path_id, step + 1 FROM down JOIN call_paths p ON p.parent_path_id = down.path_id
    WHERE step < ${CALLEE_LEVELS - 1})
SELECT d.path_id, p.parent_path_id, d.step,
       d.step = ${CALLEE_LEVELS - 1} AND EXISTS (SELECT 1 FROM call_paths c WHERE c.parent_path_id = d.path_id) AS has_hidden_callees, p.self_ns, p.total_ns, p.calls, p.function_id, f.name,
       ${estimateSql("p.function_id")} FROM down d
JOIN call_paths p USING (path_id) JOIN functions f USING (function_id) ORDER BY d.step, p.total_ns DESC`;

interface PathRow {
    path_id: number;
    parent_path_id: number | null;
    function_id: number;
    name: string;
    self_ns: number;
    calls: number;
    is_self_estimate: number;
}

interface UpRow {
    leaf: number;
    step: number;
    weight: number;
    calls: number;
    function_id: number;
    name: string;
    is_estimate: number; // true if `weight` is an estimate
    has_caller: number;
}

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

interface DownRow {
    path_id: number;
    parent_path_id: number | null;
    step: number;
    self_ns: number;
    total_ns: number;
    calls: number;
    function_id: number;
    name: string;
    is_estimate: number;
    has_hidden_callees: number;
}

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
    const answer = useSql<PathRow>(selectedTreeSql(chosen), valuesOf(session.id, chosen), changes, limits);
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
    const answer = useSql<UpRow>(BOTTOM_UP_SQL, { session: session.id }, changes, { rows: 20000 });
    const chains = useMemo(() => chainsUp(answer.rows), [answer.value]);
    const totals = useSql<{ self_ns: number }>(
        "SELECT sum(self_ns) AS self_ns FROM function_stats WHERE session_id = :session",
        { session: session.id },
        changes,
    );
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

interface StatRow {
    name: string;
    calls: number;
    total_ns: number;
    self_ns: number;
    untimed_calls: number | null;
    error_ns: number | null; // standard error of total_ns
    is_self_estimate: number;
}

const STAT_SQL = `SELECT f.name, s.calls, s.total_ns, s.self_ns, s.untimed_calls, s.error_ns,
       ${selfEstimateSql(":function")} FROM function_stats s
JOIN functions f USING (function_id) WHERE s.session_id = :session AND s.function_id = :function`;

const TOP_SQL = `SELECT function_id FROM function_stats WHERE session_id = :session ORDER BY self_ns DESC LIMIT 1`;

function Around({ session, changes, search }: ViewProperties) {
    const asked = route.value.parameters.get("function") ?? "";
    const top = useSql<{ function_id: number }>(asked ? "" : TOP_SQL, { session: session.id }, changes);
    const fn = /^[0-9]{1,15}$/.test(asked) ? asked : String(top.rows[0]?.function_id ?? "");
    const values = { session: session.id, function: fn };
    const isWhole = !isPart(selection.value);
    const about = useSql<StatRow>(fn ? STAT_SQL : "", values, changes);
    const up = useSql<UpRow>(fn && isWhole ? CALLERS_SQL : "", values, changes, { rows: 20000 });
    const down = useSql<DownRow>(fn && isWhole ? CALLEES_SQL : "", values, changes, { rows: 20000 });
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
            <Panel title="Callers, the function on top" sql={CALLERS_SQL} values={values}>
                <ChainFlame
                    {...{ session, search }}
                    answer={up}
                    chains={callers}
                    label="The function above its callers"
                    unit="total"
                />
            </Panel>
            <Panel title="Callees" sql={CALLEES_SQL} values={values}>
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
