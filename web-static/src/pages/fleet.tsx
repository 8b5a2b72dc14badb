// The fleet: the state of each device, its recordings, policies and commands.
import { useEffect, useState } from "preact/hooks";
import { useAnswer, useQuestion } from "../answers";
import { api, type Command, type Device, type RowOf } from "../api";
import { ago, bytes, compact, count, counted, dateTime, duration } from "../format";
import { route, setParameters } from "../router";
import { Panel, RowTable, SqlPanel } from "../widgets/panel";
import { Chip, Problem, Time } from "../widgets/small";
import { Engine, health, useEngine } from "../widgets/engine";
import { Download } from "../widgets/download";
import { signedIn, SignIn } from "../widgets/sign_in";
import { Apps } from "./fleet_apps";
import { Policies } from "./policies";

const POLL_MS = 3000;
const RESULT_LENGTH_MAX = 400;
const ONLINE_NS = 120e9;
const OVER_QUOTA = "is used up: this device keeps its records until midnight UTC";
const COPIED = "▲ two daemons use this identity: each command runs on only one of them (see sojourn doctor)";

type Known = RowOf<"web.device_sums">;

// The status object that agent/daemon/command_report.c writes.
interface Status {
    version?: string;
    recording?: number;
    undelivered?: number;
    spool_mb?: number;
    spool_full?: boolean;
    apps?: number;
    policies?: string; // digest of the policies that the device has
    problem?: string;
}

function statusOf(device: Device): Status {
    try {
        return JSON.parse(device.status) as Status;
    } catch {
        return {};
    }
}

function problemOf(device: Device): string {
    if (device.copied) {
        return COPIED;
    }
    return device.over_quota ? `▲ its quota of ${device.over_quota} ${OVER_QUOTA}` : (statusOf(device).problem ?? "");
}

function isOnline(device: Device, now: number): boolean {
    return now * 1e6 - Number(device.last_seen_realtime_ns) < ONLINE_NS;
}

function useTick(): number {
    const [tick, setTick] = useState(0);
    useEffect(() => {
        const timer = setInterval(() => {
            if (!document.hidden) {
                setTick((before) => before + 1);
            }
        }, POLL_MS);
        return () => clearInterval(timer);
    }, []);
    return tick;
}

// `known` is null until it is loaded.
function Devices({ devices, known, unknown, chosen }: {
    devices: readonly Device[];
    known: readonly Known[] | null;
    unknown: string; // shown while `known` is null
    chosen: string;
}) {
    const now = Date.now();
    const of = (device: Device) => known?.find((one) => String(one.device_id) === device.id);
    return (
        <RowTable<Device>
            label="Devices"
            rows={devices}
            columns={[
                {
                    title: "Device",
                    cell: (device) => (
                        <button
                            type="button"
                            class="link-button"
                            aria-pressed={device.id === chosen}
                            onClick={() => setParameters({ device: device.id === chosen ? "" : device.id })}
                        >
                            {device.name}
                            {device.namesakes > 0 ? ` (${device.id})` : ""}
                        </button>
                    ),
                },
                {
                    title: "State",
                    cell: (device) => (
                        <span class={isOnline(device, now) ? "good-text" : "dim"}>
                            {isOnline(device, now) ? "● online" : `○ seen ${ago(device.last_seen_realtime_ns, now)}`}
                        </span>
                    ),
                },
                { title: "System", cell: (device) => [device.model, device.os, device.machine].filter(Boolean).join(" · ") },
                { title: "Build", mono: true, cell: (device) => device.build || "–" },
                { title: "Agent", cell: (device) => device.agent_version || "–" },
                { title: "Recording", number: true, cell: (device) => count(statusOf(device).recording ?? 0) },
                { title: "Policies", mono: true, cell: (device) => (statusOf(device).policies ?? "").slice(0, 8) || "–" },
                {
                    title: "Calls lost",
                    number: true,
                    cell: (device) => {
                        const lost = known ? (of(device)?.lost_calls ?? 0) : null;
                        return lost === null ? unknown : lost > 0 ? <span class="warn-text">▲ {compact(lost)}</span> : "none";
                    },
                },
                {
                    title: "Clock",
                    number: true,
                    cell: (device) => {
                        const error = of(device)?.uncertainty_ns ?? null;
                        return !known ? unknown : error === null ? "not compared" : `± ${duration(error)}`;
                    },
                },
                {
                    title: "Not delivered",
                    number: true,
                    cell: (device) => {
                        const { undelivered, spool_mb, spool_full } = statusOf(device);
                        return (
                            <span class={spool_full ? "warn-text" : ""}>
                                {spool_full ? "▲ full: " : ""}
                                {count(undelivered ?? 0)} ({bytes((spool_mb ?? 0) * 1048576)})
                            </span>
                        );
                    },
                },
                { title: "Enrolled", cell: (device) => device.enrolled },
                {
                    title: "Problem",
                    cell: (device) => (
                        <span class="warn-text">{problemOf(device)}</span>
                    ),
                },
            ]}
        />
    );
}

const kinds: readonly (readonly [string, string, string])[] = [
    ["status", "Report its status", "{}"],
    ["apps", "List its apps", "{}"],
    ["ps", "List its processes", "{}"],
    ["record", "Prepare, start and record an app, and export the recording", '{\n  "app": "editor",\n  "format": "function.txt"\n}'],
    ["prepare", "Prepare an app", '{\n  "app": "editor"\n}'],
    ["launch", "Start an app or a program under trace", '{\n  "command": ["/usr/bin/true"]\n}'],
    ["attach", "Record a running process", '{\n  "pid": 1234,\n  "duration_ms": 10000\n}'],
    ["stop", "Stop one recording, or all", "{}"],
    ["dump", "Store the last seconds (flight mode)", "{}"],
    ["mark", "Set a mark", '{\n  "mark": "phase"\n}'],
    ["export", "Export a session", '{\n  "session": "last",\n  "format": "function.txt"\n}'],
    ["policy", "Set the policy", '{\n  "policy": {\n    "policy": 1,\n    "name": "default"\n  }\n}'],
    ["doctor", "Check what prevents recording", "{}"],
    ["quota", "Set how much of it is stored in a day", '{\n  "bytes": 2147483648,\n  "sessions": 100\n}'],
    ["tags", "Set tags", '{\n  "tags": { "rack": "7" }\n}'],
];

// The server checks commands and policies. Its messages are shown unchanged.
function CommandForm({ device }: { device: Device | null }) {
    const [kind, setKind] = useState("status");
    const [text, setText] = useState("{}");
    const [said, setSaid] = useState<{ text: string; isBad: boolean } | null>(null);
    if (!signedIn.value) {
        return <SignIn />;
    }
    const send = async (event: Event) => {
        event.preventDefault();
        try {
            const sent = await api.sendCommand({
                devices: device ? device.uuid : "all",
                kind,
                arguments: JSON.parse(text),
            });
            const names = sent.commands.map((command) => command.device).join(", ");
            setSaid({ text: names ? `Sent to ${names}.` : "Not sent: no device had to change.", isBad: false });
        } catch (failure) {
            setSaid({ text: (failure as Error).message, isBad: true });
        }
    };
    return (
        <form class="give" onSubmit={(event) => void send(event)}>
            <label class="field">
                Command for {device ? device.name : "all devices"}
                <select
                    value={kind}
                    onChange={(event) => {
                        const next = kinds.find(([name]) => name === event.currentTarget.value)!;
                        setKind(next[0]);
                        setText(next[2]);
                        setSaid(null);
                    }}
                >
                    {kinds.map(([name, title]) => (
                        <option key={name} value={name}>{`${name}: ${title}`}</option>
                    ))}
                </select>
            </label>
            <label class="field">
                Arguments (JSON)
                <textarea
                    class="mono"
                    rows={Math.min(16, text.split("\n").length + 1)}
                    spellcheck={false}
                    value={text}
                    onInput={(event) => setText(event.currentTarget.value)}
                />
            </label>
            <button class="primary" type="submit">
                Send
            </button>
            {said ? (
                <p role="status" class={said.isBad ? "warn-text" : "good-text"}>
                    {said.text}
                </p>
            ) : null}
        </form>
    );
}

function clockOf(error: number | string, uncertainty: number): string {
    const ns = Number(error);
    return `${duration(Math.abs(ns))} ${ns < 0 ? "ahead of" : "behind"} the collector's, ± ${duration(uncertainty)}`;
}

// Returns the text that replaces a value until it is loaded, or after loading has failed.
function unknown({ problem }: { problem: string }): string {
    return problem ? "unknown" : "…";
}

function About({ device, changes }: { device: Device; changes: number }) {
    const status = statusOf(device);
    const values = { device: device.id };
    const running = useQuestion("web.running_sessions", values, changes);
    const clocks = useQuestion("web.clock_error", values, changes);
    const [clock] = clocks.rows;
    const problem = running.problem || clocks.problem;
    return (
        <Panel title={device.name}>
            {problem ? <Problem message={problem} /> : null}
            <dl class="facts">
                <dt>Recording</dt>
                <dd>
                    {running.rows.length > 0 ? null : running.value ? "nothing" : unknown(running)}
                    {running.rows.map((session, index) => (
                        <span key={session.session_id}>
                            {index > 0 ? ", " : ""}
                            <a href={`/sessions/${session.session_id}?view=live`}>{session.title}</a>
                        </span>
                    ))}
                </dd>
                <dt>Apps</dt>
                <dd>{status.apps ? `${count(status.apps)} known` : "none known"}</dd>
                <dt>Policies</dt>
                <dd class="mono">{status.policies || "–"}</dd>
                <dt>Clock</dt>
                <dd>
                    {clock
                        ? clockOf(clock.clock_error_ns, clock.uncertainty_ns)
                        : clocks.value
                          ? "not compared in its last session"
                          : unknown(clocks)}
                </dd>
                <dt>Tags</dt>
                <dd class="mono">{device.tags}</dd>
                <dt>First seen</dt>
                <dd>{dateTime(device.first_seen_realtime_ns)}</dd>
                <dt>Sessions</dt>
                <dd>
                    <a href={`/?q=${encodeURIComponent(device.name)}`}>of this device</a>
                </dd>
            </dl>
        </Panel>
    );
}

// `commands` is null until they are loaded.
function Audit({ commands }: { commands: readonly Command[] | null }) {
    return (
        <Panel title="Commands, latest first">
            {commands?.length ? null : <p class="dim">{commands ? "No commands yet." : "Loading…"}</p>}
            {commands?.length ? (
                <RowTable<Command>
                    label="Commands"
                    rows={commands}
                    columns={[
                        { title: "Sent", cell: (command) => dateTime(command.created_realtime_ns) },
                        { title: "Device", cell: (command) => command.device_name },
                        { title: "Command", cell: (command) => <span title={command.arguments}>{command.kind}</span> },
                        { title: "By", cell: (command) => command.requested_by },
                        { title: "State", cell: (command) => <span class={`tag command-${command.state}`}>{command.state.replaceAll("_", " ")}</span> },
                        {
                            title: "Result",
                            mono: true,
                            cell: (command) =>
                                command.file_bytes ? (
                                    <Download path={`commands/${command.id}/file`}>
                                        file, {bytes(command.file_bytes)}
                                    </Download>
                                ) : (
                                    (command.result ?? "").slice(0, RESULT_LENGTH_MAX)
                                ),
                        },
                    ]}
                />
            ) : null}
        </Panel>
    );
}

// A heat map: p95 of one function by device and build. Darker is slower, and each cell shows its
// number.
function HeatMap() {
    const name = route.value.parameters.get("function") ?? "";
    const values = { name };
    const engine = useEngine();
    const question = engine?.is_cluster ? "web.heat_of_cluster" : "web.heat";
    const limits = engine?.is_cluster ? { engine: "cluster", ms: 30000 } : {};
    const answer = useQuestion(name && engine ? question : "", values, 0, limits);
    const most = Math.max(...answer.rows.map((row) => row.p95_ns), 1);
    const unknown = answer.rows.reduce((sum, row) => sum + Number("unknown" in row ? row.unknown : 0), 0);
    return (
        <>
            <form
                class="tools"
                onSubmit={(event) => {
                    event.preventDefault();
                    const field = new FormData(event.currentTarget as HTMLFormElement).get("function");
                    setParameters({ function: String(field ?? "") });
                }}
            >
                <label class="field">
                    p95 of a function by device and build
                    <input class="text" type="text" name="function" defaultValue={name} placeholder="function name" />
                </label>
                <button class="quiet" type="submit">
                    Show
                </button>
            </form>
            {unknown > 0 ? (
                <p class="dim">
                    {counted(unknown, "session")} came from an older Sojourn, which did not report which times are estimates.
                </p>
            ) : null}
            {name ? (
                <SqlPanel
                    title={`p95 of ${name}`}
                    question={question}
                    engine={engine?.is_cluster ? "cluster" : ""}
                    values={values}
                    answer={answer}
                    none="No session has calls of a function with this name."
                    columns={[
                        { title: "Build", mono: true, cell: (row) => row.build },
                        { title: "Device", cell: (row) => row.device },
                        { title: "Sessions", number: true, cell: (row) => count(row.sessions) },
                        {
                            title: "p95",
                            number: true,
                            cell: (row) => (
                                <span class="heat" style={{ "--heat": (row.p95_ns / most).toFixed(3) }}>
                                    <Time ns={row.p95_ns} isEstimate={row.is_estimate} />
                                </span>
                            ),
                        },
                    ]}
                />
            ) : null}
        </>
    );
}

export function FleetPage() {
    useEffect(() => {
        document.title = "Fleet · Sojourn";
    }, []);
    const tick = useTick();
    const devices = useAnswer(`devices ${tick}`, () => api.devices(), "devices");
    const commands = useAnswer(`commands ${tick}`, () => api.commands(), "commands");
    const rules = useAnswer(`policies ${tick}`, () => api.policies(), "policies");
    const known = useQuestion("web.device_sums", {}, tick);
    const chosen = route.value.parameters.get("device") ?? "";
    const items = devices.value?.items ?? [];
    const device = items.find((one) => one.id === chosen) ?? null;
    const problem = devices.problem || commands.problem || rules.problem || known.problem;
    if (!devices.value) {
        return problem ? <Problem message={problem} /> : <p class="empty">Loading…</p>;
    }
    const isOfLab = !health.value?.is_cluster; // a cluster cannot send commands or policies: each lab does that
    const online = items.filter((one) => isOnline(one, Date.now())).length;
    return (
        <div class="page">
            <div class="title-line">
                <h1>Fleet</h1>
                <span class="dim">
                    {counted(items.length, "device")}, {count(online)} online
                </span>
            </div>
            {problem ? <Problem message={problem} /> : null}
            <section class="card panel" aria-label="All devices">
                {items.length > 0 ? (
                    <Devices devices={items} known={known.value && known.rows} unknown={unknown(known)} chosen={chosen} />
                ) : (
                    <p class="dim">No device has reported yet.</p>
                )}
            </section>
            {device ? (
                <p class="chips">
                    <Chip label={device.name} onRemove={() => setParameters({ device: "" })} />
                </p>
            ) : null}
            <div class="columns">
                {device ? <About device={device} changes={tick} /> : null}
                {isOfLab ? (
                    <Panel title="Send a command">
                        <CommandForm device={device} />
                    </Panel>
                ) : null}
                {isOfLab ? <Policies rules={rules.value?.items ?? null} device={device} /> : null}
            </div>
            {isOfLab && device ? <Apps device={device} commands={commands.value?.items ?? []} changes={tick} /> : null}
            {isOfLab ? (
                <Audit
                    commands={commands.value?.items.filter((one) => !device || one.device_id === device.id) ?? null}
                />
            ) : null}
            <HeatMap />
            <Engine />
        </div>
    );
}
