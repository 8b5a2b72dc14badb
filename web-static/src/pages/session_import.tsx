// Imports sessions from a database file, chosen in a dialog or dropped on the list. The file is
// sent in pieces.
import { signal } from "@preact/signals";
import { api } from "../api";
import { bytes, count, percent } from "../format";
import { reloadSessions } from "../store";
import { isAdmin, SignIn } from "../widgets/sign_in";

const PIECE_BYTES = 96 * 1024;
const POLL_MS = 300;

interface Shown {
    text: string; // announced by screen readers when it changes: start and end
    step?: string; // progress, shown but not announced
    isBad?: boolean;
    part?: number; // share of the work that is done, 0 to 1
    stop?: () => void;
}

const state = signal<Shown | null>(null);

function hexOf(piece: Uint8Array): string {
    return Array.from(piece, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Sends the file in pieces, and shows how much is sent.
async function send(file: File, id: string, ending: AbortController): Promise<void> {
    for (let offset = 0; offset < file.size; offset += PIECE_BYTES) {
        state.value = {
            text: `Importing ${file.name}:`,
            step: `${bytes(offset)} of ${bytes(file.size)} sent`,
            part: offset / file.size,
            stop: () => ending.abort(),
        };
        const piece = new Uint8Array(await file.slice(offset, offset + PIECE_BYTES).arrayBuffer());
        await api.import({ do: "append", import: id, offset, hex: hexOf(piece) }, ending.signal);
    }
}

// Shows the server's progress until it has copied all sessions.
async function follow(file: File, id: string, ending: AbortController, copied: Promise<unknown>): Promise<void> {
    let isCopied = false;
    const end = copied.then(
        () => (isCopied = true),
        () => (isCopied = true),
    );
    for (let part = 0; !isCopied; await Promise.race([end, new Promise((resolve) => setTimeout(resolve, POLL_MS))])) {
        part = await api.import({ do: "progress", import: id }).then((answer) => answer.part, () => part);
        if (!isCopied) {
            state.value = {
                text: `Importing ${file.name}:`,
                step: `copying its sessions, ${percent(part, 1)}`,
                part,
                stop: () => ending.abort(),
            };
        }
    }
}

function endOf({ sessions, known }: { sessions: string[]; known: number }): string {
    const came = sessions.length === 1 ? `Session ${sessions[0]} was imported.` : `${count(sessions.length)} sessions were imported.`;
    return `${came}${known > 0 ? ` ${count(known)} were already here.` : ""}`;
}

// Sends a file. When the server has all pieces, it copies the sessions. If this page is closed, the
// server stops.
export async function importFile(file: File): Promise<void> {
    const ending = new AbortController();
    let id = "";
    let isSent = false;
    try {
        id = (await api.import({ do: "begin" })).import;
        await send(file, id, ending);
        isSent = true;
        const copied = api.import({ do: "finish", import: id }, ending.signal);
        await follow(file, id, ending, copied);
        state.value = { text: endOf(await copied) };
    } catch (failure) {
        const stopped = isSent ? "Stopped; sessions that were copied by then stay." : "Nothing was imported.";
        state.value = ending.signal.aborted ? { text: stopped } : { text: (failure as Error).message, isBad: true };
        if (id) {
            void api.import({ do: "cancel", import: id }).catch(() => {});
        }
    }
    reloadSessions();
}

// Imports the first file that is dropped on the page.
export function importDropped(event: DragEvent): void {
    const file = event.dataTransfer?.files[0];
    if (!file) {
        return;
    }
    event.preventDefault();
    if (isAdmin.value) {
        void importFile(file);
    } else {
        state.value = { text: "Sign in first: importing needs a token with the role admin.", isBad: true };
    }
}

// Shows the state of an import. The status element exists before its text, because screen readers
// announce only changes.
export function ImportState() {
    const shown = state.value;
    return (
        <div class={shown ? `banner ${shown.isBad ? "warn" : "neutral"}` : "unsaid"}>
            <span role="status">{shown?.text}</span> {shown?.step}{" "}
            {shown?.part === undefined ? null : <progress aria-label="Progress" max={1} value={shown.part} />}{" "}
            {shown ? (
                <button type="button" class="quiet" onClick={shown.stop ?? (() => (state.value = null))}>
                    {shown.stop ? "Stop" : "Hide"}
                </button>
            ) : null}
        </div>
    );
}

export function Import() {
    return (
        <details class="threads import">
            <summary>Import</summary>
            <div class="card drop">
                {isAdmin.value ? (
                    <label class="field">
                        A database of sessions, as `sojourn record -o` and `sojourn session export` write it; it can be
                        dropped on the list as well
                        <input
                            type="file"
                            accept=".db"
                            onChange={(event) => {
                                const file = event.currentTarget.files?.[0];
                                if (file) {
                                    void importFile(file);
                                }
                            }}
                        />
                    </label>
                ) : (
                    <SignIn needed="admin" />
                )}
            </div>
        </details>
    );
}
