// Findings about freed memory: where a block was allocated, freed and used.
import { useEffect } from "preact/hooks";
import { useOpening, useQuestion } from "../answers";
import type { RowOf } from "../api";
import { count, dateTime, duration, fileName, percent } from "../format";
import { route, setParameters } from "../router";
import { Panel, SqlPanel } from "../widgets/panel";
import { Problem } from "../widgets/small";

type FrameRow = RowOf<"web.finding_frames">;

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
    const frames = useQuestion("web.finding_frames", values, opening);
    const reports = useQuestion("web.finding_reports", values, opening);
    const history = useQuestion("web.finding_history", values, opening, { rows: 5000 });
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
                question="web.finding_history"
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
                question="web.finding_reports"
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
    const answer = useQuestion("web.watched_blocks", {}, useOpening());
    return (
        <SqlPanel
            title="Heap blocks that were watched, latest sessions first"
            question="web.watched_blocks"
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
    const list = useQuestion("web.findings", {}, useOpening());
    return (
        <div class="page">
            <h1>Uses of freed memory and other heap errors</h1>
            <SqlPanel
                title="Findings"
                question="web.findings"
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
