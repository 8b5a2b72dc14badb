// What each thread did over time, down to single calls: a canvas, and the same as a table below it.
// Window, selected area, selected call, search and pinned threads are in the address.
import { useEffect, useRef, useState } from "preact/hooks";
import { useSql } from "../answers";
import type { Overview } from "../api";
import type { Window } from "../canvas/scale";
import { compact, count, counted, duration, percent } from "../format";
import { route, setParameters } from "../router";
import { looks } from "../store";
import { RowTable, SqlPanel } from "../widgets/panel";
import { Problem } from "../widgets/small";
import { CallDetails } from "./call_details";
import { Notes } from "./notes";
import {
    type CallBar,
    type GapMark,
    GAPS_SQL,
    type Mark,
    MARKS_SQL,
    quantised,
    type Stream,
    type Track,
    trackName,
    useStreams,
    useTracks,
} from "./timeline_data";
import { addressOf, isPart, matches, PART_MS, pickedSql, type Selection, selection, valuesOf } from "../selection";
import { drawTimeline, heightOfAll, hitOf, type Picture } from "./timeline_draw";

const TWIN_ROWS = 200;
const NARROWEST_NS = 20;
const TRACKS_MAX = 24;
const ADDRESS_DELAY_MS = 150;

function areaSql(chosen: Selection): string {
    const isTimeOnly = chosen.threads.length === 0 && chosen.mark === "";
    const source = isTimeOnly
        ? "call_aggregate(:session, :from, :to) a"
        : "picked p JOIN call_aggregate(:session, p.from_ns, p.to_ns, p.stream_id) a";
    return `${isTimeOnly ? "" : pickedSql(chosen)}
SELECT f.name, a.function_id, sum(a.calls) AS calls, sum(a.self_ns) AS self_ns, sum(a.total_ns) AS total_ns,
       max(a.max_ns) AS max_ns
FROM ${source} LEFT JOIN functions f USING (function_id) WHERE ${matches(chosen, "f.name")}
GROUP BY a.function_id ORDER BY 4 DESC, 3 DESC LIMIT 100`.trim();
}

interface AreaRow {
    name: string;
    function_id: number;
    calls: number;
    self_ns: number;
    total_ns: number;
    max_ns: number | null;
}

function wholeNumber(text: string | null): number | null {
    return text !== null && /^[0-9]{1,15}$/.test(text) ? Number(text) : null;
}

function windowOf(from: string | null, to: string | null): Window | null {
    const first = wholeNumber(from);
    const last = wholeNumber(to);
    return first !== null && last !== null && last > first ? { from: first, to: last } : null;
}

// clamp keeps a window inside of the session, and wide enough to be drawn.
function clamp(bounds: Window, from: number, length: number): Window {
    const whole = bounds.to - bounds.from;
    const span = Math.round(Math.min(Math.max(length, NARROWEST_NS), whole));
    const start = Math.round(Math.min(Math.max(from, bounds.from), bounds.to - span));
    return { from: start, to: start + span };
}

// Asked once the first picture is there: the server keeps the sums of all blocks that it adds up, so
// that it need not read those again that lie within an area.
const ALL_SUMS_SQL = "SELECT count(*) FROM call_aggregate(:session)";

const FOLLOWED_NS = 5e9;

// The end of what was recorded so far, as wide as the window was.
function lastOf(bounds: Window, before: Window | null): Window {
    const length = before ? before.to - before.from : Math.min(FOLLOWED_NS, bounds.to - bounds.from);
    return clamp(bounds, bounds.to - length, length);
}

// The window follows keys and mouse at once, and the address when they rest: browsers allow only
// some changes of it a second.
function useView(bounds: Window | null) {
    const parameters = route.value.parameters;
    const inAddress = windowOf(parameters.get("from"), parameters.get("to"));
    const [moving, setMoving] = useState<Window | null>(null);
    const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
    const key = `${inAddress?.from} ${inAddress?.to}`;
    useEffect(() => setMoving(null), [key]);
    const show = (from: number, length: number) => {
        const next = clamp(bounds!, from, length);
        setMoving(next);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => {
            const isWhole = next.to - next.from === bounds!.to - bounds!.from;
            setParameters(
                { from: isWhole ? "" : `${next.from}`, to: isWhole ? "" : `${next.to}`, follow: "" },
                true,
            );
            setMoving(null);
        }, ADDRESS_DELAY_MS);
    };
    useEffect(() => () => clearTimeout(timer.current), []);
    const isFollowing = parameters.get("follow") === "1" && bounds !== null && !moving;
    return { view: moving ?? (isFollowing ? lastOf(bounds, inAddress) : inAddress) ?? bounds, show };
}

// W and S zoom, A and D move, by the keys' places on the keyboard; Home shows everything.
function keyAction(code: string, bounds: Window, view: Window, show: Show): (() => void) | null {
    const span = view.to - view.from;
    switch (code) {
        case "KeyW":
            return () => show(view.from + span / 4, span / 2);
        case "KeyS":
            return () => show(view.from - span / 2, span * 2);
        case "KeyA":
            return () => show(view.from - span / 4, span);
        case "KeyD":
            return () => show(view.from + span / 4, span);
        case "Home":
            return () => show(bounds.from, bounds.to - bounds.from);
        default:
            return null;
    }
}

type Show = (from: number, length: number) => void;

function describe(track: Track, bar: CallBar | null): string {
    const where = trackName(track.stream);
    if (!bar) {
        return `${where}: no call here`;
    }
    const took = bar.isOpen ? "not ended" : duration(bar.right - bar.left);
    if (!bar.call) {
        return `${where}: ${bar.name} was open where ${count(bar.count ?? 1)} steps begin; zoom in for its calls`;
    }
    if (bar.count) {
        return `${where}: ${counted(bar.count, "call")} at depth ${bar.row} within ${took}, the first of ${bar.name}`;
    }
    return `${where}: ${bar.name}, ${took}, at ${duration(bar.left)}, depth ${bar.row}`;
}

interface TwinRow {
    track: Track;
    bar: CallBar;
}

function Twin({ tracks, view }: { tracks: readonly Track[]; view: Window }) {
    const [open, setOpen] = useState(false);
    const rows: TwinRow[] = (open ? tracks : []).flatMap((track) =>
        track.bars
            .filter((bar) => bar.right >= view.from && bar.left <= view.to)
            .map((bar) => ({ track, bar })),
    );
    return (
        <details class="card panel twin" onToggle={(event) => setOpen(event.currentTarget.open)}>
            <summary>
                <h2>The same as a table</h2>
            </summary>
            <RowTable
                label="Calls of the timeline"
                rows={rows.slice(0, TWIN_ROWS)}
                columns={[
                    { title: "Thread", cell: ({ track }) => trackName(track.stream) },
                    { title: "Depth", number: true, cell: ({ bar }) => bar.row },
                    { title: "Function", mono: true, cell: ({ bar }) => bar.name },
                    { title: "From", number: true, cell: ({ bar }) => duration(bar.left) },
                    {
                        title: "Lasted",
                        number: true,
                        cell: ({ bar }) => (bar.isOpen ? "not ended" : duration(bar.right - bar.left)),
                    },
                    { title: "Self", number: true, cell: ({ bar }) => (bar.count ? "–" : duration(bar.self)) },
                    {
                        title: "Calls",
                        number: true,
                        cell: ({ bar }) => (bar.call ? count(bar.count ?? 1) : "≈"),
                    },
                    { title: "", cell: ({ bar }) => (bar.striped ? "▲ not exact" : bar.isUnwound ? "unwound" : "") },
                ]}
            />
            {rows.length > TWIN_ROWS ? (
                <p class="dim">
                    The first {TWIN_ROWS} of {count(rows.length)} bars; zoom in for the others.
                </p>
            ) : null}
        </details>
    );
}

// What the selection holds, where it is a part of the session.
function Selected({ session, chosen, show }: { session: Overview; chosen: Selection; show: Show }) {
    const values = valuesOf(session.id, chosen);
    const sql = areaSql(chosen);
    const answer = useSql<AreaRow>(sql, values, 0, { ms: PART_MS });
    const self = answer.rows.reduce((sum, row) => sum + row.self_ns, 0);
    const area = chosen.area;
    return (
        <div class="lists">
            {area ? (
                <p class="chips">
                    <button class="quiet" type="button" onClick={() => show(area.from, area.to - area.from)}>
                        Zoom to the selected time
                    </button>
                </p>
            ) : null}
            <SqlPanel
                title="Calls that began in the selection"
                sql={sql}
                values={values}
                answer={answer}
                none="No such call began in it."
                columns={[
                    {
                        title: "Function",
                        mono: true,
                        cell: (row) => (
                            <a href={addressOf(session.id, { view: "tree", function: row.function_id })}>{row.name}</a>
                        ),
                    },
                    { title: "Calls", number: true, cell: (row) => count(row.calls) },
                    { title: "Self", number: true, cell: (row) => duration(row.self_ns) },
                    { title: "Share", number: true, cell: (row) => percent(row.self_ns, self) },
                    { title: "Total", number: true, cell: (row) => duration(row.total_ns) },
                    { title: "Longest", number: true, cell: (row) => duration(row.max_ns) },
                ]}
            />
        </div>
    );
}

interface CanvasProperties {
    bounds: Window;
    view: Window;
    show: Show;
    tracks: readonly Track[];
    gaps: readonly GapMark[];
    marks: readonly Mark[];
    selected: readonly Window[];
    width: number;
    setWidth: (width: number) => void;
    isCurrent: boolean;
}

interface Drag {
    x: number;
    view: Window;
    moves: boolean; // with Shift: moves the window instead of selecting an area
}

function Canvas(properties: CanvasProperties) {
    const { bounds, view, show, tracks, gaps, marks, selected, width, setWidth, isCurrent } = properties;
    const canvas = useRef<HTMLCanvasElement>(null);
    const drag = useRef<Drag | null>(null);
    const [band, setBand] = useState<Window | null>(null);
    const [said, setSaid] = useState("");
    const parameters = route.value.parameters;
    const areas = band ? [band] : selected;
    const call = parameters.get("call");
    const chosen = call
        ? (tracks.flatMap((track) => track.bars).find((bar) => bar.call === call && !bar.count) ?? null)
        : null;
    const search = parameters.get("q") || selection.value.functions.replace(/^\*|\*$/g, "");
    void looks.value; // drawn again in other colours
    const picture: Picture = { tracks, gaps, marks, view, areas, chosen, search, width };
    useEffect(() => {
        const measure = () => setWidth(Math.max(50, Math.floor(canvas.current?.clientWidth ?? 0)));
        measure();
        const observer = new ResizeObserver(measure);
        observer.observe(canvas.current!);
        return () => observer.disconnect();
    }, []);
    useEffect(() => {
        const frame = requestAnimationFrame(() => canvas.current && drawTimeline(canvas.current, picture));
        return () => cancelAnimationFrame(frame);
    });
    const timeAt = (x: number) => Math.round(view.from + (x / width) * (view.to - view.from));
    const onPointerDown = (event: PointerEvent) => {
        drag.current = { x: event.offsetX, view, moves: event.shiftKey };
        canvas.current!.setPointerCapture(event.pointerId);
    };
    const onPointerMove = (event: PointerEvent) => {
        const start = drag.current;
        if (!start) {
            const hit = hitOf(picture, event.offsetX, event.offsetY);
            setSaid(hit ? describe(hit.track, hit.bar) : "");
        } else if (start.moves) {
            const span = start.view.to - start.view.from;
            show(start.view.from - ((event.offsetX - start.x) / width) * span, span);
        } else if (Math.abs(event.offsetX - start.x) > 3) {
            const ends = [timeAt(start.x), timeAt(event.offsetX)].sort((a, b) => a - b);
            setBand({ from: Math.max(0, ends[0]!), to: ends[1]! + 1 });
        }
    };
    const onPointerUp = (event: PointerEvent) => {
        const start = drag.current;
        drag.current = null;
        setBand(null);
        if (!start || start.moves) {
            return;
        }
        if (Math.abs(event.offsetX - start.x) > 3) {
            const ends = [timeAt(start.x), timeAt(event.offsetX)].sort((a, b) => a - b);
            setParameters({ area: `${Math.max(0, ends[0]!)}-${ends[1]! + 1}`, call: "" });
            return;
        }
        const hit = hitOf(picture, event.offsetX, event.offsetY);
        setSaid(hit ? describe(hit.track, hit.bar) : "");
        if (hit?.bar?.count) {
            const span = hit.bar.right - hit.bar.left;
            show(hit.bar.left - span, span * 3);
        } else {
            setParameters({ call: hit?.bar?.call ?? "" });
        }
    };
    const onWheel = (event: WheelEvent) => {
        const span = view.to - view.from;
        if (event.ctrlKey || event.metaKey) {
            event.preventDefault();
            const factor = event.deltaY > 0 ? 1.25 : 0.8;
            const time = view.from + (event.offsetX / width) * span;
            show(time - (time - view.from) * factor, span * factor);
        } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            event.preventDefault();
            show(view.from + ((event.deltaX || event.deltaY) / width) * span, span);
        }
    };
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.key === "Escape") {
            setParameters({ area: "", call: "" });
            return;
        }
        const action = event.ctrlKey || event.metaKey ? null : keyAction(event.code, bounds, view, show);
        if (action) {
            event.preventDefault();
            action();
        }
    };
    return (
        <div
            class="timeline card"
            tabIndex={0}
            role="group"
            aria-label="Timeline"
            data-from={view.from}
            data-to={view.to}
            onKeyDown={onKeyDown}
        >
            <div class="tracks">
                <canvas
                    ref={canvas}
                    aria-hidden="true"
                    class={isCurrent ? "" : "stale"}
                    style={{ height: `${heightOfAll(tracks)}px` }}
                    {...{ onPointerDown, onPointerMove, onPointerUp, onWheel }}
                />
            </div>
            <p class="dim" role="status">
                {said || `${duration(view.from)} to ${duration(view.to)}, ${duration(view.to - view.from)}`}
            </p>
        </div>
    );
}

const NEXT_SQL = `SELECT c.call_id, c.start_ns, c.duration_ns FROM calls c WHERE c.session_id = :session
  AND c.function_id = :function AND c.start_ns > :after LIMIT 1`;
const FOUND_SQL = `SELECT f.function_id, f.name FROM function_stats s JOIN functions f USING (function_id)
WHERE s.session_id = :session AND instr(lower(f.name), lower(:text)) > 0
ORDER BY length(f.name), s.self_ns DESC LIMIT 1`;

interface Found {
    function_id: number;
    name: string;
}

// Search fades what does not match; its button goes to the next call of the best match.
function Search({ session, view }: { session: Overview; view: Window }) {
    const search = route.value.parameters.get("q") ?? "";
    const best = useSql<Found>(search ? FOUND_SQL : "", { session: session.id, text: search });
    const [after, setAfter] = useState<number | null>(null);
    const [last, setLast] = useState(-1); // start of the call that was found last
    const fn = best.rows[0]?.function_id;
    const values = { session: session.id, function: fn ?? 0, after: after ?? 0 };
    const next = useSql<{ call_id: number; start_ns: number; duration_ns: number | null }>(
        after !== null && fn !== undefined ? NEXT_SQL : "",
        values,
        0,
        { ms: 20000 },
    );
    useEffect(() => {
        const found = next.rows[0];
        if (after !== null && next.isCurrent && found) {
            const length = Math.max(200, (found.duration_ns ?? 0) * 4);
            const from = Math.max(0, Math.floor(found.start_ns - length / 2));
            setParameters({ from: `${from}`, to: `${from + Math.ceil(length)}`, call: `${found.call_id}` });
            setLast(found.start_ns);
            setAfter(null);
        }
    }, [next.isCurrent, next.rows[0]?.call_id, after]);
    return (
        <>
            <input
                type="search"
                aria-label="Search calls by function"
                placeholder="Search calls…  /"
                value={search}
                onInput={(event) => setParameters({ q: event.currentTarget.value }, true)}
            />
            {search && fn !== undefined ? (
                <button class="quiet" type="button" onClick={() => setAfter(last >= view.from && last <= view.to ? last : view.from - 1)}>
                    Next call of {best.rows[0]!.name.slice(0, 40)}
                </button>
            ) : null}
            {search && best.value && fn === undefined ? <span class="dim">no function matches</span> : null}
            {after !== null && next.value && next.isCurrent && next.rows.length === 0 ? (
                <span class="dim">no call after this time</span>
            ) : null}
            {next.problem ? <span class="warn-text">{next.problem}</span> : null}
        </>
    );
}

function Follow() {
    const isOn = route.value.parameters.get("follow") === "1";
    return (
        <button
            class="quiet"
            type="button"
            aria-pressed={isOn}
            title="show what was recorded last, as it comes; moving or zooming ends it"
            onClick={() => setParameters({ follow: isOn ? "" : "1" })}
        >
            {isOn ? "● Following" : "Follow"}
        </button>
    );
}

function Threads({ streams, shown }: { streams: readonly Stream[]; shown: readonly Stream[] }) {
    const chosen = new Set(shown.map((stream) => stream.stream_id));
    const toggle = (stream: Stream) => {
        const next = chosen.has(stream.stream_id)
            ? shown.filter((other) => other !== stream)
            : [...shown, stream];
        setParameters({ streams: next.map((other) => other.stream_id).join(",") });
    };
    return (
        <details class="threads">
            <summary>
                {shown.length === streams.length
                    ? counted(streams.length, "thread")
                    : `${count(shown.length)} of ${count(streams.length)} threads`}
            </summary>
            <ul class="card">
                {streams.map((stream) => (
                    <li key={stream.stream_id}>
                        <label>
                            <input
                                type="checkbox"
                                checked={chosen.has(stream.stream_id)}
                                onChange={() => toggle(stream)}
                            />{" "}
                            {trackName(stream)} <span class="dim">{compact(stream.calls)} calls</span>
                        </label>
                    </li>
                ))}
            </ul>
        </details>
    );
}

// Those of the selected threads.
function selectedStreams(streams: readonly Stream[]): string[] {
    const threads = selection.value.threads;
    return streams
        .filter((stream) => threads.includes(String(stream.thread_id)))
        .map((stream) => String(stream.stream_id));
}

function shownStreams(streams: readonly Stream[]): Stream[] {
    const wanted = (route.value.parameters.get("streams") ?? "").split(",").filter((id) => id !== "");
    const chosen = (wanted.length > 0 ? wanted : selectedStreams(streams))
        .map((id) => streams.find((stream) => String(stream.stream_id) === id))
        .filter((stream) => stream !== undefined);
    return chosen.length > 0 ? chosen : streams.slice(0, TRACKS_MAX);
}

export function TimelineView({ session, changes }: { session: Overview; changes: number }) {
    const [width, setWidth] = useState(0); // not measured yet: nothing is asked for
    const { streams, bounds, problem } = useStreams(session.id, changes);
    const { view, show } = useView(bounds);
    const shown = shownStreams(streams);
    const chosen = selection.value;
    const loaded = useTracks(session.id, shown, view, bounds, width, changes);
    useSql(loaded.value ? ALL_SUMS_SQL : "", { session: session.id }, 0, { ms: 30000 });
    const wide = view && view.to > view.from ? quantised(view) : { from: 0, to: 0 };
    const gaps = useSql<GapMark>(
        bounds ? GAPS_SQL : "",
        { session: session.id, from: wide.from, to: wide.to },
        changes,
        { rows: 3000 },
    );
    const marks = useSql<Mark>(MARKS_SQL, { session: session.id }, changes, { rows: 3000 });
    const spans = useSql<{ from_ns: number; to_ns: number }>(
        chosen.mark ? `${pickedSql(chosen)}\nSELECT DISTINCT from_ns, to_ns FROM picked` : "",
        valuesOf(session.id, chosen),
        changes,
    );
    const selected = chosen.mark
        ? spans.rows.map((span) => ({ from: span.from_ns, to: span.to_ns }))
        : chosen.area
          ? [chosen.area]
          : [];
    const said = problem || loaded.problem;
    if (!bounds || !view) {
        return said ? <Problem message={said} /> : <p class="empty">Loading…</p>;
    }
    if (bounds.to <= bounds.from) {
        return <p class="empty">No call of this session is stored yet.</p>;
    }
    const call = route.value.parameters.get("call");
    const tracks = loaded.value?.tracks ?? [];
    return (
        <section class="lists" aria-label="Timeline of the session">
            {said ? <Problem message={said} /> : null}
            <div class="tools">
                <Search session={session} view={view} />
                <Threads streams={streams} shown={shown} />
                {session.state === "recording" ? <Follow /> : null}
                <span class="dim legend">
                    <kbd>W</kbd> <kbd>S</kbd> zoom, <kbd>A</kbd> <kbd>D</kbd> move, <kbd>Home</kbd> all; drag
                    selects; hatched: lost, striped: not exact
                </span>
            </div>
            <Canvas
                {...{ bounds, view, show, tracks, width, setWidth }}
                gaps={gaps.rows}
                marks={marks.rows}
                selected={selected}
                isCurrent={loaded.isCurrent}
            />
            {call && /^[0-9]{1,19}$/.test(call) ? <CallDetails key={call} session={session.id} call={call} /> : null}
            {isPart(chosen) ? (
                <Selected key={JSON.stringify(chosen)} session={session} chosen={chosen} show={show} />
            ) : null}
            <Twin tracks={tracks} view={view} />
            <Notes session={session.id} changes={changes} />
        </section>
    );
}
