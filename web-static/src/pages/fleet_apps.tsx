// The apps of a device: their list, buttons to prepare and record them, and the resulting files and
// sessions.
import { useState } from "preact/hooks";
import { useQuestion } from "../answers";
import { api, type Command, type Device, type RowOf } from "../api";
import { bytes, duration } from "../format";
import { route, setParameters } from "../router";
import { Panel, RowTable } from "../widgets/panel";
import { Download } from "../widgets/download";
import { signedIn } from "../widgets/sign_in";

interface App {
    name: string;
    runtime?: string; // "" if the runtime is not known
    command?: string[];
}

// The progress of a `record` command (collector-server/fleet/record_jobs.h).
interface Progress {
    state?: string;
    at?: Record<string, number>; // CLOCK_REALTIME in ns at which each state was reached
    session?: string; // uuid
    needs?: { need: string; ok: boolean; said?: string }[];
}

const STATES = ["preparing", "prepared", "started", "recording", "finished"] as const;

type SessionRow = RowOf<"web.sessions_of_device">;

function parsed<T>(text: string | null): T | null {
    try {
        return JSON.parse(text ?? "") as T;
    } catch {
        return null; // the text is an error message, not JSON
    }
}

const isRunning = (command: Command) => ["preparing", "queued", "sent"].includes(command.state);

function appsOf(commands: readonly Command[]): App[] {
    const answered = commands.find((command) => command.kind === "apps" && command.state === "done");
    const apps = parsed<App[]>(answered?.result ?? null);
    return Array.isArray(apps) ? apps : [];
}

// Lists the steps that a recording has reached, and how long each step took.
function Steps({ command }: { command: Command }) {
    const progress = parsed<Progress>(command.result);
    const at = progress?.at ?? {};
    const reached = STATES.filter((state) => at[state] !== undefined);
    if (reached.length === 0) {
        return <>{isRunning(command) ? command.state : ""}</>;
    }
    return (
        <ol class="steps">
            {reached.map((state, index) => (
                <li key={state}>
                    {state}
                    {index > 0 ? <span class="dim"> +{duration(at[state]! - at[reached[index - 1]!]!)}</span> : null}
                </li>
            ))}
        </ol>
    );
}

type SendCommand = (kind: string, given?: Record<string, unknown>) => void;

function Outcome({ command, sessions, send }: { command: Command; sessions: readonly SessionRow[]; send: SendCommand }) {
    const progress = parsed<Progress>(command.result);
    const session = sessions.find((one) => one.uuid === progress?.session);
    const wrong = (progress?.needs ?? []).filter((need) => !need.ok).map((need) => `${need.need}: ${need.said ?? "missing"}`);
    const isOver = ["failed", "timed_out"].includes(command.state);
    return (
        <>
            {session ? (
                <a href={`/sessions/${session.session_id}?view=${session.state === "recording" ? "live" : "overview"}`}>
                    {session.state === "recording" ? "watch live" : `session ${session.session_id}`}
                </a>
            ) : null}{" "}
            {session?.state === "recording" && signedIn.value ? (
                <button class="quiet" type="button" onClick={() => send("stop", { session: session.uuid })}>
                    Stop
                </button>
            ) : null}
            {command.file_bytes ? (
                <Download path={`commands/${command.id}/file`}>
                    file, {bytes(command.file_bytes)}
                </Download>
            ) : null}
            {wrong.length > 0 ? <span class="warn-text">{wrong.join("; ")}</span> : null}
            {isOver ? <span class="warn-text">{command.result ?? command.state}</span> : null}
        </>
    );
}

function useSendCommand(device: Device) {
    const [said, setSaid] = useState("");
    const send = async (kind: string, given: Record<string, unknown>) => {
        try {
            await api.sendCommand({ devices: device.uuid, kind, arguments: given });
            setSaid(`Sent: ${kind}${given["app"] ? ` ${String(given["app"])}` : ""}.`);
        } catch (failure) {
            setSaid((failure as Error).message);
        }
    };
    return { said, send: ((kind, given = {}) => void send(kind, given)) as SendCommand };
}

const formats = ["function.txt", "report.txt", "folded", "chrome-json"];

export function Apps({ device, commands, changes }: { device: Device; commands: readonly Command[]; changes: number }) {
    const { said, send } = useSendCommand(device);
    const chosen = route.value.parameters.get("format") ?? "";
    const format = formats.includes(chosen) ? chosen : formats[0]!;
    const own = commands.filter((command) => command.device_id === device.id);
    const apps = appsOf(own);
    const runs = own.filter((command) => ["record", "prepare", "launch"].includes(command.kind)).slice(0, 20);
    const sessions = useQuestion("web.sessions_of_device", { device: device.id }, changes);
    const nameOf = (command: Command) => parsed<{ app?: string; command?: string[] }>(command.arguments);
    return (
        <Panel title="Apps">
            <div class="tools">
                <button class="quiet" type="button" disabled={!signedIn.value} onClick={() => send("apps")}>
                    {apps.length > 0 ? "Refresh" : "List apps"}
                </button>
                <label class="field">
                    Export format
                    <select value={format} onChange={(event) => setParameters({ format: event.currentTarget.value })}>
                        {formats.map((name) => (
                            <option key={name}>{name}</option>
                        ))}
                    </select>
                </label>
                {signedIn.value ? null : <span class="dim">Sign in to send commands.</span>}
                <span role="status">{said}</span>
            </div>
            {apps.length > 0 ? (
                <RowTable<App>
                    label="Apps of the device"
                    rows={apps}
                    columns={[
                        { title: "App", cell: (app) => app.name },
                        { title: "Runtime", cell: (app) => app.runtime || "unknown" },
                        { title: "Command line", mono: true, cell: (app) => (app.command ?? []).join(" ") },
                        {
                            title: "",
                            cell: (app) => (
                                <span class="chips">
                                    <button
                                        class="quiet"
                                        type="button"
                                        disabled={!signedIn.value}
                                        aria-label={`Prepare ${app.name}`}
                                        onClick={() => send("prepare", { app: app.name })}
                                    >
                                        Prepare
                                    </button>
                                    <button
                                        class="quiet"
                                        type="button"
                                        disabled={!signedIn.value}
                                        aria-label={`Record ${app.name}`}
                                        onClick={() => send("record", { app: app.name, format })}
                                    >
                                        Record
                                    </button>
                                </span>
                            ),
                        },
                    ]}
                />
            ) : null}
            {runs.length > 0 ? (
                <RowTable<Command>
                    label="Preparations and recordings, latest first"
                    rows={runs}
                    columns={[
                        { title: "App", cell: (command) => nameOf(command)?.app ?? (nameOf(command)?.command ?? []).join(" ") },
                        { title: "Command", cell: (command) => command.kind },
                        { title: "State", cell: (command) => <span class={`tag command-${command.state}`}>{command.state.replaceAll("_", " ")}</span> },
                        { title: "Steps", cell: (command) => <Steps command={command} /> },
                        { title: "Result", cell: (command) => <Outcome {...{ command, send }} sessions={sessions.rows} /> },
                    ]}
                />
            ) : null}
        </Panel>
    );
}
