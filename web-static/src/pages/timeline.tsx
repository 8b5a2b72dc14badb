// The timeline of one session: single calls of each thread on a canvas, and a table of the same
// calls below. The window, the selection, the search, and the shown and pinned threads are in the
// address.
import { useEffect, useState } from "preact/hooks";
import { useKept, useQuestion } from "../answers";
import type { Overview, RowOf } from "../api";
import type { Window } from "../canvas/scale";
import { count, percent } from "../format";
import { route, setParameters } from "../router";
import { addressOf, isPart, PART_MS, type Selection, selection, valuesOf } from "../selection";
import { SqlPanel } from "../widgets/panel";
import { Problem, Time } from "../widgets/small";
import { CallDetails } from "./call_details";
import { Notes } from "./notes";
import { quantised, type Stream, useStreams, useTracks } from "./timeline_data";
import { TimelineCanvas } from "./timeline_canvas";
import { Levels, pinnedFirst, type Show, Threads, Twin, useView, withPinned } from "./timeline_view";

const TRACKS_MAX = 24;

type AreaRow = RowOf<"web.sums_of_selection">;

// The functions of a selection that is only a part of the session.
function Selected({ session, chosen, show }: { session: Overview; chosen: Selection; show: Show }) {
    const values = valuesOf(session.id, chosen);
    const { area } = chosen;
    const ofTime = { ...values, from: area?.from ?? 0, to: area?.to ?? 0 };
    const isTimeOnly = chosen.threads.length === 0 && chosen.mark === "";
    const question = isTimeOnly ? "web.sums_of_time" : "web.sums_of_selection";
    const answer = useQuestion(question, isTimeOnly ? ofTime : values, 0, { ms: PART_MS });
    const self = answer.rows.reduce((sum, row) => sum + row.self_ns, 0);
    const time = (row: AreaRow, ns: number | null) => <Time ns={ns} isEstimate={row.is_estimate} />;
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
                question={question}
                values={values}
                answer={answer}
                none="No matching call began in the selection."
                columns={[
                    {
                        title: "Function",
                        mono: true,
                        cell: (row) => (
                            <a href={addressOf(session.id, { view: "tree", function: row.function_id })}>{row.name}</a>
                        ),
                    },
                    { title: "Calls", number: true, cell: (row) => count(row.calls) },
                    { title: "Self", number: true, cell: (row) => <Time ns={row.self_ns} isEstimate={row.is_self_estimate} /> },
                    { title: "Share", number: true, cell: (row) => percent(row.self_ns, self) },
                    { title: "Total", number: true, cell: (row) => time(row, row.total_ns) },
                    { title: "Longest", number: true, cell: (row) => time(row, row.max_ns) },
                ]}
            />
        </div>
    );
}

// Fades calls that do not match the search. The button jumps to the next call of the best match.
function Search({ session, view }: { session: Overview; view: Window }) {
    const search = route.value.parameters.get("q") ?? "";
    const best = useQuestion(search ? "web.best_match" : "", { session: session.id, text: search });
    const [wanted, setWanted] = useState<{ function: number; after: number } | null>(null);
    const [last, setLast] = useState(-1); // start of the call that was found last
    const fn = best.rows[0]?.function_id;
    const values = { session: session.id, function: wanted?.function ?? 0, after: wanted?.after ?? 0 };
    const next = useQuestion(wanted ? "web.next_call" : "", values, 0, { ms: 20000 });
    useEffect(() => setWanted(null), [search]); // a new search cancels the pending jump
    useEffect(() => {
        const found = next.rows[0];
        if (wanted && next.isCurrent && found) {
            const length = Math.max(200, (found.duration_ns ?? 0) * 4);
            const from = Math.max(0, Math.floor(found.start_ns - length / 2));
            setParameters({ from: `${from}`, to: `${from + Math.ceil(length)}`, call: `${found.call_id}` });
            setLast(found.start_ns);
            setWanted(null);
        }
    }, [next.isCurrent, next.rows[0]?.call_id, wanted]);
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
                <button
                    class="quiet"
                    type="button"
                    onClick={() => setWanted({ function: fn, after: last >= view.from && last <= view.to ? last : view.from - 1 })}
                >
                    Next call of {best.rows[0]!.name.slice(0, 40)}
                </button>
            ) : null}
            {search && best.value && fn === undefined ? <span class="dim">no function matches</span> : null}
            {wanted && next.isCurrent && next.rows.length === 0 ? (
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
            title="keep the end of the recording in view; moving or zooming stops it"
            onClick={() => setParameters({ follow: isOn ? "" : "1" })}
        >
            {isOn ? "● Following" : "Follow"}
        </button>
    );
}

// Returns the streams of the selected threads.
function selectedStreams(streams: readonly Stream[]): string[] {
    const threads = selection.value.threads;
    return streams
        .filter((stream) => threads.includes(String(stream.thread_id)))
        .map((stream) => String(stream.stream_id));
}

// Returns the streams in the address, else those of the selected threads, else the first
// TRACKS_MAX. Pinned streams are added.
function shownStreams(streams: readonly Stream[]): Stream[] {
    const wanted = (route.value.parameters.get("streams") ?? "").split(",").filter((id) => id !== "");
    const chosen = (wanted.length > 0 ? wanted : selectedStreams(streams))
        .map((id) => streams.find((stream) => String(stream.stream_id) === id))
        .filter((stream) => stream !== undefined);
    return withPinned(chosen.length > 0 ? chosen : streams.slice(0, TRACKS_MAX), streams);
}

export function TimelineView({ session, changes }: { session: Overview; changes: number }) {
    const [width, setWidth] = useState(0); // 0 until it is measured: nothing is loaded
    const { streams, bounds, problem } = useStreams(session.id, changes);
    const { view, show } = useView(bounds);
    const shown = shownStreams(streams);
    const chosen = selection.value;
    const placed = bounds ? [{ id: session.id, offset: 0, streams: shown, bounds }] : [];
    const loaded = useTracks(placed, view, width, changes);
    // Asked after the first picture is drawn, so that the server caches the sums of all blocks.
    useQuestion(loaded.value ? "web.sums_of_session" : "", { session: session.id }, 0, { ms: 30000 });
    const wide = view && view.to > view.from ? quantised(view) : { from: 0, to: 0 };
    const gaps = useQuestion(
        bounds ? "web.gaps" : "",
        { session: session.id, from: wide.from, to: wide.to },
        changes,
        { rows: 3000 },
    );
    const shownGaps = useKept(gaps.isCurrent ? gaps.rows : null, session.id) ?? [];
    const marks = useQuestion("web.marks_and_notes", { session: session.id }, changes, { rows: 3000 });
    const spans = useQuestion(chosen.mark ? "web.selected_spans" : "", valuesOf(session.id, chosen), changes);
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
    const { tracks, pinned } = pinnedFirst(loaded.value?.tracks ?? []);
    return (
        <section class="lists" aria-label="Timeline of the session">
            {said ? <Problem message={said} /> : null}
            <div class="tools">
                <Search session={session} view={view} />
                <Threads streams={streams} shown={shown} />
                <Levels tracks={tracks} />
                {session.state === "recording" ? <Follow /> : null}
                <span class="dim legend">
                    <kbd>?</kbd> keys and gestures; hatched: lost (above: of threads without a track), grey: waited for the recorder, striped: not exact, ~: estimate
                </span>
            </div>
            <TimelineCanvas
                {...{ bounds, view, show, tracks, pinned, width, setWidth }}
                gaps={shownGaps}
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
