import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, askQuestion, type LossRow, type Overview, rowsOf, type RowOf } from "../api";
import { bytes, compact, count, counted, dateTime, duration } from "../format";
import { route } from "../router";
import { changeOf, isFollowing, resyncs } from "../store";
import { Download, save } from "../widgets/download";
import { EstimatesNote, Problem, StatePill, Tile } from "../widgets/small";
import { waitsText } from "../waits";
import { lazy } from "../widgets/lazy";
import { SelectionBar } from "../widgets/selection_bar";
import { CallTreeView } from "./call_tree";
import { FunctionsView } from "./functions";
import { addressOf, selection } from "../selection";
import { prepareTimeline } from "./timeline_data";
import { MissingView } from "./missing";

const TimelineView = lazy(() => import("./timeline").then((page) => page.TimelineView));
const FlameView = lazy(() => import("./flame").then((page) => page.FlameView));
const OverviewView = lazy(() => import("./overview").then((page) => page.OverviewView));
const FunctionView = lazy(() => import("./function").then((page) => page.FunctionView));
const LiveView = lazy(() => import("./live").then((page) => page.LiveView));
const WhyView = lazy(() => import("./why").then((page) => page.WhyView));

const lazyViews: Record<string, { prepare: () => void }> = {
    timeline: TimelineView,
    flame: FlameView,
    overview: OverviewView,
    function: FunctionView,
    live: LiveView,
    why: WhyView,
};

const views: readonly (readonly [string, string])[] = [
    ["", "Functions"],
    ["tree", "Call tree"],
    ["overview", "Overview"],
    ["missing", "Missing"],
    ["timeline", "Timeline"],
    ["flame", "Flame graph"],
    ["live", "Live"],
];

const unselected = new Set(["missing", "live", "why"]); // these views show the whole session, or one call

const reasons: Record<string, string> = {
    ring_full: "the recorder's memory was full",
    no_thread_slot: "there were too many threads",
    torn: "the process died in the middle of a record",
    paused: "recording was paused",
    spool_full: "the device's disk budget was used up",
    not_stored: "they came from the device and are not stored: frames were refused, or an older copy of the database was restored",
    orphan: "an exit without its entry",
};

// Says what a session without a known loss contains.
function completenessText(session: Overview): string {
    if (session.state === "recording") {
        return "All calls received so far are stored.";
    }
    if (session.sent_calls === null) {
        return "The device did not say how many calls it sent, so the end may be missing.";
    }
    return "Every call of every hooked function is here.";
}

// Returns the number of calls that the device sent and that are neither stored nor counted as lost.
function notArrived(session: Overview): number {
    const known = session.stored_calls + session.lost_calls;
    return Math.max(0, (session.sent_calls ?? 0) - known);
}

function countsOf(loss: LossRow): string {
    return [
        ...(loss.calls > 0 ? [counted(loss.calls, "call")] : []),
        ...(loss.calls === 0 && loss.events > 0 ? [counted(loss.events, "event")] : []),
        counted(loss.gaps, "gap"),
    ].join(", ");
}

function explain(loss: LossRow): string {
    return `${reasons[loss.reason] ?? loss.reason} (${countsOf(loss)})`;
}

// Returns the number of blocks that were sent and not stored. Returns 0 if a gap reports them
// already.
function silentBlocks(session: Overview): number {
    const isReported = session.loss.items.some((loss) => loss.reason === "not_stored");
    return isReported ? 0 : session.missing_blocks;
}

// Lists what is missing. Empty if no loss is known.
function lossesOf(session: Overview): string[] {
    const blocks = session.counts.quarantined_blocks;
    const silent = silentBlocks(session);
    const missing = notArrived(session);
    return [
        ...session.loss.items.filter((loss) => loss.calls > 0 || loss.events > 0).map(explain),
        ...(silent > 0
            ? [`${counted(silent, "block")} ${silent === 1 ? "was" : "were"} sent and ${silent === 1 ? "is" : "are"} not stored`]
            : []),
        ...(blocks > 0 ? [`${counted(blocks, "block")} cannot be read`] : []),
        ...(missing > 0
            ? [`${counted(missing, "call")} ${missing === 1 ? "was" : "were"} sent and did not arrive`]
            : []),
    ];
}

function lossTitle(session: Overview): string {
    if (session.lost_calls > 0) {
        return `${counted(session.lost_calls, "call")} lost.`;
    }
    return session.loss.items.some((loss) => loss.events > 0)
        ? "Events were lost."
        : "Some of the data that the device sent is missing.";
}

// Explains that a flight recording stores calls only in dumps, and that a dump is only a part of
// the run.
function FlightNote({ session }: { session: Overview }) {
    if (session.parent_session_id !== null) {
        return (
            <p class="banner" role="note">
                A flight dump: the last seconds of <a href={`/sessions/${session.parent_session_id}`}>session {session.parent_session_id}</a> when a trigger fired.
                {session.counts.before_calls > 0
                    ? ` Sums count ${counted(session.counts.before_calls, "call")} that began before it, single calls do not.`
                    : ""}
            </p>
        );
    }
    if (session.mode !== "flight") {
        return null;
    }
    return (
        <p class="banner" role="note">
            A flight recording: it keeps the last seconds in memory, and stores calls only when a trigger asks for a dump.{" "}
            {session.counts.dumps > 0 ? (
                <a href={addressOf(session.id, { view: "live" })}>{counted(session.counts.dumps, "dump")}</a>
            ) : (
                "No flight dumps yet."
            )}
        </p>
    );
}

function LossBanner({ session }: { session: Overview }) {
    const untrusted = session.counts.untrusted_calls;
    const loss = lossesOf(session);
    if (loss.length === 0 && session.lost_calls === 0) {
        return (
            <p class="banner good">
                <strong>✓ No loss is known.</strong> {completenessText(session)}
                {waitsText(session)}
            </p>
        );
    }
    return (
        <p class="banner warn" role="note">
            <strong>▲ {lossTitle(session)}</strong> {loss.join("; ")}
            {untrusted > 0 ? `. The times of ${count(untrusted)} calls are not exact because of it` : ""}
            .{waitsText(session)}{" "}
            <a href={addressOf(session.id, { view: "missing" })}>Details</a>
        </p>
    );
}

// The number of calls without an exit. The sums include them only after recording has ended.
function OpenTile({ counts }: { counts: Overview["counts"] }) {
    if (counts.running_calls > 0) {
        const since = `${counted(counts.running_calls, "call")} open, the first since ${duration(counts.running_since_ns)}: not counted yet`;
        return (
            <Tile label="Open now" hint={since}>
                {count(counts.running_calls)} since {duration(counts.running_since_ns)}
            </Tile>
        );
    }
    return counts.open_calls > 0 ? (
        <Tile label="Open at the end" hint="counted up to the end of recording">
            {count(counts.open_calls)}
        </Tile>
    ) : null;
}

function SessionHeader({ session }: { session: Overview }) {
    const device = [session.device_name, session.device_model, session.device_os]
        .filter((part) => part !== "")
        .join(" · ");
    return (
        <section class="session-head">
            <div class="title-line">
                <h1 class="mono">{session.name || session.command || `session ${session.id}`}</h1>
                <StatePill state={session.state} />
                <span class="grow" />
                <Export session={session} />
            </div>
            <p class="dim">
                {device} {session.device_machine ? `(${session.device_machine})` : ""} · started{" "}
                {dateTime(session.started_realtime_ns)} · {session.mode}
                {session.cause ? ` · ${session.cause}` : ""}
            </p>
            <FlightNote session={session} />
            <LossBanner session={session} />
            <EstimatesNote untimed={session.counts.untimed_calls} calls={session.stored_calls} />
            <dl class="tiles">
                <Tile label="Duration">{duration(session.duration_ns)}</Tile>
                <Tile label="Calls" hint={`${count(session.stored_calls)} calls`}>
                    {compact(session.stored_calls)}
                </Tile>
                <OpenTile counts={session.counts} />
                <Tile label="Functions">{count(session.counts.functions)}</Tile>
                <Tile label="Call paths">{compact(session.counts.call_paths)}</Tile>
                <Tile label="Threads">{count(session.counts.threads)}</Tile>
                <Tile label="Stored" hint={`${count(session.stored_blocks)} blocks`}>
                    {bytes(session.stored_bytes)}
                </Tile>
            </dl>
        </section>
    );
}

const formats: readonly (readonly [string, string])[] = [
    ["function.txt", "function.txt: a line for each entry and exit"],
    ["report.txt", "report.txt: what each function cost"],
    ["folded", "folded paths, for speedscope and flame graph tools"],
    ["chrome-json", "trace events, for Perfetto, speedscope and chrome://tracing"],
    ["perfetto", "Perfetto's binary trace, for ui.perfetto.dev"],
    ["speedscope", "speedscope: every call"],
    ["firefox", "Firefox Profiler: call stacks over time"],
    ["pprof", "pprof: call paths, for go tool pprof"],
    ["callgrind", "callgrind: functions and callees, for KCachegrind"],
    ["lcov", "lcov: coverage, for genhtml"],
    ["cobertura", "cobertura: coverage as XML, for build servers"],
    ["parquet", "Parquet: the calls, for DuckDB, ClickHouse and data frames"],
    ["arrow", "Arrow: the calls, for Python, R and data frames"],
];

// Describes the selection in words, for the exported page.
async function selectionInWords(session: Overview): Promise<string[]> {
    const { device, area, threads, mark, functions } = selection.value;
    const known =
        threads.length > 0 ? rowsOf<RowOf<"web.thread_names">>(await askQuestion("web.thread_names", { session: session.id })) : [];
    return [
        ...(device ? [`Device: ${session.device_name}`] : []),
        ...(area ? [`Time: ${duration(area.to - area.from)} from ${duration(area.from)}`] : []),
        ...known
            .filter((thread) => threads.includes(String(thread.thread_id)))
            .map((thread) => `Thread: ${thread.name} (${thread.tid})`),
        ...(mark ? [`Mark: ${mark}`] : []),
        ...(functions ? [`Functions: ${functions}`] : []),
    ];
}

// Writes the selection to one HTML page that opens without a server.
function OnePage({ session }: { session: Overview }) {
    const [said, setSaid] = useState("");
    const make = async () => {
        setSaid("Creating the file…");
        try {
            const [{ gather, pageOf }, template] = await Promise.all([
                import("../one_file_data"),
                fetch("/one_file.html").then((answer) => answer.text()),
            ]);
            const data = await gather(session, selection.value, await selectionInWords(session));
            save(`session-${session.id}.html`, new Blob([pageOf(template, data)], { type: "text/html" }));
            setSaid("");
        } catch (failure) {
            setSaid((failure as Error).message);
        }
    };
    return (
        <li>
            <button type="button" class="link-button" onClick={() => void make()}>
                one HTML page of the selection, for offline use
            </button>{" "}
            <span role="status">{said}</span>
        </li>
    );
}

// Downloads a session in the formats of other tools. Nothing is sent to another server.
function Export({ session }: { session: Overview }) {
    return (
        <details class="threads">
            <summary>Export</summary>
            <ul class="card">
                <OnePage session={session} />
                {formats.map(([format, title]) => (
                    <li key={format}>
                        <Download path={`sessions/${session.id}/export?format=${format}`}>{title}</Download>
                    </li>
                ))}
                <li class="dim">
                    Without a network, <code>speedscope FILE</code> (npm) opens folded paths and trace events, and{" "}
                    <code>chrome://tracing</code>, where the browser still has it, trace events; see <code>man sojourn-export</code>.
                </li>
            </ul>
        </details>
    );
}

function View({ session, view, changes }: { session: Overview; view: string; changes: number }) {
    switch (view) {
        case "tree":
            return <CallTreeView session={session} changes={changes} />;
        case "overview":
            return <OverviewView session={session} changes={changes} />;
        case "missing":
            return <MissingView session={session} changes={changes} />;
        case "timeline":
            return <TimelineView session={session} changes={changes} />;
        case "flame":
            return <FlameView session={session} changes={changes} />;
        case "function":
            return <FunctionView key={route.value.parameters.get("function") ?? ""} session={session} changes={changes} />;
        case "live":
            return <LiveView session={session} changes={changes} />;
        case "why":
            return <WhyView key={route.value.parameters.get("call") ?? ""} session={session} />;
        default:
            return <FunctionsView session={session} changes={changes} />;
    }
}

// The address of another view of the session. It keeps the selection, filter and order.
function viewAddress(id: string, view: string): string {
    const parameters = new URLSearchParams(route.value.parameters);
    ["view", "call", "frame", "mode", "range", "follow"].forEach((name) => parameters.delete(name));
    if (view) {
        parameters.set("view", view);
    }
    const text = parameters.toString();
    return `/sessions/${id}${text ? `?${text}` : ""}`;
}

function Tabs({ id, view }: { id: string; view: string }) {
    return (
        <nav class="tabs" aria-label="Views of the session">
            {views.map(([key, title]) => (
                <a
                    key={key}
                    href={viewAddress(id, key)}
                    {...(key === view ? { "aria-current": "page" as const } : {})}
                >
                    {title}
                </a>
            ))}
        </nav>
    );
}

const CALM_MS = 1000;

// Returns `changes`, but updates it at most once a second, so that requests can be answered before
// the next change.
function useCalm(changes: number): number {
    const [calm, setCalm] = useState(changes);
    const latest = useRef(changes);
    const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
    latest.current = changes;
    useEffect(() => {
        if (changes === calm || timer.current !== undefined) {
            return;
        }
        setCalm(changes);
        timer.current = setTimeout(() => {
            timer.current = undefined;
            setCalm(latest.current);
        }, CALM_MS);
    }, [changes, calm]);
    useEffect(() => () => clearTimeout(timer.current), []);
    return calm;
}

// A session belongs to one device. If another device is selected, the session has no calls to show.
function OnDevice({ session, children }: { session: Overview; children: ComponentChildren }) {
    const { device } = selection.value;
    return device !== "" && device !== session.device_id ? (
        <p class="empty">This session belongs to {session.device_name}, not to the selected device.</p>
    ) : (
        <>{children}</>
    );
}

// Starts to load what the view needs, while the session itself is still loading.
function prepareView(id: string): Promise<Overview> {
    const parameters = route.value.parameters;
    const view = parameters.get("view") ?? "";
    lazyViews[view]?.prepare();
    if (view === "timeline") {
        const changes = (changeOf.value[id] ?? 0) + resyncs.value;
        prepareTimeline(id, changes);
    }
    return api.overview(id);
}

// Loads the overview of a session and counts its changes. A change that happened before the event
// stream was connected counts once.
function useOverview(id: string, prepared: Promise<Overview>) {
    const first = useRef<Promise<Overview> | null>(prepared);
    const [session, setSession] = useState<Overview | null>(null);
    const [problem, setProblem] = useState("");
    const [missed, setMissed] = useState(0);
    const text = useRef("");
    const turn = useRef(0); // number of the latest request
    const shown = useRef(0); // number of the request whose answer is shown: answers may arrive out of order
    const changes = useCalm((changeOf.value[id] ?? 0) + resyncs.value);
    const follows = isFollowing.value;
    const followed = useRef(follows);
    useEffect(() => {
        const begins = follows && !followed.current;
        followed.current = follows;
        const asked = first.current ?? api.overview(id);
        first.current = null;
        const mine = ++turn.current;
        const isOvertaken = () => {
            const latest = shown.current;
            shown.current = Math.max(mine, latest);
            return mine < latest;
        };
        asked.then(
            (loaded) => {
                if (isOvertaken()) {
                    return;
                }
                const before = text.current;
                text.current = JSON.stringify(loaded);
                if (begins && before !== "" && before !== text.current) {
                    setMissed((count) => count + 1);
                }
                if (before !== text.current) {
                    setSession(loaded);
                }
                setProblem("");
                document.title = `${loaded.name || loaded.command} · Sojourn`;
            },
            (failure: Error) => isOvertaken() || setProblem(failure.message),
        );
    }, [id, changes, follows]);
    return { session, problem, changes: changes + missed };
}

export function SessionPage({ id }: { id: string }) {
    const [prepared] = useState(() => prepareView(id));
    const { session, problem, changes } = useOverview(id, prepared);
    if (!session) {
        return problem ? (
            <div class="page">
                <h1>Session {id}</h1>
                <Problem message={problem} />
            </div>
        ) : (
            <p class="empty">Loading…</p>
        );
    }
    const view = route.value.parameters.get("view") ?? "";
    return (
        <div class="page session">
            {problem ? <Problem message={problem} /> : null}
            <SessionHeader session={session} />
            <Tabs id={id} view={view} />
            {unselected.has(view) ? null : <SelectionBar session={id} changes={changes} />}
            {unselected.has(view) ? (
                <View session={session} view={view} changes={changes} />
            ) : (
                <OnDevice session={session}>
                    <View session={session} view={view} changes={changes} />
                </OnDevice>
            )}
        </div>
    );
}
