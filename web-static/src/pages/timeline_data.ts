// Loads the bars of a timeline. If a window has few enough calls, each bar is a call. Otherwise the
// bars show which calls were open at the start of each stored step.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Answer, prepareQuestion, useAnswer, useQuestion } from "../answers";
import { api, type CallRow, type CallsOfStream, type TimelineAnswer, type TimelinePath, type TimelineStep, type RowOf } from "../api";
import type { Bar } from "../canvas/bars";
import type { Window } from "../canvas/scale";
import { isUntimed } from "../estimates";
import { count, counted, fileName } from "../format";
import { route, setParameters } from "../router";

const STREAM_LIMITS = { rows: 5000 };
const ROWS_MAX = 60; // the most rows of a track, so that a deep track does not hide the others
const ALL_ROWS_MAX = 4096; // the server's answer has no more rows
const STREAMS_MAX = 100; // the most streams of one request

// `session` and `clock` are set if several sessions are shown: device and name, and how accurate the clock is.
export type Stream = RowOf<"web.streams">;

export type GapMark = RowOf<"web.gaps">;

export type Mark = RowOf<"web.marks_and_notes">;

export interface CallBar extends Bar {
    call: string; // call_id of the first call; "" if the bar is made from steps
    function: string; // function_id
    depth: number; // `row` counts from the first drawn row of the track
    folded: number; // levels of recursion that the bar holds; 1: no recursion is folded in it
    self: number | null;
    isSelfEstimate: boolean;
    flags: number;
    isOpen: boolean;
    isUnwound: boolean;
}

export interface Track {
    stream: Stream;
    bars: CallBar[];
    isCalls: boolean; // false if the bars are made from steps
    calls: number; // calls that began in the window, or in the steps that overlap it
    top: number; // the first row that is drawn
    rows: number; // rows that are drawn
    levels: number; // rows that all calls need
    isFolded: boolean; // recursion is folded
    problem: string;
    truncated: boolean; // the answer was cut: it has not all bars
}

export function showsAllLevels(): boolean {
    return route.value.parameters.get("levels") === "all";
}

function mostRows(): number {
    return showsAllLevels() ? ALL_ROWS_MAX : ROWS_MAX;
}

export function foldsRecursion(): boolean {
    return route.value.parameters.get("recursion") !== "all";
}

// Reads the first drawn row of each scrolled stream from the address: "stream:row,stream:row".
function topsInAddress(): Map<string, number> {
    const parts = (route.value.parameters.get("tops") ?? "").split(",").map((part) => part.split(":"));
    return new Map(parts.filter(([id, row]) => /^\d{1,18}$/.test(id ?? "") && /^\d{1,9}$/.test(row ?? "")).map(([id, row]) => [id!, Number(row)]));
}

// Makes a row the first one that a track draws. Limits it so that the last level is drawn in the last row.
export function setTop({ stream, levels, rows }: Track, row: number): void {
    const tops = topsInAddress();
    tops.set(String(stream.stream_id), Math.max(0, Math.min(Math.round(row), levels - rows)));
    setParameters({ tops: [...tops].filter(([, top]) => top > 0).map((pair) => pair.join(":")).join(",") }, true);
}

// Scrolls the levels of a track by a number of rows.
export function scrollLevels(track: Track, rows: number): void {
    setTop(track, (topsInAddress().get(String(track.stream.stream_id)) ?? 0) + rows);
}

// Says what part of a track is not drawn.
export function cutOf({ top, levels, rows, truncated, isFolded }: Track): string {
    const folded = isFolded ? "  ↻ recursion is folded" : "";
    const part = levels > rows ? `${folded}  ▼ levels ${count(top + 1)} to ${count(Math.min(levels, top + rows))} of ${count(levels)}` : folded;
    return truncated ? `${part}  ▲ too many calls: some are not drawn; zoom in` : part;
}

export function trackName(stream: Stream): string {
    const name =
        stream.name || (stream.thread === null ? `stream ${stream.stream_id}` : `thread ${stream.thread}`);
    const process = stream.processes > 1 && stream.pid ? `${fileName(stream.executable ?? "")} ${stream.pid} · ` : "";
    const session = stream.session ? `${stream.session} · ` : "";
    return `${session}${process}${name}${stream.own_stack ? "" : " (other stack)"}`;
}

// Returns the time from the first call of the streams to the end of their last call.
export function boundsOf(streams: readonly Stream[]): Window {
    const from = streams.reduce((least, stream) => Math.min(least, stream.from_ns!), Infinity);
    const to = streams.reduce((most, stream) => Math.max(most, stream.to_ns ?? 0), 0);
    return streams.length > 0 ? { from, to: to + 1 } : { from: 0, to: 0 };
}

export function useStreams(id: string, changes: number) {
    const answer = useQuestion("web.streams", { session: id }, changes, STREAM_LIMITS);
    const known = answer.rows.filter((stream) => stream.from_ns !== null);
    const bounds = answer.value === null ? null : boundsOf(known);
    return { streams: known, bounds, problem: answer.problem };
}

function labelOf(name: string, calls: number, levels: number): string {
    const deep = levels > 1 ? ` ↻ ${counted(levels, "level")}` : "";
    return calls > 1 ? `${counted(calls, "call")}, first ${name}${deep}` : `${name}${deep}`;
}

// Makes a bar from a row of the server's answer. A row may be several short calls.
function callBar(answer: TimelineAnswer, cells: CallRow, top: number, to: number): CallBar {
    const [call, fn, depth, start, end, self, isUnwound, flags, calls, isOpen, folded, row] = cells;
    const name = answer.functions[fn] || `function ${fn}`;
    return {
        left: start,
        right: end ?? to,
        row: row - top,
        name,
        ...(calls > 1 || folded > 1 ? { label: labelOf(name, calls, folded) } : {}),
        ...(calls > 1 ? { count: calls } : {}),
        striped: (flags & 15) !== 0,
        call,
        function: fn,
        depth,
        folded,
        self,
        isSelfEstimate: isUntimed(flags) || answer.calls_counted.includes(fn),
        flags,
        isOpen,
        isUnwound,
    };
}

interface PathFrame {
    function_id: string;
    name: string;
    path_id: string;
    depth: number;
    row: number; // counts from the first drawn row
}

// The rows of a track that are drawn from steps.
interface Rows {
    top: number;
    folds: boolean;
}

// The stacks of call paths that were open at the start of a step.
class Frames {
    private readonly paths: Map<string, TimelinePath>;
    private readonly known = new Map<string, PathFrame[]>();
    private readonly most = mostRows();

    constructor(paths: readonly TimelinePath[]) {
        this.paths = new Map(paths.map((path) => [path.path_id, path]));
    }

    private stackOf(leaf: string): TimelinePath[] {
        const stack: TimelinePath[] = [];
        for (let path = this.paths.get(leaf); path; path = this.paths.get(path.parent_path_id ?? "")) {
            stack.push(path);
        }
        return stack.reverse();
    }

    // Returns the paths that have rows. If recursion is folded, a function that calls itself has one row.
    private rowsOf(leaf: string, folds: boolean): TimelinePath[] {
        const stack = this.stackOf(leaf);
        return folds ? stack.filter((path, at) => at === 0 || path.function_id !== stack[at - 1]!.function_id) : stack;
    }

    of(leaf: string, { top, folds }: Rows): PathFrame[] {
        const key = `${leaf} ${top} ${folds}`;
        const known = this.known.get(key);
        if (known) {
            return known;
        }
        const found = this.rowsOf(leaf, folds)
            .slice(top, top + this.most)
            .map((path, row) => ({
                function_id: path.function_id,
                name: path.function ?? `function ${path.function_id}`,
                path_id: path.path_id,
                depth: path.depth,
                row,
            }));
        this.known.set(key, found);
        return found;
    }

    levelsOf(leaf: string, folds: boolean): number {
        return folds ? this.rowsOf(leaf, true).length : (this.paths.get(leaf)?.depth ?? 0) + 1;
    }
}

// Makes bars from steps. Neighbouring steps with the same path in the same row become one bar.
function stepBars(steps: TimelineStep[], frames: Frames, rows: Rows): CallBar[] {
    const bars: CallBar[] = [];
    const open: ({ path: string; bar: CallBar } | undefined)[] = [];
    for (const step of steps) {
        const stack = frames.of(step.path_id ?? "", rows);
        for (let row = 0; row < Math.max(open.length, stack.length); row++) {
            const frame = stack[row];
            const before = open[row];
            if (frame && before?.path === frame.path_id) {
                before.bar.right = step.end_ns;
                before.bar.count = (before.bar.count ?? 0) + step.steps;
            } else if (frame) {
                const bar: CallBar = {
                    left: step.start_ns,
                    right: step.end_ns,
                    row,
                    name: frame.name,
                    count: step.steps,
                    call: "",
                    function: frame.function_id,
                    depth: frame.depth,
                    folded: 1,
                    self: null,
                    isSelfEstimate: false,
                    flags: 0,
                    isOpen: false,
                    isUnwound: false,
                };
                bars.push(bar);
                open[row] = { path: frame.path_id, bar };
            } else {
                open[row] = undefined;
            }
        }
    }
    return bars;
}

// Counts the calls of the steps that overlap the window.
function inWindow(steps: readonly TimelineStep[], view: Window): number {
    return steps
        .filter((step) => step.end_ns >= view.from && step.start_ns <= view.to)
        .reduce((sum, step) => sum + step.calls, 0);
}

// Rounds a window outwards to a grid, so that small moves do not load anything.
export function quantised(view: Window): Window {
    const grid = 2 ** Math.floor(Math.log2(Math.max(8, view.to - view.from)) - 3);
    return {
        from: Math.max(0, Math.floor(view.from / grid) * grid),
        to: Math.ceil(view.to / grid) * grid,
    };
}

const STEPS_MAX = 1200; // the most steps of a stream

// Starts to load the streams of a timeline while the code of its page is still loading.
export function prepareTimeline(id: string, changes: number): void {
    prepareQuestion("web.streams", { session: id }, changes, STREAM_LIMITS);
}

// Fills a track with the calls of its stream.
function addCalls(track: Track, answer: TimelineAnswer, calls: CallsOfStream, view: Window): void {
    const to = track.stream.to_ns ?? view.to;
    track.isCalls = true;
    track.truncated = calls.truncated;
    track.isFolded = calls.is_folded;
    track.problem = answer.warnings ? "  ▲ a block cannot be read: calls are missing here" : "";
    track.bars = calls.rows.map((row) => callBar(answer, row, track.top, to));
    track.calls = calls.rows.reduce((sum, row) => sum + (row[3] >= view.from && row[3] <= view.to ? row[8] : 0), 0);
    track.levels = Math.max(1, calls.levels);
}

// Fills a track with the steps of a stream that has too many calls.
function addSteps(track: Track, steps: TimelineStep[], frames: Frames, view: Window): void {
    const most = (folds: boolean) => steps.reduce((deepest, step) => Math.max(deepest, frames.levelsOf(step.path_id ?? "", folds)), 1);
    track.isFolded = foldsRecursion() && most(false) > mostRows();
    track.bars = stepBars(steps, frames, { top: track.top, folds: track.isFolded });
    track.calls = inWindow(steps, view);
    track.levels = most(track.isFolded);
}

// Makes the track of a stream from the server's answer.
function trackOf(stream: Stream, answer: TimelineAnswer, frames: Frames, view: Window, top: number): Track {
    const track: Track = { ...withoutBars(stream, ""), top, isCalls: false };
    const id = String(stream.stream_id);
    const calls = answer.tracks.find((one) => one.stream_id === id);
    if (calls && !calls.is_too_many) {
        addCalls(track, answer, calls, view);
    } else {
        addSteps(track, answer.items.filter((step) => step.stream_id === id), frames, view);
    }
    track.rows = Math.max(1, Math.min(mostRows(), track.levels - top));
    return track;
}

// A session on a timeline. Its time 0 is the timeline's time `offset`.
export interface Placed {
    id: string;
    offset: number; // ns
    streams: readonly Stream[];
    bounds: Window; // in the session's own time
}

// Returns a track without bars: its session has no calls in the window, or the request has failed.
function withoutBars(stream: Stream, problem: string): Track {
    return { stream, bars: [], isCalls: problem === "", calls: 0, top: 0, rows: 1, levels: 1, isFolded: false, problem, truncated: false };
}

// Moves the bars of a track by `offset` ns.
function moved(track: Track, offset: number): Track {
    const bars = track.bars.map((bar) => ({ ...bar, left: bar.left + offset, right: bar.right + offset }));
    return offset === 0 ? track : { ...track, bars };
}

// Loads some tracks of a session with one request. `view` is in the session's time.
async function loadStreams(id: string, streams: readonly Stream[], view: Window, width: number, signal: AbortSignal): Promise<Track[]> {
    const tops = topsInAddress();
    const topOf = (stream: Stream) => tops.get(String(stream.stream_id)) ?? 0;
    const answer = await api.timeline(
        id,
        {
            from_ns: view.from,
            to_ns: view.to,
            width: Math.min(width, STEPS_MAX),
            rows: mostRows(),
            fold: foldsRecursion() ? 1 : 0,
            calls: streams.map((stream) => `${stream.stream_id}@${topOf(stream)}`).join(),
        },
        signal,
    );
    const frames = new Frames(answer.paths);
    return streams.map((stream) => trackOf(stream, answer, frames, view, topOf(stream)));
}

// Returns the tracks of streams that have no calls in the window, and loads the others.
async function loadInWindow(id: string, streams: readonly Stream[], view: Window, width: number, signal: AbortSignal): Promise<Track[]> {
    const inside = streams.filter((stream) => stream.from_ns! <= view.to && stream.to_ns! >= view.from);
    const loaded = inside.length > 0 ? await loadStreams(id, inside, view, width, signal) : [];
    return streams.map((stream) => loaded.find((track) => track.stream === stream) ?? withoutBars(stream, ""));
}

// Loads the tracks of a session. `view` and the result are in the timeline's time.
async function loadPlaced(placed: Placed, view: Window, width: number, signal: AbortSignal): Promise<Track[]> {
    const { id, offset, streams, bounds } = placed;
    const own: Window = { from: Math.max(0, view.from - offset), to: view.to - offset };
    if (own.to < bounds.from || own.from > bounds.to) {
        return streams.map((stream) => withoutBars(stream, ""));
    }
    const parts = Array.from({ length: Math.ceil(streams.length / STREAMS_MAX) }, (_, at) => streams.slice(at * STREAMS_MAX, (at + 1) * STREAMS_MAX));
    const loaded = await Promise.all(
        parts.map((part) =>
            loadInWindow(id, part, own, width, signal).catch((failure: Error): Track[] => {
                if (signal.aborted) {
                    throw failure;
                }
                return part.map((stream) => withoutBars(stream, failure.message));
            }),
        ),
    );
    return loaded.flat().map((track) => moved(track, offset));
}

export interface Tracks {
    view: Window; // the window that the tracks were loaded for
    tracks: Track[];
}

async function loadTracks(sessions: readonly Placed[], view: Window, width: number, signal: AbortSignal): Promise<Tracks> {
    const loaded = await Promise.all(sessions.map((placed) => loadPlaced(placed, view, width, signal)));
    return { view, tracks: loaded.flat() };
}

// A request for the tracks of some sessions in one window.
interface Asked {
    key: string;
    places: string;
    sessions: readonly Placed[];
    window: Window | null;
    width: number;
}

// Returns the first request at once, and later ones after `delayMs` without a change.
function useDelayed(asked: Asked, delayMs: number): Asked {
    const [late, setLate] = useState(asked);
    const isFirst = useRef(true);
    useEffect(() => {
        if (isFirst.current && asked.key !== "") {
            isFirst.current = false;
            setLate(asked);
            return undefined;
        }
        const timer = setTimeout(() => setLate(asked), delayMs);
        return () => clearTimeout(timer);
    }, [asked.key, delayMs]);
    return late;
}

// Returns the tracks of a window. Until they are loaded, returns those of the previous window if
// the sessions and their offsets are the same.
export function useTracks(sessions: readonly Placed[], view: Window | null, width: number, changes: number): Answer<Tracks> {
    const wide = view && view.to > view.from ? quantised(view) : null;
    const places = sessions.map(({ id, offset }) => `${id}@${offset}`).join(" ");
    const ids = sessions.map(({ id, offset, streams }) => `${id}@${offset}:${streams.map((stream) => stream.stream_id).join()}`).join(" ");
    const isAny = sessions.some(({ streams }) => streams.length > 0);
    const key = wide && isAny && width > 0 ? `${changes} ${wide.from} ${wide.to} ${width} ${mostRows()} ${foldsRecursion()} ${[...topsInAddress()]} ${ids}` : "";
    const late = useDelayed({ key, places, sessions, window: wide, width }, 40);
    const answer = useAnswer(late.key, (signal) => loadTracks(late.sessions, late.window!, late.width, signal), late.places);
    const isPlaced = late.places === places;
    return { ...answer, value: isPlaced ? answer.value : null, isCurrent: isPlaced && answer.isCurrent && late.key === key };
}
