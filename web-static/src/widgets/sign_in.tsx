// Signing in with the server's token. The browser keeps it while a tab of the dashboard is open.
import { computed } from "@preact/signals";
import { useState } from "preact/hooks";
import { isTokenWrong, signIn, token } from "../token";
import { may, type Role } from "./access";
import { health, useEngine } from "./engine";

// True if this tab may make changes.
export const signedIn = computed(() => token.value !== "" && health.value?.accepts_changes !== false && may("operator"));

// True if this tab may also import and remove sessions.
export const isAdmin = computed(() => signedIn.value && may("admin"));

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

// Lets a user sign in who may already read, for example by a password that the browser sends. Such
// a user cannot make changes without the token.
export function SignIn({ needed = "operator" }: { needed?: Role }) {
    const engine = useEngine();
    if (engine?.accepts_changes === false) {
        return <p class="dim">This server does not accept changes.</p>;
    }
    if (engine && token.value !== "" && !may(needed)) {
        return (
            <p class="dim">
                This needs the role {needed} or a higher one; {engine.who} has the role {engine.role}.
            </p>
        );
    }
    return (
        <>
            <TokenField />
            <p class="dim">
                Use your own token, or the one in <span class="mono">{engine?.token_file ?? "…"}</span>, beside the
                database. The browser forgets it when the last tab of this dashboard is closed.
            </p>
        </>
    );
}

// The whole page for a user without a token, or with a wrong one.
export function SignInPage() {
    return (
        <section class="card panel" aria-label="Sign in">
            <h1>Sign in</h1>
            {isTokenWrong.value ? (
                <p class="warn-text" role="alert">
                    ▲ The server refused this token: it is wrong, was revoked or has expired.
                </p>
            ) : null}
            <TokenField />
            <p class="dim">
                <code>sojourn ui</code> prints an address that holds the token. For <code>sojournd</code>, use your own
                token, which <code>sojourn token add</code> makes, or the one in the file{" "}
                <span class="mono">DATABASE.token</span> beside its database. The browser forgets the token when the
                last tab of this dashboard is closed.
            </p>
        </section>
    );
}
