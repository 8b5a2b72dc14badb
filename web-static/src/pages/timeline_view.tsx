// The parts that the timelines of one and of several sessions share: the visible window, the chosen
// threads, and the table of calls. The window, the selection, the search and the chosen threads are
// in the address.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Window } from "../canvas/scale";
import { isUntimed } from "../estimates";
import { compact, count, counted } from "../format";
import { route, setParameters } from "../router";
import { RowTable } from "../widgets/panel";
import { Time } from "../widgets/small";
import { type CallBar, foldsRecursion, showsAllLevels, type Stream, type Track, trackName } from "./timeline_data";

const TWIN_ROWS = 200;
const TWIN_ROWS_OF_TRACK = 20; // at least
const NARROWEST_NS = 20;
const ADDRESS_DELAY_MS = 150;

function wholeNumber(text: string | null): number | null {
    return text !== null && /^[0-9]{1,15}$/.test(text) ? Number(text) : null;
}

function windowOf(from: string | null, to: string | null): Window | null {
    const first = wholeNumber(from);
    const last = wholeNumber(to);
    return first !== null && last !== null && last > first ? { from: first, to: last } : null;
}

// Returns a window inside of `bounds` that is at least NARROWEST_NS long, if `bounds` is.
function clamp(bounds: Window, from: number, length: number): Window {
    const whole = bounds.to - bounds.from;
    const span = Math.round(Math.min(Math.max(length, NARROWEST_NS), whole));
    const start = Math.round(Math.min(Math.max(from, bounds.from), bounds.to - span));
    return { from: start, to: start + span };
}

const FOLLOWED_NS = 5e9;

// Returns the window at the end of the recording so far. It is as long as the previous window.
function lastOf(bounds: Window, before: Window | null): Window {
    const length = before ? before.to - before.from : Math.min(FOLLOWED_NS, bounds.to - bounds.from);
    return clamp(bounds, bounds.to - length, length);
}

// Returns the visible window and a function that changes it. The window follows keys and mouse at
// once. The address follows when they rest, because browsers limit how often it may change.
export function useView(bounds: Window | null) {
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

export type Show = (from: number, length: number) => void;

interface TwinRow {
    track: Track;
    bar: CallBar;
}

// Lists the bars of the canvas as a table.
export function Twin({ tracks, view }: { tracks: readonly Track[]; view: Window }) {
    const [open, setOpen] = useState(false);
    const each = Math.max(TWIN_ROWS_OF_TRACK, Math.floor(TWIN_ROWS / Math.max(1, tracks.length)));
    const seen = (open ? tracks : []).map((track) => ({
        track,
        bars: track.bars.filter((bar) => bar.right >= view.from && bar.left <= view.to),
    }));
    const all = seen.reduce((sum, { bars }) => sum + bars.length, 0);
    const time = (bar: CallBar, ns: number | null) => <Time ns={ns} isEstimate={isUntimed(bar.flags)} />;
    const rows: TwinRow[] = seen.flatMap(({ track, bars }) => bars.slice(0, each).map((bar) => ({ track, bar })));
    return (
        <details class="card panel twin" onToggle={(event) => setOpen(event.currentTarget.open)}>
            <summary>
                <h2>The same as a table</h2>
            </summary>
            <RowTable
                label="Calls of the timeline"
                rows={rows}
                columns={[
                    { title: "Thread", cell: ({ track }) => trackName(track.stream) },
                    { title: "Depth", number: true, cell: ({ bar }) => bar.depth },
                    { title: "Function", mono: true, cell: ({ bar }) => bar.name },
                    { title: "From", number: true, cell: ({ bar }) => time(bar, bar.left) },
                    {
                        title: "Lasted",
                        number: true,
                        cell: ({ bar }) => time(bar, bar.right - bar.left),
                    },
                    { title: "Self", number: true, cell: ({ bar }) => (bar.count ? "–" : <Time ns={bar.self} isEstimate={bar.isSelfEstimate} />) },
                    {
                        title: "Calls",
                        number: true,
                        cell: ({ bar }) => (bar.call ? count(bar.count ?? 1) : "≈"),
                    },
                    { title: "", cell: ({ bar }) => (bar.striped ? "▲ not exact" : bar.isOpen ? "open" : bar.isUnwound ? "unwound" : "") },
                ]}
            />
            {all > rows.length ? (
                <p class="dim">
                    The first {count(rows.length)} of {count(all)} bars, at most {each} of a thread; zoom in for the others.
                </p>
            ) : null}
        </details>
    );
}

// Returns the ids of the pinned streams. They stay visible while the others scroll.
function pins(): string[] {
    return (route.value.parameters.get("pins") ?? "").split(",").filter((id) => id !== "");
}

// Adds the pinned streams to the shown streams.
export function withPinned(shown: readonly Stream[], streams: readonly Stream[]): Stream[] {
    const wanted = new Set(pins());
    return [...shown, ...streams.filter((stream) => wanted.has(String(stream.stream_id)) && !shown.includes(stream))];
}

export function pinnedFirst(tracks: readonly Track[]): { tracks: Track[]; pinned: number } {
    const wanted = new Set(pins());
    const isPinned = ({ stream }: Track) => wanted.has(String(stream.stream_id));
    const first = tracks.filter(isPinned);
    return { tracks: [...first, ...tracks.filter((track) => !isPinned(track))], pinned: first.length };
}

// Buttons for deep tracks.
export function Levels({ tracks }: { tracks: readonly Track[] }) {
    return (
        <>
            <AllLevels tracks={tracks} />
            <Recursion tracks={tracks} />
        </>
    );
}

// A button that shows each level of recursion as a row. Hidden if no track folds recursion.
function Recursion({ tracks }: { tracks: readonly Track[] }) {
    const isFolding = foldsRecursion();
    return !isFolding || tracks.some((track) => track.isFolded) ? (
        <button
            class="quiet"
            type="button"
            aria-pressed={!isFolding}
            title="draw each level of recursion in deep tracks"
            onClick={() => setParameters({ recursion: isFolding ? "all" : "", tops: "" }, true)}
        >
            Unfold recursion
        </button>
    ) : null;
}

// A button that switches deep tracks between all levels and the first ROWS_MAX. Hidden if all
// levels are drawn anyway.
function AllLevels({ tracks }: { tracks: readonly Track[] }) {
    const isOn = showsAllLevels();
    return isOn || tracks.some((track) => track.levels > track.rows) ? (
        <button
            class="quiet"
            type="button"
            aria-pressed={isOn}
            title="draw every level of deep calls"
            onClick={() => setParameters({ levels: isOn ? "" : "all", tops: "" }, true)}
        >
            All levels
        </button>
    ) : null;
}

function Pin({ stream }: { stream: Stream }) {
    const known = pins();
    const id = String(stream.stream_id);
    const isOn = known.includes(id);
    return (
        <button
            type="button"
            class="quiet"
            aria-pressed={isOn}
            aria-label={`Pin ${trackName(stream)}`}
            title="keep this thread visible, above the others"
            onClick={() => setParameters({ pins: (isOn ? known.filter((one) => one !== id) : [...known, id]).join(",") }, true)}
        >
            pin
        </button>
    );
}

export function Threads({ streams, shown }: { streams: readonly Stream[]; shown: readonly Stream[] }) {
    const chosen = new Set(shown.map((stream) => stream.stream_id));
    const toggle = (stream: Stream) => {
        const next = chosen.has(stream.stream_id)
            ? shown.filter((other) => other !== stream)
            : [...shown, stream];
        const kept = pins().filter((id) => id !== String(stream.stream_id)); // hiding a thread unpins it
        setParameters({
            streams: next.map((other) => other.stream_id).join(","),
            ...(chosen.has(stream.stream_id) ? { pins: kept.join(",") } : {}),
        });
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
                        </label>{" "}
                        <Pin stream={stream} />
                    </li>
                ))}
            </ul>
        </details>
    );
}

