// Names the database engine that answers, in one line below the pages about many sessions.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, type Health } from "../api";

const POLL_MS = 5000;

// The latest health report of the server; null before the first one.
export const health = signal<Health | null>(null);

// Requests the server's health. A failure changes nothing.
export async function askHealth(): Promise<void> {
    try {
        health.value = await api.health();
    } catch {
        // the page's own requests show the error
    }
}

// Returns the health of the server. It is requested again while the page is visible, because a
// cluster may later answer only in part.
export function useEngine(): Health | null {
    useEffect(() => {
        void askHealth();
        const timer = setInterval(() => document.hidden || void askHealth(), POLL_MS);
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
