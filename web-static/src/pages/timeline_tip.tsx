// The description of the call under the pointer: a tooltip beside the pointer, and a line for
// screen readers. Both read the signal `hovered`, so that hovering does not draw the canvas again.
import type { Signal } from "@preact/signals";
import { Fragment } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { useQuestion } from "../answers";
import type { RowOf } from "../api";
import type { Window } from "../canvas/scale";
import { isUntimed } from "../estimates";
import { counted, duration, estimated } from "../format";
import { Time } from "../widgets/small";
import { type Value, valueName } from "./call_details";
import { type CallBar, type Track, trackName } from "./timeline_data";
import type { Hit } from "./timeline_draw";

export interface Hovered {
    hit: Hit;
    x: number; // place of the pointer in the window of the browser
    y: number;
}

const REST_MS = 120; // the server is asked about a call when the pointer rests on it
const CALLERS_MAX = 8;
const VALUES_MAX = 8;
type Costs = RowOf<"web.call_costs">;

function describe(track: Track, bar: CallBar | null): string {
    const where = trackName(track.stream);
    return bar ? `${where}: ${describeBar(bar)}` : `${where}: no call here`;
}

function tookOf(bar: CallBar): string {
    return `${estimated(bar.right - bar.left, isUntimed(bar.flags))}${bar.isOpen ? ", open" : ""}`;
}

function describeBar(bar: CallBar): string {
    if (!bar.call) {
        return `${bar.name} was open at the start of ${counted(bar.count ?? 1, "step")}; zoom in for its calls`;
    }
    if (bar.count) {
        return `${counted(bar.count, "call")} at depth ${bar.depth} within ${tookOf(bar)}, the first of ${bar.name}`;
    }
    return `${bar.name}, ${tookOf(bar)}, at ${estimated(bar.left, isUntimed(bar.flags))}, depth ${bar.depth}${bar.folded > 1 ? `, ${counted(bar.folded, "level")} of recursion folded` : ""}`;
}

// The line below the canvas: the call under the pointer, else the visible window.
export function HoveredLine({ hovered, view }: { hovered: Signal<Hovered | null>; view: Window }) {
    const seen = hovered.value;
    return (
        <p class="dim" role="status">
            {seen
                ? describe(seen.hit.track, seen.hit.bar)
                : `${duration(view.from)} to ${duration(view.to)}, ${duration(view.to - view.from)}`}
        </p>
    );
}

// Returns the bars that enclose a bar on its track, innermost first.
function callersOf(track: Track, bar: CallBar): CallBar[] {
    const found: CallBar[] = [];
    for (const other of track.bars) {
        if (other.row < bar.row && other.left <= bar.left && other.right >= bar.right) {
            found[other.row] = other;
        }
    }
    return found.filter(Boolean).reverse();
}

// Returns the call once the pointer has rested on it, else "".
function useRested(call: string): string {
    const [rested, setRested] = useState("");
    useEffect(() => {
        const timer = setTimeout(() => setRested(call), REST_MS);
        return () => clearTimeout(timer);
    }, [call]);
    return rested === call ? call : "";
}

function Costs({ bar, costs }: { bar: CallBar; costs: Costs | undefined }) {
    return (
        <>
            <dt>Duration</dt>
            <dd>{tookOf(bar)}</dd>
            {bar.self === null ? null : (
                <>
                    <dt>Self</dt>
                    <dd>
                        <Time ns={bar.self} isEstimate={bar.isSelfEstimate} />
                    </dd>
                </>
            )}
            {costs?.cpu_ns == null ? null : (
                <>
                    <dt>CPU time</dt>
                    <dd>
                        {duration(costs.cpu_ns)}, {duration(costs.cpu_self_ns)} of it itself
                    </dd>
                </>
            )}
            {costs?.cpu_ns == null || costs.duration_ns === null ? null : (
                <>
                    <dt>Waited</dt>
                    <dd>{duration(Math.max(0, costs.duration_ns - costs.cpu_ns))}</dd>
                </>
            )}
        </>
    );
}

function Values({ values }: { values: readonly Value[] }) {
    return (
        <>
            {values.slice(0, VALUES_MAX).map((value) => (
                <Fragment key={`${value.position} ${value.kind} ${value.rule}`}>
                    <dt>{valueName(value)}</dt>
                    <dd class="mono">{value.value === null ? "–" : String(value.value)}</dd>
                </Fragment>
            ))}
            {values.length > VALUES_MAX ? <dd>{counted(values.length - VALUES_MAX, "more value")}</dd> : null}
        </>
    );
}

function Callers({ callers }: { callers: readonly CallBar[] }) {
    const left = callers.length - CALLERS_MAX;
    return callers.length === 0 ? null : (
        <>
            <dt>Called by</dt>
            <dd class="mono">
                {callers.slice(0, CALLERS_MAX).map((caller) => (
                    <div key={caller.row}>{caller.label ?? caller.name}</div>
                ))}
                {left > 0 ? <div class="dim">{counted(left, "more caller")}</div> : null}
            </dd>
        </>
    );
}

// Returns where the tooltip lies: on that side of the pointer with more space.
function placeOf({ x, y }: Hovered): Record<string, string> {
    return {
        [x < innerWidth / 2 ? "left" : "right"]: `${(x < innerWidth / 2 ? x : innerWidth - x) + 14}px`,
        [y < innerHeight / 2 ? "top" : "bottom"]: `${(y < innerHeight / 2 ? y : innerHeight - y) + 14}px`,
    };
}

function BarTip({ hovered, bar }: { hovered: Hovered; bar: CallBar }) {
    const { track } = hovered.hit;
    const call = useRested(bar.count ? "" : bar.call);
    const session = track.stream.session_id;
    const costs = useQuestion(call ? "web.call_costs" : "", { call });
    const values = useQuestion(call ? "web.values_of_call" : "", { session, function: bar.function, call });
    const callers = useMemo(() => callersOf(track, bar), [bar]);
    return (
        <div class="tip card" role="tooltip" style={placeOf(hovered)}>
            <strong class="mono">{bar.label ?? bar.name}</strong>
            {bar.count ? (
                <p>{describeBar(bar)}</p>
            ) : (
                <p class="dim">
                    {trackName(track.stream)}, depth {bar.row}, at <Time ns={bar.left} isEstimate={isUntimed(bar.flags)} />
                </p>
            )}
            <dl class="facts">
                {bar.count ? null : <Costs bar={bar} costs={costs.isCurrent ? costs.rows[0] : undefined} />}
                <Values values={values.isCurrent ? values.rows : []} />
                <Callers callers={callers} />
            </dl>
            {bar.striped ? <p class="warn-text">▲ not exact</p> : null}
        </div>
    );
}

export function Tip({ hovered }: { hovered: Signal<Hovered | null> }) {
    const seen = hovered.value;
    return seen?.hit.bar ? <BarTip hovered={seen} bar={seen.hit.bar} /> : null;
}
