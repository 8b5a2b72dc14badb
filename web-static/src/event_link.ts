// Connects to /api/v1/events. EventSource cannot send the token as a header, so this reads the
// stream itself.

export interface Notice {
    kind: "open" | "closed" | "refused" | "sessions" | "resync";
    data: string; // "sessions": the server's JSON; "refused": the token
}

const BROKEN_MS = 2000;
const BUSY_MS = 5000; // the server has too many streams

// Parses complete events. Each ends with an empty line.
function noticesOf(text: string): Notice[] {
    return text.split("\n\n").flatMap((event) => {
        const kind = /^event: (sessions|resync)$/m.exec(event)?.[1] as Notice["kind"] | undefined;
        return kind ? [{ kind, data: /^data: (.*)$/m.exec(event)?.[1] ?? "" }] : [];
    });
}

// Reports the events of a stream until the stream ends.
async function follow(answer: Response, onNotice: (notice: Notice) => void): Promise<void> {
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
        const { done, value } = await reader.read();
        if (done) {
            return;
        }
        text += value;
        const end = text.lastIndexOf("\n\n");
        if (end >= 0) {
            noticesOf(text.slice(0, end)).forEach(onNotice);
            text = text.slice(end + 2);
        }
    }
}

// Keeps a stream open until the returned function is called, or until the server refuses the token.
export function openLink(token: string, onNotice: (notice: Notice) => void): () => void {
    const ending = new AbortController();
    const headers = token === "" ? undefined : { Authorization: `Bearer ${token}` };
    const report = (notice: Notice) => ending.signal.aborted || onNotice(notice);
    const keep = async () => {
        let again = BROKEN_MS;
        try {
            const answer = await fetch("/api/v1/events", { ...(headers && { headers }), signal: ending.signal, cache: "no-store" });
            if (answer.status === 401) {
                report({ kind: "refused", data: token });
                return;
            }
            if (answer.ok) {
                report({ kind: "open", data: "" });
                await follow(answer, report);
            } else {
                again = BUSY_MS;
            }
        } catch {
            // connection lost: reconnects below
        }
        report({ kind: "closed", data: "" });
        setTimeout(() => ending.signal.aborted || void keep(), again);
    };
    void keep();
    return () => ending.abort();
}
