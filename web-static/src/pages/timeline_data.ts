// Loads the bars of a timeline. If a window has few enough calls, each bar is a call. Otherwise the
// bars show which calls were open at the start of each stored step.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Answer, prepareSql, useAnswer, useSql } from "../answers";
import { api, type CallsAnswer, type TimelineAnswer, type TimelinePath, type TimelineStep } from "../api";
import type { Bar } from "../canvas/bars";
import type { Window } from "../canvas/scale";
import { isUntimed } from "../estimates";
import { counted, fileName } from "../format";
import { route } from "../router";

// If a stream has more calls in the window, its bars are made from steps.
const CALLS_MAX = 250000;
const STREAM_LIMITS = { rows: 5000 };
const ROWS_MAX = 60; // the most rows of a track, so that a deep track does not hide the others
const ALL_ROWS_MAX = 4096; // the server's answer has no deeper calls

export interface Stream {
    session_id: number;
    stream_id: number;
    thread_id: number | null;
    thread: number | null;
    name: string | null;
    is_main: number | null;
    process: number | null;
    calls: number;
    from_ns: number | null;
    to_ns: number | null;
    max_depth: number;
    own_stack: number;
    pid: number | null;
    executable: string | null;
    processes: number; // number of processes of the session
    session: string; // device and name if several sessions are shown; else ""
    clock: string; // accuracy of its clock if several sessions are shown; else ""
}

// Returns the statement for streams. `which` is a condition on streams `s`.
export const streamsSql = (which: string) => `SELECT s.session_id, s.stream_id, s.thread_id, t.number AS thread, t.name, t.is_main,
       t.process_number AS process, s.calls, s.first_enter_ns AS from_ns,
       max(coalesce(s.last_leave_ns, 0), coalesce(s.first_enter_ns, 0),
           coalesce((SELECT max(end_ns) FROM timeline x WHERE x.stream_id = s.stream_id), 0),
           coalesce((SELECT max(start_ns) FROM open_calls o WHERE o.stream_id = s.stream_id), 0)) AS to_ns,
       s.max_depth, s.own_stack, p.pid, p.executable,
       (SELECT count(*) FROM processes q WHERE q.session_id = s.session_id) AS processes, '' AS session, '' AS clock
FROM streams s LEFT JOIN threads t USING (thread_id)
LEFT JOIN processes p ON p.session_id = s.session_id AND p.number = t.process_number
WHERE ${which} ORDER BY s.session_id, p.number, t.is_main DESC, s.calls DESC, s.stream_id`;

const STREAMS_SQL = streamsSql("s.session_id = :session");

// Returns the statement for gaps. `which` is a condition on gaps `g`.
export const gapsSql = (which: string) => `SELECT g.session_id, coalesce(g.stream_id, (SELECT s.stream_id FROM streams s
           JOIN threads t USING (thread_id)
           WHERE t.session_id = g.session_id AND t.number = g.thread_number LIMIT 1)) AS stream_id,
       g.reason = 'waited' AS is_wait, g.calls, g.start_ns, g.end_ns
FROM gaps g WHERE ${which} ORDER BY g.start_ns`;

export interface GapMark {
    session_id: number;
    stream_id: number | null;
    is_wait: number;
    calls: number;
    start_ns: number;
    end_ns: number;
}

// Returns the statement for marks, and for notes about a time. `which` is a condition on
// session_id.
export const marksSql = (which: string) => `SELECT session_id, name, at_ns, is_end, 'mark' AS what FROM marks WHERE ${which}
UNION ALL SELECT session_id, note, start_ns, 0, 'note' FROM annotations
WHERE ${which} AND start_ns IS NOT NULL ORDER BY at_ns`;

export interface Mark {
    session_id: number;
    name: string;
    at_ns: number;
    is_end: number;
    what: string;
}

export interface CallBar extends Bar {
    call: string; // call_id of the first call; "" if the bar is made from steps
    function: string; // function_id
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
    rows: number; // rows that are drawn
    levels: number; // depth of the deepest call, plus one
    problem: string;
    truncated: boolean; // the answer was cut: it has not all bars
}

export function showsAllLevels(): boolean {
    return route.value.parameters.get("levels") === "all";
}

function mostRows(): number {
    return showsAllLevels() ? ALL_ROWS_MAX : ROWS_MAX;
}

// Says what part of a track is not drawn.
export function cutOf({ levels, rows, truncated }: Track): string {
    const deeper = levels > rows ? `  ▼ ${counted(levels - rows, "deeper level")} not drawn` : "";
    return truncated ? `${deeper}  ▲ too many calls: some are not drawn; zoom in` : deeper;
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
    const answer = useSql<Stream>(STREAMS_SQL, { session: id }, changes, STREAM_LIMITS);
    const known = answer.rows.filter((stream) => stream.from_ns !== null);
    const bounds = answer.value === null ? null : boundsOf(known);
    return { streams: known, bounds, problem: answer.problem };
}

// Makes a bar from a row of the server's answer. A row may be several short calls.
function callBar(answer: CallsAnswer, row: CallsAnswer["rows"][0], to: number): CallBar {
    const [call, fn, depth, start, end, self, isUnwound, flags, count, isOpen] = row;
    const name = answer.functions[fn] || `function ${fn}`;
    return {
        left: start,
        right: end ?? to,
        row: depth,
        name,
        ...(count > 1 ? { label: `${count} calls, first ${name}`, count } : {}),
        striped: (flags & 15) !== 0,
        call,
        function: fn,
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
}

// The stacks of call paths that were open at the start of a step.
class Frames {
    private readonly paths: Map<string, TimelinePath>;
    private readonly known = new Map<string, PathFrame[]>();
    private readonly most = mostRows();

    constructor(paths: readonly TimelinePath[]) {
        this.paths = new Map(paths.map((path) => [path.path_id, path]));
    }

    of(leaf: string): PathFrame[] {
        const known = this.known.get(leaf);
        if (known) {
            return known;
        }
        const found: PathFrame[] = [];
        for (let path = this.paths.get(leaf); path; path = this.paths.get(path.parent_path_id ?? "")) {
            const name = path.function ?? `function ${path.function_id}`;
            if (path.depth < this.most) {
                found.push({ function_id: path.function_id, name, path_id: path.path_id, depth: path.depth });
            }
        }
        this.known.set(leaf, found);
        return found;
    }

    levelsOf(leaf: string): number {
        return (this.paths.get(leaf)?.depth ?? 0) + 1;
    }
}

// Makes bars from steps. Neighbouring steps with the same path at the same depth become one bar.
function stepBars(steps: TimelineStep[], frames: Frames): CallBar[] {
    const bars: CallBar[] = [];
    const open: ({ path: string; bar: CallBar } | undefined)[] = [];
    for (const step of steps) {
        const stack = frames.of(step.path_id ?? "");
        const at = new Map(stack.map((frame) => [frame.depth, frame]));
        for (let depth = 0; depth < Math.max(open.length, stack.length); depth++) {
            const frame = at.get(depth);
            const before = open[depth];
            if (frame && before?.path === frame.path_id) {
                before.bar.right = step.end_ns;
                before.bar.count = (before.bar.count ?? 0) + step.steps;
            } else if (frame) {
                const bar: CallBar = {
                    left: step.start_ns,
                    right: step.end_ns,
                    row: depth,
                    name: frame.name,
                    count: step.steps,
                    call: "",
                    function: frame.function_id,
                    self: null,
                    isSelfEstimate: false,
                    flags: 0,
                    isOpen: false,
                    isUnwound: false,
                };
                bars.push(bar);
                open[depth] = { path: frame.path_id, bar };
            } else {
                open[depth] = undefined;
            }
        }
    }
    return bars;
}

interface Steps {
    steps: Map<number, TimelineStep[]>;
    frames: Frames;
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
let whole: { id: string; answer: Promise<TimelineAnswer> } | null = null;

// Starts to load the first data of a timeline while the code of its page is still loading.
export function prepareTimeline(id: string, changes: number, isWhole: boolean): void {
    prepareSql(STREAMS_SQL, { session: id }, changes, STREAM_LIMITS);
    whole = isWhole ? { id, answer: api.timeline(id, { width: STEPS_MAX }) } : null;
    whole?.answer.catch(() => (whole = null));
}

// Returns the answer that prepareTimeline requested, if it is of this session and the window shows
// everything. It can be used only once.
function claimWhole(id: string, view: Window, bounds: Window): Promise<TimelineAnswer> | null {
    const prepared = whole;
    whole = null;
    return prepared?.id === id && view.from <= bounds.from && view.to >= bounds.to ? prepared.answer : null;
}

async function loadSteps(id: string, view: Window, bounds: Window, width: number, signal: AbortSignal): Promise<Steps> {
    const parameters = { from_ns: view.from, to_ns: view.to, width: Math.min(width, STEPS_MAX) };
    const answer = await (claimWhole(id, view, bounds) ?? api.timeline(id, parameters, signal));
    const steps = new Map<number, TimelineStep[]>();
    for (const step of answer.items) {
        const stream = Number(step.stream_id);
        steps.get(stream)?.push(step) ?? steps.set(stream, [step]);
    }
    return { steps, frames: new Frames(answer.paths) };
}

// Loads the calls of a stream. If there are too many, makes bars from the steps.
async function loadTrack(
    id: string,
    stream: Stream,
    view: Window,
    width: number,
    all: Steps,
    signal: AbortSignal,
): Promise<Track> {
    const steps = all.steps.get(stream.stream_id) ?? [];
    const inSteps = inWindow(steps, view);
    const track: Track = {
        stream,
        bars: [],
        isCalls: false,
        calls: inSteps,
        rows: 1,
        levels: 1,
        problem: "",
        truncated: false,
    };
    if (stream.from_ns! > view.to || stream.to_ns! < view.from) {
        return { ...track, isCalls: true };
    }
    if (inSteps <= CALLS_MAX) {
        const parameters = { stream: stream.stream_id, from_ns: view.from, to_ns: view.to, width };
        const answer = await api.calls(id, parameters, signal);
        if (!answer.is_too_many) {
            track.isCalls = true;
            track.truncated = answer.truncated;
            track.problem = answer.warnings ? "  ▲ a block cannot be read: calls are missing here" : "";
            track.bars = answer.rows.map((row) => callBar(answer, row, stream.to_ns ?? view.to));
            track.calls = answer.rows.reduce(
                (sum, row) => sum + (row[3] >= view.from && row[3] <= view.to ? row[8] : 0),
                0,
            );
        }
    }
    if (!track.isCalls) {
        track.bars = stepBars(steps, all.frames);
    }
    const levels = track.isCalls ? track.bars.map((bar) => bar.row + 1) : steps.map((step) => all.frames.levelsOf(step.path_id ?? ""));
    track.levels = levels.reduce((most, level) => Math.max(most, level), 1);
    track.rows = Math.min(mostRows(), track.levels);
    return track;
}

export interface Tracks {
    view: Window; // the window that the tracks were loaded for
    tracks: Track[];
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
    return { stream, bars: [], isCalls: problem === "", calls: 0, rows: 1, levels: 1, problem, truncated: false };
}

// Moves the bars of a track by `offset` ns.
function moved(track: Track, offset: number): Track {
    const bars = track.bars.map((bar) => ({ ...bar, left: bar.left + offset, right: bar.right + offset }));
    return offset === 0 ? track : { ...track, bars };
}

// Loads the tracks of a session. `view` and the result are in the timeline's time.
async function loadPlaced(placed: Placed, view: Window, width: number, signal: AbortSignal): Promise<Track[]> {
    const { id, offset, streams, bounds } = placed;
    const own: Window = { from: Math.max(0, view.from - offset), to: view.to - offset };
    if (own.to < bounds.from || own.from > bounds.to) {
        return streams.map((stream) => withoutBars(stream, ""));
    }
    const all = await loadSteps(id, own, bounds, width, signal);
    const tracks = streams.map((stream) =>
        loadTrack(id, stream, own, width, all, signal).catch((failure: Error): Track => {
            if (signal.aborted) {
                throw failure;
            }
            return withoutBars(stream, failure.message);
        }),
    );
    return (await Promise.all(tracks)).map((track) => moved(track, offset));
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
    const key = wide && isAny && width > 0 ? `${changes} ${wide.from} ${wide.to} ${width} ${mostRows()} ${ids}` : "";
    const late = useDelayed({ key, places, sessions, window: wide, width }, 40);
    const answer = useAnswer(late.key, (signal) => loadTracks(late.sessions, late.window!, late.width, signal), late.places);
    const isPlaced = late.places === places;
    return { ...answer, value: isPlaced ? answer.value : null, isCurrent: isPlaced && answer.isCurrent && late.key === key };
}
