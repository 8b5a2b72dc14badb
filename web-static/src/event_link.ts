// The connection to /api/v1/events.

export interface Notice {
    kind: "open" | "closed" | "sessions" | "resync";
    data: string; // of "sessions": the server's JSON
}

const RETRY_MS = 5000;

// openLink keeps a stream open. EventSource reconnects by itself after a broken connection, but not
// after a refusal (too many streams): then a new one is opened some seconds later.
export function openLink(take: (notice: Notice) => void): void {
    const events = new EventSource("/api/v1/events");
    events.addEventListener("open", () => take({ kind: "open", data: "" }));
    events.addEventListener("error", () => {
        take({ kind: "closed", data: "" });
        if (events.readyState === EventSource.CLOSED) {
            setTimeout(() => openLink(take), RETRY_MS);
        }
    });
    events.addEventListener("sessions", (event) => {
        take({ kind: "sessions", data: (event as MessageEvent<string>).data });
    });
    events.addEventListener("resync", () => take({ kind: "resync", data: "" }));
}
