// Which engine answers: one line under the pages that are about many sessions.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, type Health } from "../api";

const POLL_MS = 5000;

// health is what the server said last; null where no page has asked yet.
export const health = signal<Health | null>(null);

async function ask(): Promise<void> {
    try {
        health.value = await api.health();
    } catch {
        // what a page asks for itself says what is wrong
    }
}

// useEngine asks again while the page is seen: a cluster may answer in part from now on.
export function useEngine(): Health | null {
    useEffect(() => {
        void ask();
        const timer = setInterval(() => document.hidden || void ask(), POLL_MS);
        return () => clearInterval(timer);
    }, []);
    return health.value;
}

export function Engine() {
    const engine = useEngine();
    const line = engine?.engine ?? "";
    const isDoubtful = /INCOMPLETE|NOT AS IT IS NOW/.test(line);
    return line === "" ? null : (
        <p class={`engine ${isDoubtful ? "warn-text" : "dim"}`} role="note">
            {line}
            {engine?.is_cluster ? ". Single calls, threads, findings and commands are in the labs." : ""}
        </p>
    );
}
