// Sessions of several devices on one timeline. They are aligned by the collector's clock, by their
// starts, or by a mark. The address has the sessions and the alignment.
import { useEffect, useState } from "preact/hooks";
import { type SqlRows, useQuestion } from "../answers";
import type { RowOf, ValuesOf } from "../api";
import type { Window } from "../canvas/scale";
import { count, duration } from "../format";
import { route, setParameters } from "../router";
import { PART_MS, selection } from "../selection";
import { changeOf, resyncs } from "../store";
import { DeviceChip } from "../widgets/device_chip";
import { SqlPanel } from "../widgets/panel";
import { Chip, Problem, Time } from "../widgets/small";
import { CallDetails } from "./call_details";
import { boundsOf, type Placed, type Stream, useTracks } from "./timeline_data";
import { TimelineCanvas } from "./timeline_canvas";
import { Levels, pinnedFirst, type Show, Threads, Twin, useView, withPinned } from "./timeline_view";

const SESSIONS_MAX = 16;
const TRACKS_MAX = 24;
const ROWS = { rows: 5000 };

type Place = RowOf<"web.places">;

// Says how accurate the position of a session is.
function certainty(place: Place, align: string): string {
    if (align === "start") {
        return "not aligned by time: each begins at 0";
    }
    if (align.startsWith("mark:")) {
        const name = align.slice("mark:".length);
        return place.offset_ns === null ? `has no mark ${name}: not shown` : `its first ${name}, by its own clock`;
    }
    if (place.uncertainty_ns === null) {
        return "never compared with the collector's clock: uses the device's own";
    }
    const error = Number(place.clock_error_ns);
    const side = error < 0 ? "ahead" : "behind";
    return `± ${duration(place.uncertainty_ns)}; the device's was ${duration(Math.abs(error))} ${side}`;
}

// Says how accurate a session's clock is, beside the name of its track. Returns "" unless sessions
// are aligned by clock.
function onTrack(place: Place, align: string): string {
    if (align !== "") {
        return "";
    }
    return place.uncertainty_ns === null ? "  clock never compared" : `  ± ${duration(place.uncertainty_ns)}`;
}

function idsOf(text: string | null): string[] {
    const ids = (text ?? "").split(",").filter((id) => /^[1-9][0-9]{0,17}$/.test(id));
    return [...new Set(ids)].slice(0, SESSIONS_MAX);
}

// Returns the ids as a JSON array, the parameter of questions about several sessions.
function listOf(ids: readonly string[]): string {
    return `[${ids.join(",")}]`;
}

interface Shown {
    place: Place;
    placed: Placed;
}

// Returns the chosen streams, else the first streams of each session (about TRACKS_MAX in all), and
// the pinned ones.
function shownStreams(streams: readonly Stream[], sessions: number): Stream[] {
    const wanted = (route.value.parameters.get("streams") ?? "").split(",");
    const chosen = streams.filter((stream) => wanted.includes(String(stream.stream_id)));
    const each = Math.max(1, Math.floor(TRACKS_MAX / Math.max(1, sessions)));
    const seen = new Map<number, number>();
    const first = streams.filter(({ session_id: id }) => {
        seen.set(id, (seen.get(id) ?? 0) + 1);
        return seen.get(id)! <= each;
    });
    return withPinned(chosen.length > 0 ? chosen : first, streams);
}

// Combines sessions with their streams. Leaves out sessions without an offset or without streams.
function placeAll(places: readonly Place[], streams: readonly Stream[]): Shown[] {
    return places.flatMap((place) => {
        const own = streams.filter((stream) => stream.session_id === place.session_id);
        return place.offset_ns === null || own.length === 0
            ? []
            : [{ place, placed: { id: String(place.session_id), offset: Number(place.offset_ns), streams: own, bounds: boundsOf(own) } }];
    });
}

// Returns the time from the first call of all sessions to the last one, in the timeline's time.
function spanOf(shown: readonly Shown[]): Window | null {
    return shown.length === 0
        ? null
        : {
              from: Math.min(...shown.map(({ placed }) => placed.bounds.from + placed.offset)),
              to: Math.max(...shown.map(({ placed }) => placed.bounds.to + placed.offset)),
          };
}

type AreaRow = RowOf<"web.sums_of_sessions">;

// Returns the selected time of each session, in the session's own time.
function areasOf(shown: readonly Shown[], area: Window): string {
    const at = (ns: number, offset: number) => Math.max(0, ns - offset);
    return JSON.stringify(shown.map(({ placed: { id, offset } }) => [Number(id), at(area.from, offset), at(area.to, offset)]));
}

function Selected({ shown, area, show }: { shown: readonly Shown[]; area: Window; show: Show }) {
    const chosen = selection.value;
    const values = { areas: areasOf(shown, area), ...(chosen.functions ? { functions: chosen.functions } : {}) };
    const answer = useQuestion("web.sums_of_sessions", values, 0, { ms: PART_MS });
    const time = (row: AreaRow, ns: number | null) => <Time ns={ns} isEstimate={row.is_estimate} />;
    return (
        <div class="lists">
            <p class="chips">
                <button class="quiet" type="button" onClick={() => show(area.from, area.to - area.from)}>
                    Zoom to the selected time
                </button>
            </p>
            <SqlPanel
                title="Calls that began in the selection"
                question="web.sums_of_sessions"
                values={values}
                answer={answer}
                none="No call began in the selection."
                columns={[
                    { title: "Device", cell: (row) => row.device },
                    { title: "Session", cell: (row) => row.title },
                    { title: "Function", mono: true, cell: (row) => row.name },
                    { title: "Calls", number: true, cell: (row) => count(row.calls) },
                    { title: "Self", number: true, cell: (row) => <Time ns={row.self_ns} isEstimate={row.is_self_estimate} /> },
                    { title: "Total", number: true, cell: (row) => time(row, row.total_ns) },
                    { title: "Longest", number: true, cell: (row) => time(row, row.max_ns) },
                ]}
            />
        </div>
    );
}

function Alignment({ ids, align }: { ids: readonly string[]; align: string }) {
    const marks = useQuestion("web.marks_of_sessions", { sessions: listOf(ids) });
    return (
        <label class="field">
            Aligned by
            <select
                value={align}
                onChange={(event) => setParameters({ align: event.currentTarget.value, from: "", to: "", area: "" })}
            >
                <option value="">the collector's clock</option>
                <option value="start">their beginnings</option>
                {marks.rows.map(({ name, sessions }) => (
                    <option key={name} value={`mark:${name}`}>
                        {`the first mark ${name}${sessions < ids.length ? `, of ${count(sessions)} of them` : ""}`}
                    </option>
                ))}
            </select>
        </label>
    );
}

function Places({ values, answer, ids, align }: {
    values: ValuesOf<"web.places">;
    answer: SqlRows<Place>;
    ids: readonly string[];
    align: string;
}) {
    const without = (id: number) => ids.filter((other) => other !== String(id)).join(",");
    return (
        <SqlPanel
            title="Sessions on this timeline"
            question="web.places"
            values={values}
            answer={answer}
            none="None of these sessions exists."
            columns={[
                { title: "Device", cell: (row) => row.device },
                { title: "Session", cell: (row) => <a href={`/sessions/${row.session_id}?view=timeline`}>{row.title}</a> },
                { title: "Begins at", number: true, cell: (row) => duration(row.offset_ns) },
                { title: "Clock", cell: (row) => certainty(row, align) },
                {
                    title: "",
                    cell: (row) => (
                        <button
                            type="button"
                            class="quiet"
                            aria-label={`Remove session ${row.session_id}`}
                            onClick={() => setParameters({ sessions: without(row.session_id), streams: "", from: "", to: "" })}
                        >
                            ×
                        </button>
                    ),
                },
            ]}
        />
    );
}

function Chips() {
    const { area, functions } = selection.value;
    return (
        <div class="chips selection" role="group" aria-label="Selection">
            <DeviceChip />
            {area ? (
                <Chip
                    label={`Time: ${duration(area.to - area.from)} from ${duration(area.from)}`}
                    onRemove={() => setParameters({ area: "" })}
                />
            ) : null}
            {functions ? <Chip label={`Functions: ${functions}`} onRemove={() => setParameters({ functions: "" })} /> : null}
        </div>
    );
}

function useChanges(ids: readonly string[]): number {
    return ids.reduce((sum, id) => sum + (changeOf.value[id] ?? 0), resyncs.value);
}

function Chart({ shown, align, changes }: { shown: readonly Shown[]; align: string; changes: number }) {
    const [width, setWidth] = useState(0);
    const bounds = spanOf(shown)!;
    const { view, show } = useView(bounds);
    const named = shown.flatMap(({ place, placed }) =>
        placed.streams.map((stream) => ({ ...stream, session: `${place.device} · ${place.title}`, clock: onTrack(place, align) })),
    );
    const streams = shownStreams(named, shown.length);
    const placed = shown.map(({ placed: one }) => ({
        ...one,
        streams: streams.filter((stream) => String(stream.session_id) === one.id),
    }));
    const loaded = useTracks(placed, view, width, changes);
    const sessions = listOf(shown.map(({ placed: { id } }) => id));
    const offsets = new Map(shown.map(({ place, placed: { offset } }) => [place.session_id, offset]));
    const gaps = useQuestion("web.gaps_of_sessions", { sessions }, changes, { rows: 3000 });
    const marks = useQuestion("web.marks_and_notes_of_sessions", { sessions }, changes, { rows: 3000 });
    const at = (session: number) => offsets.get(session) ?? 0;
    const { tracks, pinned } = pinnedFirst(loaded.value?.tracks ?? []);
    const { area } = selection.value;
    const call = route.value.parameters.get("call") ?? "";
    const stream = /^[0-9]{1,19}$/.test(call) ? Number(BigInt(call) >> 38n) : null;
    const owner = named.find((one) => one.stream_id === stream);
    return (
        <>
            {loaded.problem ? <Problem message={loaded.problem} /> : null}
            <div class="tools">
                <input
                    type="search"
                    aria-label="Highlight calls by function"
                    placeholder="Highlight functions…  /"
                    value={route.value.parameters.get("q") ?? ""}
                    onInput={(event) => setParameters({ q: event.currentTarget.value }, true)}
                />
                <Threads streams={named} shown={streams} />
                <Levels tracks={tracks} />
                <span class="dim legend">
                    <kbd>?</kbd> keys and gestures; hatched: lost (above: of threads without a track), grey: waited for the recorder, striped: not exact, ~: estimate
                </span>
            </div>
            <TimelineCanvas
                {...{ bounds, view: view!, show, tracks, pinned, width, setWidth }}
                gaps={gaps.rows.map((gap) => ({ ...gap, start_ns: gap.start_ns + at(gap.session_id), end_ns: gap.end_ns + at(gap.session_id) }))}
                marks={marks.rows.map((mark) => ({ ...mark, at_ns: mark.at_ns + at(mark.session_id) }))}
                selected={area ? [area] : []}
                isCurrent={loaded.isCurrent}
            />
            {owner ? <CallDetails key={call} session={String(owner.session_id)} call={call} /> : null}
            {area ? <Selected shown={shown} area={area} show={show} /> : null}
            <Twin tracks={tracks} view={view!} />
        </>
    );
}

function Timelines({ ids }: { ids: readonly string[] }) {
    const align = route.value.parameters.get("align") ?? "";
    const changes = useChanges(ids);
    const sessions = listOf(ids);
    const isMark = align.startsWith("mark:");
    const values = { sessions, align: isMark ? "mark" : align || "clock", ...(isMark ? { mark: align.slice("mark:".length) } : {}) };
    const places = useQuestion("web.places", values, changes);
    const streams = useQuestion("web.streams_of_sessions", { sessions }, changes, ROWS);
    const { device } = selection.value;
    const wanted = places.rows.filter((place) => device === "" || device === String(place.device_id));
    const shown = placeAll(wanted, streams.rows.filter((stream) => stream.from_ns !== null));
    const isThere = places.value !== null && streams.value !== null;
    return (
        <>
            <div class="tools">
                <Alignment ids={ids} align={align} />
                <Chips />
            </div>
            {streams.problem ? <Problem message={streams.problem} /> : null}
            {shown.length > 0 ? <Chart key={sessions} shown={shown} align={align} changes={changes} /> : null}
            {shown.length === 0 ? <p class="empty">{isThere ? "None of these sessions has a call to show." : "Loading…"}</p> : null}
            <Places {...{ values, ids, align }} answer={places} />
        </>
    );
}

export function TimelinesPage() {
    useEffect(() => {
        document.title = "Timeline · Sojourn";
    }, []);
    const ids = idsOf(route.value.parameters.get("sessions"));
    return (
        <div class="page">
            <h1>Several sessions on one timeline</h1>
            {ids.length > 0 ? (
                <Timelines ids={ids} />
            ) : (
                <p class="empty">
                    No session is chosen: tick some, of one device or of several, in the <a href="/">list of sessions</a>,
                    and choose <strong>Timeline</strong>. At most {SESSIONS_MAX} are shown.
                </p>
            )}
        </div>
    );
}
