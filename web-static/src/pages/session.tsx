import { useEffect, useState } from "preact/hooks";
import { api, type LossRow, type Overview } from "../api";
import { bytes, compact, count, dateTime, duration } from "../format";
import { route } from "../router";
import { changeOf } from "../store";
import { Problem, StatePill, Tile } from "../widgets/small";
import { CallTreeView } from "./call_tree";
import { FunctionsView } from "./functions";
import { MissingView } from "./missing";
import { OverviewView } from "./overview";

const views: readonly (readonly [string, string])[] = [
    ["", "Functions"],
    ["tree", "Call tree"],
    ["overview", "Overview"],
    ["missing", "Missing"],
];

const reasons: Record<string, string> = {
    ring_full: "the recorder's memory was full",
    no_thread_slot: "there were too many threads",
    torn: "the process died in the middle of a record",
    paused: "recording was paused",
    spool_full: "the device's disk budget was used up",
    waited: "threads waited for the recorder",
    orphan: "a leave without its enter",
};

function countOf(value: number, noun: string): string {
    return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

// What the numbers allow to be said, and no more.
function losslessText(session: Overview): string {
    if (session.state === "recording") {
        return "Every call that has arrived so far is here.";
    }
    if (session.sent_calls === null) {
        return "The device did not say how many calls it sent, so the end may be missing.";
    }
    return "Every call of every hooked function is here.";
}

function isLossless(session: Overview): boolean {
    return (
        session.lost_calls === 0 &&
        session.loss.items.length === 0 &&
        session.counts.quarantined_blocks === 0 &&
        (session.sent_calls === null || session.sent_calls <= session.stored_calls)
    );
}

function explain(loss: LossRow): string {
    return `${reasons[loss.reason] ?? loss.reason} (${countOf(loss.calls, "call")}, ${countOf(loss.gaps, "gap")})`;
}

function otherLoss(session: Overview): string[] {
    const blocks = session.counts.quarantined_blocks;
    const missing = (session.sent_calls ?? 0) - session.stored_calls;
    return [
        ...(blocks > 0 ? [`${countOf(blocks, "block")} cannot be read`] : []),
        ...(missing > 0 ? [`${countOf(missing, "call")} were sent and have not arrived`] : []),
    ];
}

function LossBanner({ session }: { session: Overview }) {
    const untrusted = session.counts.untrusted_calls;
    if (isLossless(session)) {
        return (
            <p class="banner good">
                <strong>✓ No loss is known.</strong> {losslessText(session)}
            </p>
        );
    }
    return (
        <p class="banner warn" role="note">
            <strong>▲ {countOf(session.lost_calls, "call")} lost.</strong>{" "}
            {[...session.loss.items.map(explain), ...otherLoss(session)].join("; ")}
            {untrusted > 0 ? `. The times of ${count(untrusted)} calls are not exact because of it` : ""}
            .{" "}
            <a href={`/sessions/${session.id}?view=missing`}>Where</a>
        </p>
    );
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
            </div>
            <p class="dim">
                {device} {session.device_machine ? `(${session.device_machine})` : ""} · started{" "}
                {dateTime(session.started_realtime_ns)} · {session.mode}
                {session.cause ? ` · ${session.cause}` : ""}
            </p>
            <LossBanner session={session} />
            <dl class="tiles">
                <Tile label="Duration">{duration(session.duration_ns)}</Tile>
                <Tile label="Calls" hint={`${count(session.stored_calls)} calls`}>
                    {compact(session.stored_calls)}
                </Tile>
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

function View({ session, view, changes }: { session: Overview; view: string; changes: number }) {
    switch (view) {
        case "tree":
            return <CallTreeView session={session} />;
        case "overview":
            return <OverviewView session={session} />;
        case "missing":
            return <MissingView session={session} />;
        default:
            return <FunctionsView session={session} changes={changes} />;
    }
}

function Tabs({ id, view }: { id: string; view: string }) {
    return (
        <nav class="tabs" aria-label="Views of the session">
            {views.map(([key, title]) => (
                <a
                    key={key}
                    href={`/sessions/${id}${key ? `?view=${key}` : ""}`}
                    {...(key === view ? { "aria-current": "page" as const } : {})}
                >
                    {title}
                </a>
            ))}
        </nav>
    );
}

export function SessionPage({ id }: { id: string }) {
    const [session, setSession] = useState<Overview | null>(null);
    const [problem, setProblem] = useState("");
    const changes = changeOf.value[id] ?? 0;
    useEffect(() => {
        api.overview(id).then(
            (loaded) => {
                setSession(loaded);
                setProblem("");
                document.title = `${loaded.name || loaded.command} · Sojourn`;
            },
            (failure: Error) => setProblem(failure.message),
        );
    }, [id, changes]);
    if (problem) {
        return <Problem message={problem} />;
    }
    if (!session) {
        return <p class="empty">Loading…</p>;
    }
    const view = route.value.parameters.get("view") ?? "";
    return (
        <div class="page session">
            <SessionHeader session={session} />
            <Tabs id={id} view={view} />
            <View session={session} view={view} changes={changes} />
        </div>
    );
}
