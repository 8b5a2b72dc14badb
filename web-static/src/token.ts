// The token that the server expects in a header of every request. Pages of other sites cannot set
// that header. A tab gets the token from its address (first_paint.ts), from another tab
// (events_worker.ts) or from the user.
import { signal } from "@preact/signals";

export const token = signal(globalThis.sessionStorage?.getItem("token") ?? ""); // sessionStorage does not exist while the bundle is built (build.mjs)

// True if this tab has a token, or if no other tab has one to give.
export const isTokenKnown = signal(token.value !== "");

// True if the server refused this tab's token, or expects one and this tab has none.
export const isRefused = signal(false);

// True if the server refused a token that this tab had shown.
export const isTokenWrong = signal(false);

export function signIn(text: string): void {
    sessionStorage.setItem("token", text);
    token.value = text;
    isTokenKnown.value = true;
    isRefused.value = false;
    isTokenWrong.value = false;
}

// Forgets a token that the server refused, unless it has been replaced since.
export function refuse(shown: string): void {
    if (shown === token.value) {
        sessionStorage.removeItem("token");
        token.value = "";
        isTokenWrong.value ||= shown !== "";
        isRefused.value = true;
    }
}

export function bearer(shown: string): Record<string, string> {
    return shown === "" ? {} : { Authorization: `Bearer ${shown}` };
}
