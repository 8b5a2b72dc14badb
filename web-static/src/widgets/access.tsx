// Tells what the role of this tab's token permits. The server decides, and pages hide what it would
// refuse.
import { computed, effect } from "@preact/signals";
import { isTokenKnown, token } from "../token";
import { askHealth, health } from "./engine";

const roles = ["reader", "analyst", "operator", "admin"] as const;

export type Role = (typeof roles)[number];

// True if the token's role is `needed` or a higher one, or is not known yet.
export function may(needed: Role): boolean {
    const own = health.value?.role;
    return own === undefined || roles.indexOf(own) >= roles.indexOf(needed);
}

// Asks who is signed in whenever this tab gets a token.
export function followRole(): void {
    const shown = computed(() => (isTokenKnown.value ? token.value : null));
    effect(() => {
        if (shown.value !== null) {
            void askHealth();
        }
    });
}

// The name and role of the token, for the header.
export function Who() {
    const name = health.value?.who.replace(/^token:/, "");
    return name ? (
        <span class="who dim" title={`Signed in as ${name}, role ${health.value!.role}`}>
            {name === health.value!.role ? name : `${name} (${health.value!.role})`}
        </span>
    ) : null;
}
