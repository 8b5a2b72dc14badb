// Signing in to change something: the server's token, kept for this tab only. It goes into a
// header that no other site can set, so nothing that a browser sends by itself changes anything.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { token } from "../api";
import { useEngine } from "./engine";

export const signedIn = signal(token() !== "");

export function SignIn() {
    const [text, setText] = useState("");
    const engine = useEngine();
    if (engine?.token_file === "") {
        return <p class="dim">This server takes no changes.</p>;
    }
    return (
        <form
            class="give"
            onSubmit={(event) => {
                event.preventDefault();
                sessionStorage.setItem("token", text.trim());
                signedIn.value = text.trim() !== "";
            }}
        >
            <label class="field">
                The token of this server
                <input
                    class="text"
                    type="password"
                    autocomplete="off"
                    value={text}
                    onInput={(event) => setText(event.currentTarget.value)}
                />
            </label>
            <button class="primary" type="submit">
                Sign in
            </button>
            <p class="dim">
                It is in <span class="mono">{engine?.token_file ?? "…"}</span>, beside the database, and is forgotten
                when this tab is closed. Reading needs none here.
            </p>
        </form>
    );
}
