// Signing in: the server's token, kept while a tab of the dashboard is open.
import { computed } from "@preact/signals";
import { useState } from "preact/hooks";
import { signIn, token } from "../token";
import { health, useEngine } from "./engine";

// signedIn: this tab may change something.
export const signedIn = computed(() => token.value !== "" && health.value?.takes_changes !== false);

function TokenField() {
    const [text, setText] = useState("");
    return (
        <form
            class="give"
            onSubmit={(event) => {
                event.preventDefault();
                if (text.trim() !== "") {
                    signIn(text.trim());
                }
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
        </form>
    );
}

// SignIn is for those who read already: by a password that their browser sends, which changes nothing.
export function SignIn() {
    const engine = useEngine();
    if (engine?.takes_changes === false) {
        return <p class="dim">This server takes no changes.</p>;
    }
    return (
        <>
            <TokenField />
            <p class="dim">
                It is in <span class="mono">{engine?.token_file ?? "…"}</span>, beside the database, and is forgotten
                when the last tab of this dashboard is closed.
            </p>
        </>
    );
}

// SignInPage is all that is shown to those who have no token, or a wrong one.
export function SignInPage() {
    return (
        <section class="card panel" aria-label="Sign in">
            <h1>Sign in</h1>
            <TokenField />
            <p class="dim">
                <code>sojourn ui</code> prints an address that holds the token. That of <code>sojournd</code> is in the file{" "}
                <span class="mono">DATABASE.token</span> beside its database. It is forgotten when the last tab
                of this dashboard is closed.
            </p>
        </section>
    );
}
