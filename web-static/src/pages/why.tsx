// Compares a slow call with a typical call of the same function, callee by callee.
import { useQuestion } from "../answers";
import type { Overview, RowOf } from "../api";
import { isDoubtful, isUntimed } from "../estimates";
import { count, counted, duration, estimated } from "../format";
import { route } from "../router";
import { Panel, RowTable } from "../widgets/panel";
import { Problem, Time } from "../widgets/small";
import { callAddress } from "./call_details";
import { Differences } from "./why_differs";

type Call = RowOf<"web.typical_call" | "web.slow_call">;

type Part = RowOf<"web.subtree">;

interface Pair {
    name: string;
    level: number;
    slow: Part | null;
    typical: Part | null;
    difference: number;
}

// Pairs the parts of both calls by function and depth. The greatest difference in self time comes first.
function align(name: string, slow: Call, typical: Call, below: Part[], typicalBelow: Part[]): Pair[] {
    const pairs = new Map<string, Pair>();
    const put = (part: Part, side: "slow" | "typical") => {
        const key = `${part.function_id} ${part.level}`;
        const pair = pairs.get(key) ?? {
            name: part.name,
            level: part.level,
            slow: null,
            typical: null,
            difference: 0,
        };
        pair[side] = part;
        pair.difference = (pair.slow?.self_ns ?? 0) - (pair.typical?.self_ns ?? 0);
        pairs.set(key, pair);
    };
    const itself = (call: Call): Part => ({
        function_id: call.function_id,
        name,
        level: 0,
        calls: 1,
        self_ns: call.self_ns,
        longest_ns: call.duration_ns,
        is_estimate: Number(isUntimed(call.flags)),
        is_self_estimate: call.is_self_estimate,
    });
    [itself(slow), ...below].forEach((part) => put(part, "slow"));
    [itself(typical), ...typicalBelow].forEach((part) => put(part, "typical"));
    return [...pairs.values()].sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference));
}

function signed(ns: number, isEstimate: boolean | number): string {
    return ns === 0 ? estimated(0, isEstimate) : `${isEstimate ? "~" : ""}${ns > 0 ? "+" : "−"}${duration(Math.abs(ns))}`;
}

function hasEstimate({ slow, typical }: Pair): boolean {
    return Boolean(slow?.is_self_estimate || typical?.is_self_estimate);
}

function time(part: Part | null, column: "self_ns" | "longest_ns") {
    return <Time ns={part?.[column]} isEstimate={(column === "self_ns" ? part?.is_self_estimate : part?.is_estimate) ?? false} />;
}

export function WhyView({ session }: { session: Overview }) {
    const call = route.value.parameters.get("call") ?? "";
    const asked = /^[0-9]{1,19}$/.test(call) ? call : "";
    const slow = useQuestion(asked ? "web.slow_call" : "", { call: asked });
    const typical = useQuestion(asked ? "web.typical_call" : "", { call: asked }, 0, { ms: 20000 });
    const other = typical.rows[0];
    const below = useQuestion(asked ? "web.subtree" : "", { call: asked }, 0, { rows: 20000, ms: 20000 });
    const otherBelow = useQuestion(
        other ? "web.subtree" : "",
        { call: String(other?.call_id ?? "") },
        0,
        { rows: 20000, ms: 20000 },
    );
    const known = slow.rows[0];
    const problem = slow.problem || typical.problem || below.problem || otherBelow.problem;
    if (problem) {
        return <Problem message={problem} />;
    }
    if (!asked || (slow.value && !known)) {
        return <p class="empty">Choose a call on the overview or on the timeline.</p>;
    }
    if (!known || !typical.value || !below.value) {
        return <p class="empty">Loading…</p>;
    }
    if (!other) {
        return <p class="empty">No other call of {known.name} has a duration close to the median.</p>;
    }
    if (!otherBelow.value) {
        return <p class="empty">Loading…</p>;
    }
    const pairs = align(known.name, known, other, below.rows, otherBelow.rows);
    const more = (known.duration_ns ?? 0) - (other.duration_ns ?? 0);
    const took = (call: Call) => estimated(call.duration_ns, isUntimed(call.flags));
    const top = pairs[0];
    return (
        <section class="lists" aria-label="Why slow">
            <Panel title={`Why did ${known.name} take ${took(known)}?`} question="web.subtree" values={{ call: asked }}>
                <p>
                    <a href={callAddress(session.id, known)}>This call</a> took {took(known)};{" "}
                    <a href={callAddress(session.id, other)}>a typical one</a> took {took(other)}:{" "}
                    {signed(more, isUntimed(known.flags | other.flags))}.{" "}
                    {top && top.difference !== 0 ? (
                        <>
                            The largest single difference, {signed(top.difference, hasEstimate(top))}, is self time of{" "}
                            <span class="mono">{top.name}</span>
                            {top.level === 0 ? " itself" : ` ${count(top.level)} below it`}
                            {top.slow?.calls === top.typical?.calls
                                ? ", called as often in both."
                                : `: ${counted(top.slow?.calls ?? 0, "call")} instead of ${count(top.typical?.calls ?? 0)}.`}
                        </>
                    ) : null}
                </p>
                {isDoubtful(known.flags) ? <p class="warn-text">▲ The time of this call is not exact.</p> : null}
                <RowTable<Pair>
                    label="Callees of both calls, greatest difference first"
                    rows={pairs.slice(0, 200)}
                    columns={[
                        { title: "Function", mono: true, cell: (row) => row.name },
                        { title: "Below", number: true, cell: (row) => row.level },
                        { title: "Difference", number: true, cell: (row) => <strong>{signed(row.difference, hasEstimate(row))}</strong> },
                        { title: "Self, this", number: true, cell: (row) => time(row.slow, "self_ns") },
                        { title: "Self, typical", number: true, cell: (row) => time(row.typical, "self_ns") },
                        { title: "Calls, this", number: true, cell: (row) => count(row.slow?.calls ?? 0) },
                        { title: "Calls, typical", number: true, cell: (row) => count(row.typical?.calls ?? 0) },
                        { title: "Longest, this", number: true, cell: (row) => time(row.slow, "longest_ns") },
                    ]}
                />
                {pairs.length > 200 ? <p class="dim">Only the first 200 of {count(pairs.length)} rows are shown.</p> : null}
            </Panel>
            <Differences session={session.id} call={asked} typical={String(other.call_id)} />
        </section>
    );
}
