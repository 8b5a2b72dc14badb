// Signing in to change something: the collector's token, kept for this tab only. It goes into a
// header that no other site can set, so nothing that a browser sends by itself changes anything.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { token } from "../api";

export const signedIn = signal(token() !== "");

export function SignIn() {
    const [text, setText] = useState("");
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
                The collector's token
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
                It is in the file DATABASE.token beside the collector's database, and is forgotten when this tab
                is closed. Reading needs none here.
            </p>
        </form>
    );
}
