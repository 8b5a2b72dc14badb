// Findings about freed memory: where a block was allocated, freed and used.
import { useEffect } from "preact/hooks";
import { useOpening, useSql } from "../answers";
import { count, dateTime, duration, fileName, percent } from "../format";
import { route, setParameters } from "../router";
import { Panel, SqlPanel } from "../widgets/panel";
import { Problem } from "../widgets/small";

const LIST_SQL = `SELECT z.zombie_id, z.kind, z.state, z.class, z.selector, z.used_in, z.freed_in, z.allocated_in, z.reports,
       count(DISTINCT r.session_id) AS sessions, count(DISTINCT s.device_id) AS devices,
       CAST(z.first_seen_realtime_ns AS TEXT) AS first_seen, CAST(z.last_seen_realtime_ns AS TEXT) AS last_seen, z.note
FROM zombies z LEFT JOIN zombie_reports r USING (zombie_id) LEFT JOIN sessions s USING (session_id)
GROUP BY z.zombie_id ORDER BY z.state = 'resolved', z.last_seen_realtime_ns DESC`;

const FRAMES_SQL = `SELECT f.stack, f.depth, f.tid, f.function, f.module, f.offset, f.is_own FROM zombie_frames f
WHERE f.report_id = (SELECT max(report_id) FROM zombie_reports WHERE zombie_id = :finding)
ORDER BY f.stack, f.depth`;

const REPORTS_SQL = `SELECT r.session_id, s.command, d.name AS device, r.at_ns, r.thread_name, r.access, r.size, r.offset
FROM zombie_reports r JOIN sessions s USING (session_id) JOIN devices d USING (device_id)
WHERE r.zombie_id = :finding ORDER BY r.report_id DESC LIMIT 50`;

// Earlier events of the object, if the policy keeps them.
const HISTORY_SQL = `SELECT e.number, e.event, e.owners, e.tid, e.function FROM zombie_events e
WHERE e.report_id = (SELECT max(report_id) FROM zombie_reports WHERE zombie_id = :finding) ORDER BY e.number`;

// How much of the heap was watched: findings say nothing about the rest.
const COVERAGE_SQL = `SELECT c.session_id, s.command, total(c.allocations) AS allocations, total(c.guarded) AS guarded,
       total(c.not_sampled) AS not_sampled, total(c.no_block) AS no_block, total(c.over_memory) AS over_memory,
       total(c.bad_size) AS bad_size, total(c.refused) AS refused, total(c.recycled) AS recycled
FROM zombie_coverage c JOIN sessions s USING (session_id) GROUP BY c.session_id ORDER BY c.session_id DESC LIMIT 50`;

interface Finding {
    zombie_id: number;
    kind: string;
    state: string;
    class: string; // class of the freed object; "" if there is none
    selector: string;
    used_in: string;
    freed_in: string;
    allocated_in: string;
    reports: number;
    sessions: number;
    devices: number;
    first_seen: string;
    last_seen: string;
    note: string | null;
}

interface FrameRow {
    stack: string;
    depth: number;
    tid: number;
    function: string;
    module: string;
    offset: number;
    is_own: number;
}

interface HistoryRow {
    number: number;
    event: string;
    owners: number;
    tid: number;
    function: string;
}

interface Coverage {
    session_id: number;
    command: string;
    allocations: number;
    guarded: number;
    not_sampled: number; // an estimate
    no_block: number;
    over_memory: number;
    bad_size: number;
    refused: number;
    recycled: number;
}

interface Report {
    session_id: number;
    command: string;
    device: string;
    at_ns: number;
    thread_name: string;
    access: string | null;
    size: number;
    offset: number | null;
}

const stacks: readonly (readonly [string, string])[] = [
    ["allocation", "Allocated"],
    ["free", "Freed"],
    ["use", "Used"],
];

// `frames` is null until they are loaded.
function Stack({ title, frames }: { title: string; frames: readonly FrameRow[] | null }) {
    return (
        <Panel title={title}>
            {frames?.length ? null : <p class="dim">{frames ? "Unknown." : "Loading…"}</p>}
            <ol class="stack">
                {frames?.map((frame) => (
                    <li key={frame.depth} class={frame.is_own ? "" : "dim"}>
                        <span class="mono">{frame.function || `0x${frame.offset.toString(16)}`}</span>{" "}
                        <span class="module" title={frame.module}>
                            {fileName(frame.module)}
                        </span>
                    </li>
                ))}
            </ol>
        </Panel>
    );
}

function Details({ finding }: { finding: string }) {
    const values = { finding };
    const opening = useOpening();
    const frames = useSql<FrameRow>(FRAMES_SQL, values, opening);
    const reports = useSql<Report>(REPORTS_SQL, values, opening);
    const history = useSql<HistoryRow>(HISTORY_SQL, values, opening, { rows: 5000 });
    if (frames.problem) {
        return <Problem message={frames.problem} />;
    }
    return (
        <>
            <div class="columns">
                {stacks.map(([stack, title]) => (
                    <Stack key={stack} title={title} frames={frames.value && frames.rows.filter((frame) => frame.stack === stack)} />
                ))}
            </div>
            <SqlPanel
                title="History of the object, in order"
                sql={HISTORY_SQL}
                values={values}
                answer={history}
                columns={[
                    { title: "Event", cell: (row) => row.event },
                    { title: "Owners after it", number: true, cell: (row) => count(row.owners) },
                    { title: "By", mono: true, cell: (row) => row.function || "–" },
                    { title: "Thread", number: true, cell: (row) => row.tid },
                ]}
            />
            <SqlPanel
                title="Reports, latest first"
                sql={REPORTS_SQL}
                values={values}
                answer={reports}
                none="None."
                columns={[
                    { title: "Session", cell: (row) => <a href={`/sessions/${row.session_id}?view=overview`}>{row.command}</a> },
                    { title: "Device", cell: (row) => row.device },
                    { title: "Thread", cell: (row) => row.thread_name },
                    { title: "At", number: true, cell: (row) => duration(row.at_ns) },
                    { title: "Access", cell: (row) => row.access ?? "free" },
                    { title: "Block", number: true, cell: (row) => `${count(row.size)} B` },
                    { title: "Offset", number: true, cell: (row) => (row.offset === null ? "–" : count(row.offset)) },
                ]}
            />
        </>
    );
}

function WatchedBlocks() {
    const answer = useSql<Coverage>(COVERAGE_SQL, {}, useOpening());
    return (
        <SqlPanel
            title="Heap blocks that were watched, latest sessions first"
            sql={COVERAGE_SQL}
            values={{}}
            answer={answer}
            none="None."
            columns={[
                { title: "Session", cell: (row) => <a href={`/sessions/${row.session_id}?view=overview`}>{row.command}</a> },
                { title: "Allocations", number: true, cell: (row) => count(row.allocations) },
                { title: "Watched", number: true, cell: (row) => count(row.guarded) },
                { title: "Share", number: true, cell: (row) => percent(row.guarded, row.allocations) },
                { title: "Not sampled", number: true, cell: (row) => count(row.not_sampled) },
                { title: "No free block (raise blocks)", number: true, cell: (row) => count(row.no_block) },
                { title: "Over memory (raise memory)", number: true, cell: (row) => count(row.over_memory) },
                { title: "Empty or too large", number: true, cell: (row) => count(row.bad_size) },
                { title: "Refused by the kernel", number: true, cell: (row) => count(row.refused) },
                { title: "Reused after the free", number: true, cell: (row) => count(row.recycled) },
            ]}
        />
    );
}

export function ZombiesPage() {
    useEffect(() => {
        document.title = "Findings · Sojourn";
    }, []);
    const finding = route.value.parameters.get("finding") ?? "";
    const list = useSql<Finding>(LIST_SQL, {}, useOpening());
    return (
        <div class="page">
            <h1>Uses of freed memory and other heap errors</h1>
            <SqlPanel
                title="Findings"
                sql={LIST_SQL}
                values={{}}
                answer={list}
                none="No findings yet. Record with --zombies heap, or with a policy that has &quot;zombies&quot;."
                columns={[
                    { title: "State", cell: (row) => <span class="tag">{row.state}</span> },
                    {
                        title: "Kind",
                        cell: (row) => (
                            <button
                                type="button"
                                class="link-button"
                                aria-pressed={String(row.zombie_id) === finding}
                                onClick={() => setParameters({ finding: String(row.zombie_id) })}
                            >
                                {row.kind.replaceAll("_", " ")}
                            </button>
                        ),
                    },
                    { title: "Object", mono: true, cell: (row) => [row.class, row.selector].filter(Boolean).join(" ") || "–" },
                    { title: "Used in", mono: true, cell: (row) => row.used_in || "–" },
                    { title: "Freed in", mono: true, cell: (row) => row.freed_in || "–" },
                    { title: "Allocated in", mono: true, cell: (row) => row.allocated_in || "–" },
                    { title: "Reports", number: true, cell: (row) => count(row.reports) },
                    { title: "Sessions", number: true, cell: (row) => count(row.sessions) },
                    { title: "Devices", number: true, cell: (row) => count(row.devices) },
                    { title: "Last seen", cell: (row) => dateTime(row.last_seen) },
                ]}
            />
            <WatchedBlocks />
            {/^[0-9]{1,15}$/.test(finding) ? <Details key={finding} finding={finding} /> : null}
        </div>
    );
}
