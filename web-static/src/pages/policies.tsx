// The policies that are in force, and an editor. The server checks the text while the user types.
import { useEffect, useState } from "preact/hooks";
import { api, type Device, type PolicyRule } from "../api";
import { dateTime } from "../format";
import { Panel } from "../widgets/panel";
import { signedIn } from "../widgets/sign_in";

const CHECK_DELAY_MS = 300;
const FRESH = `{
  "policy": 1,
  "name": "fresh",
  "mode": "trace"
}`;

interface Verdict {
    of: string; // the text that was checked
    text: string;
    isGood: boolean;
}

// Returns the server's verdict about `text`, or null until it is known.
function useVerdict(text: string): Verdict | null {
    const [verdict, setVerdict] = useState<Verdict | null>(null);
    useEffect(() => {
        let isWanted = true;
        const say = (said: string, isGood: boolean) => isWanted && setVerdict({ of: text, text: said, isGood });
        const timer = setTimeout(() => {
            try {
                api.checkPolicy(JSON.parse(text)).then(
                    ({ name, mode, version }) =>
                        say(`Valid: ${name || "without a name"}, mode ${mode}, version ${version}.`, true),
                    (failure: Error) => say(failure.message, false),
                );
            } catch (failure) {
                say((failure as Error).message, false);
            }
        }, CHECK_DELAY_MS);
        return () => {
            isWanted = false;
            clearTimeout(timer);
        };
    }, [text]);
    return verdict?.of === text ? verdict : null;
}

function Editor({ device, text, setText }: { device: Device | null; text: string; setText: (text: string) => void }) {
    const [app, setApp] = useState("");
    const [said, setSaid] = useState("");
    const verdict = useVerdict(text);
    const send = async (policy: unknown) => {
        try {
            const sent = await api.sendCommand({
                devices: device ? device.uuid : "all",
                kind: "policy",
                arguments: { ...(app ? { app } : {}), ...(policy === null ? {} : { policy }) },
            });
            const names = sent.commands.map((command) => command.device).join(", ");
            setSaid(`${policy === null ? "Policy removed" : "Policy set"}; ${names ? `sent to ${names}.` : "no device had to change."}`);
        } catch (failure) {
            setSaid((failure as Error).message);
        }
    };
    return (
        <form
            class="give"
            onSubmit={(event) => {
                event.preventDefault();
                if (verdict?.isGood) {
                    void send(JSON.parse(text));
                }
            }}
        >
            <label class="field">
                Policy for {device ? device.name : "all devices"}
                <textarea
                    class="mono"
                    rows={Math.min(24, text.split("\n").length + 1)}
                    spellcheck={false}
                    value={text}
                    onInput={(event) => setText(event.currentTarget.value)}
                />
            </label>
            <p role="status" class={verdict ? (verdict.isGood ? "good-text" : "warn-text") : "dim"}>
                {verdict?.text ?? "Checking…"}
            </p>
            <label class="field">
                Only for this app
                <input class="text" type="text" value={app} onInput={(event) => setApp(event.currentTarget.value)} />
            </label>
            <div class="tools">
                <button class="primary" type="submit" disabled={!verdict?.isGood}>
                    Set policy
                </button>
                <button class="quiet" type="button" onClick={() => void send(null)}>
                    Remove policy
                </button>
                <span role="status">{said}</span>
            </div>
        </form>
    );
}

// `rules` is null until they are loaded.
export function Policies({ rules, device }: { rules: readonly PolicyRule[] | null; device: Device | null }) {
    const [text, setText] = useState(FRESH);
    return (
        <Panel title="Policies in force">
            {rules?.length ? null : (
                <p class="dim">{rules ? "None: devices follow their own configuration and commands." : "Loading…"}</p>
            )}
            {rules?.map((rule) => (
                <details key={rule.id} class="rule">
                    <summary>
                        {rule.scope} {rule.subject} {rule.app ? `· app ${rule.app}` : ""}{" "}
                        <span class="dim">
                            by {rule.set_by}, {dateTime(rule.set_realtime_ns)}
                        </span>
                    </summary>
                    <pre class="mono">{rule.document}</pre>
                    <button class="quiet" type="button" onClick={() => setText(rule.document)}>
                        Edit a copy
                    </button>
                </details>
            ))}
            <details class="rule">
                <summary>Write a policy</summary>
                {signedIn.value ? (
                    <Editor device={device} text={text} setText={setText} />
                ) : (
                    <p class="dim">Sign in, under “Send a command”, to write one.</p>
                )}
            </details>
        </Panel>
    );
}
