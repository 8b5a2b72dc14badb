// Sessions out of a database file that is chosen, or dropped on the list: it is sent in pieces.
import { signal } from "@preact/signals";
import { api } from "../api";
import { bytes, count } from "../format";
import { reloadSessions } from "../store";
import { signedIn, SignIn } from "../widgets/sign_in";

const PIECE_BYTES = 96 * 1024;

const state = signal<{ text: string; isBad: boolean; stop?: () => void } | null>(null);

function hexOf(piece: Uint8Array): string {
    return Array.from(piece, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Sends a file; the server copies its sessions when all of it is there.
export async function importFile(file: File): Promise<void> {
    let isStopped = false;
    const say = (text: string) =>
        (state.value = { text, isBad: false, stop: () => (isStopped = true) });
    let id = "";
    try {
        id = (await api.import({ do: "begin" })).import;
        for (let offset = 0; offset < file.size && !isStopped; offset += PIECE_BYTES) {
            say(`${file.name}: ${bytes(offset)} of ${bytes(file.size)} sent`);
            const piece = new Uint8Array(await file.slice(offset, offset + PIECE_BYTES).arrayBuffer());
            await api.import({ do: "append", import: id, offset, hex: hexOf(piece) });
        }
        if (isStopped) {
            await api.import({ do: "cancel", import: id });
            state.value = { text: "Nothing was imported.", isBad: false };
            return;
        }
        state.value = { text: `${file.name}: its sessions are being copied`, isBad: false };
        const { sessions, known } = await api.import({ do: "finish", import: id });
        const came = sessions.length === 1 ? `Session ${sessions[0]} was imported.` : `${count(sessions.length)} sessions were imported.`;
        state.value = { text: `${came}${known > 0 ? ` ${count(known)} were here already.` : ""}`, isBad: false };
    } catch (failure) {
        state.value = { text: (failure as Error).message, isBad: true };
        if (id) {
            void api.import({ do: "cancel", import: id }).catch(() => {});
        }
    }
    reloadSessions();
}

// takeDrop imports files that are dropped on the page.
export function takeDrop(event: DragEvent): void {
    const file = event.dataTransfer?.files[0];
    if (!file) {
        return;
    }
    event.preventDefault();
    if (signedIn.value) {
        void importFile(file);
    } else {
        state.value = { text: "Sign in first: importing needs the collector's token.", isBad: true };
    }
}

export function Import() {
    const shown = state.value;
    return (
        <details class="threads import">
            <summary>Import</summary>
            <div class="card drop">
                {signedIn.value ? (
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
                    <SignIn />
                )}
                <p role="status" class={shown?.isBad ? "warn-text" : ""}>
                    {shown?.text}{" "}
                    {shown?.stop ? (
                        <button type="button" class="quiet" onClick={shown.stop}>
                            Stop
                        </button>
                    ) : null}
                </p>
            </div>
        </details>
    );
}
