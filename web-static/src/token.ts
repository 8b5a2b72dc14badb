// The token that the server wants with every request, in a header that no page of another site can set. A tab has it
// from its address (first_paint.ts), from another tab of the dashboard (events_worker.ts) or from its user.
import { signal } from "@preact/signals";

export const token = signal(globalThis.sessionStorage?.getItem("token") ?? ""); // none while it is built (build.mjs)

// isTokenKnown: this tab has a token, or no other tab has one to give.
export const isTokenKnown = signal(token.value !== "");

// isRefused: the server wants a token, or another one than this tab has.
export const isRefused = signal(false);

export function signIn(text: string): void {
    sessionStorage.setItem("token", text);
    token.value = text;
    isTokenKnown.value = true;
    isRefused.value = false;
}

// refuse forgets a token that the server has refused, unless there is another one since.
export function refuse(shown: string): void {
    if (shown === token.value) {
        sessionStorage.removeItem("token");
        token.value = "";
        isRefused.value = true;
    }
}

export function bearer(shown: string): Record<string, string> {
    return shown === "" ? {} : { Authorization: `Bearer ${shown}` };
}
