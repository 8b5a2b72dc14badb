// What each stream did over time: a canvas, and the same steps as a table below it. The window is
// in the address (from, to: nanoseconds); the server merges steps to one a pixel.
import { useEffect, useRef, useState } from "preact/hooks";
import { api, type GapRow, type Overview, type TimelineStep } from "../api";
import { compact, count, duration } from "../format";
import { route, setParameters } from "../router";
import { Problem } from "../widgets/small";
import { drawTimeline, streamName, TRACK_HEIGHT, trackOf, type Window } from "./timeline_canvas";

const TWIN_ROWS = 200;
const NARROWEST_NS = 100;

interface Loaded {
    steps: TimelineStep[];
    gaps: GapRow[];
}

function describe(step: TimelineStep): string {
    const merged = step.steps > 1 ? `, ${count(step.steps)} steps in one` : "";
    return (
        `${streamName(step)}: ${step.function ?? "no call open"} at ${duration(step.start_ns)}, ` +
        `${count(step.calls)} calls in ${duration(step.end_ns - step.start_ns)}, ` +
        `depth ${step.max_depth}${merged}`
    );
}

// The time that the session's steps span; null: not known yet.
function useBounds(id: string, changes: number) {
    const [bounds, setBounds] = useState<Window | null>(null);
    const [problem, setProblem] = useState("");
    useEffect(() => {
        api.timeline(id, { width: 1 }).then(
            (list) => {
                const from = Math.min(...list.items.map((step) => step.start_ns));
                const to = Math.max(...list.items.map((step) => step.end_ns));
                setBounds(list.items.length > 0 ? { from, to: to + 1 } : { from: 0, to: 0 });
            },
            (failure: Error) => setProblem(failure.message),
        );
    }, [id, changes]);
    return { bounds, problem };
}

function useSteps(id: string, view: Window | null, width: number, changes: number) {
    const [loaded, setLoaded] = useState<Loaded>({ steps: [], gaps: [] });
    const [problem, setProblem] = useState("");
    useEffect(() => {
        if (!view || view.to <= view.from) {
            return;
        }
        const abort = new AbortController();
        const timer = setTimeout(() => {
            const parameters = { from_ns: view.from, to_ns: view.to, width };
            Promise.all([api.timeline(id, parameters, abort.signal), api.gaps(id)]).then(
                ([list, gaps]) => {
                    setLoaded({ steps: list.items, gaps: gaps.items });
                    setProblem("");
                },
                (failure: Error) => abort.signal.aborted || setProblem(failure.message),
            );
        }, 60);
        return () => {
            clearTimeout(timer);
            abort.abort();
        };
    }, [id, view?.from, view?.to, width, changes]);
    return { ...loaded, problem };
}

function wholeNumber(text: string | null): number | null {
    return text !== null && /^[0-9]{1,15}$/.test(text) ? Number(text) : null;
}

function windowOf(bounds: Window | null): Window | null {
    const from = wholeNumber(route.value.parameters.get("from"));
    const to = wholeNumber(route.value.parameters.get("to"));
    return bounds && from !== null && to !== null && to > from ? { from, to } : bounds;
}

function show(bounds: Window, from: number, length: number): void {
    const whole = bounds.to - bounds.from;
    const span = Math.round(Math.min(Math.max(length, NARROWEST_NS), whole));
    const start = Math.round(Math.min(Math.max(from, bounds.from), bounds.to - span));
    const isWhole = span === whole;
    setParameters({ from: isWhole ? "" : `${start}`, to: isWhole ? "" : `${start + span}` }, true);
}

// W and S zoom, A and D move, by the keys' places on the keyboard; Home shows everything.
function keyAction(code: string, bounds: Window, view: Window): (() => void) | null {
    const span = view.to - view.from;
    switch (code) {
        case "KeyW":
            return () => show(bounds, view.from + span / 4, span / 2);
        case "KeyS":
            return () => show(bounds, view.from - span / 2, span * 2);
        case "KeyA":
            return () => show(bounds, view.from - span / 4, span);
        case "KeyD":
            return () => show(bounds, view.from + span / 4, span);
        case "Home":
            return () => show(bounds, bounds.from, bounds.to - bounds.from);
        default:
            return null;
    }
}

function Twin({ steps }: { steps: TimelineStep[] }) {
    return (
        <section class="card">
            <h2>The same as a table</h2>
            <div class="scroll-x" tabIndex={0} role="region" aria-label="Steps of the timeline">
                <table class="steps">
                    <thead>
                        <tr>
                            {["Thread", "From", "Lasted", "Calls", "Deepest", "Open at its start"].map(
                                (head) => (
                                    <th scope="col" key={head}>
                                        {head}
                                    </th>
                                ),
                            )}
                        </tr>
                    </thead>
                    <tbody>
                        {steps.slice(0, TWIN_ROWS).map((step) => (
                            <tr key={`${step.stream_id} ${step.start_ns}`}>
                                <td>{streamName(step)}</td>
                                <td>{duration(step.start_ns)}</td>
                                <td>{duration(step.end_ns - step.start_ns)}</td>
                                <td>{count(step.calls)}</td>
                                <td>{step.max_depth}</td>
                                <td class="mono">{step.function ?? "–"}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
            {steps.length > TWIN_ROWS ? (
                <p class="dim">
                    The first {TWIN_ROWS} of {count(steps.length)} steps; zoom in for the others.
                </p>
            ) : null}
        </section>
    );
}

function Canvas({ bounds, view, steps, gaps, width, setWidth }: CanvasProperties) {
    const canvas = useRef<HTMLCanvasElement>(null);
    const dragged = useRef<number | null>(null);
    const [chosen, setChosen] = useState<TimelineStep | null>(null);
    const streams = [...new Set(steps.map((step) => step.stream_id))];
    useEffect(() => {
        const measure = () => setWidth(Math.max(50, Math.floor(canvas.current!.clientWidth)));
        const observer = new ResizeObserver(measure);
        observer.observe(canvas.current!);
        return () => observer.disconnect();
    }, []);
    useEffect(() => {
        drawTimeline(canvas.current!, { steps, gaps, streams, view, chosen, width });
    });
    const timeAt = (x: number) => view.from + (x / width) * (view.to - view.from);
    const onPointerUp = (event: PointerEvent) => {
        const start = dragged.current;
        dragged.current = null;
        const moved = start === null ? 0 : event.offsetX - start;
        if (Math.abs(moved) > 3) {
            show(bounds, view.from - (moved / width) * (view.to - view.from), view.to - view.from);
        } else {
            const stream = streams[trackOf(event.offsetY)];
            const time = timeAt(event.offsetX);
            const before = steps.filter((step) => step.stream_id === stream && step.start_ns <= time);
            setChosen(before[before.length - 1] ?? null);
        }
    };
    const onWheel = (event: WheelEvent) => {
        if (event.ctrlKey) {
            event.preventDefault();
            const factor = event.deltaY > 0 ? 1.25 : 0.8;
            const time = timeAt(event.offsetX);
            show(bounds, time - (time - view.from) * factor, (view.to - view.from) * factor);
        }
    };
    const onKeyDown = (event: KeyboardEvent) => {
        const action = event.ctrlKey || event.metaKey ? null : keyAction(event.code, bounds, view);
        if (action) {
            event.preventDefault();
            action();
        }
    };
    return (
        <div class="timeline card" tabIndex={0} role="group" aria-label="Timeline" onKeyDown={onKeyDown}>
            <canvas
                ref={canvas}
                aria-hidden="true"
                style={{ height: `${streams.length * TRACK_HEIGHT}px` }}
                onPointerDown={(event) => (dragged.current = event.offsetX)}
                onPointerUp={onPointerUp}
                onWheel={onWheel}
            />
            <p class="dim" role="status">
                {chosen ? describe(chosen) : `${duration(view.from)} to ${duration(view.to)}`}
            </p>
        </div>
    );
}

interface CanvasProperties extends Loaded {
    bounds: Window;
    view: Window;
    width: number;
    setWidth: (width: number) => void;
}

export function TimelineView({ session, changes }: { session: Overview; changes: number }) {
    const [width, setWidth] = useState(1000);
    const { bounds, problem } = useBounds(session.id, changes);
    const view = windowOf(bounds);
    const { steps, gaps, problem: stepsProblem } = useSteps(session.id, view, width, changes);
    const said = problem || stepsProblem;
    if (!bounds || !view) {
        return said ? <Problem message={said} /> : <p class="empty">Loading…</p>;
    }
    if (bounds.to <= bounds.from) {
        return <p class="empty">No thread of this session has enough calls for a timeline.</p>;
    }
    return (
        <section class="lists" aria-label="Timeline of the session">
            {said ? <Problem message={said} /> : null}
            <p class="dim">
                Height is depth, colour is the function open at a step's start, hatched is lost.{" "}
                <kbd>W</kbd> <kbd>S</kbd> zoom, <kbd>A</kbd> <kbd>D</kbd> move, <kbd>Home</kbd> shows
                all; drag, or Ctrl and wheel. {compact(steps.reduce((sum, step) => sum + step.calls, 0))}{" "}
                calls are in the steps shown.
            </p>
            <Canvas {...{ bounds, view, steps, gaps, width, setWidth }} />
            <Twin steps={steps} />
        </section>
    );
}
