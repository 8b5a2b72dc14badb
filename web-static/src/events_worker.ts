// One event stream for all tabs of a browser. A browser opens at most six connections to a server,
// and a stream in each tab would use them up. A tab names the session that it shows, and gets the
// events of that session and of its child sessions. A tab that names no session gets all events. A
// tab shares its token with tabs that have none.
import { type Notice, openLink } from "./event_link";

export type WorkerMessage = Notice | { kind: "token"; data: string }; // data is "" if no tab has a token

export interface TabMessage {
    watch?: string; // session that the tab shows; "" for all
    token?: string;
    leaves?: boolean;
}

type Session = { id: string; parent_session_id: string | null };

const tabs = new Map<MessagePort, string>(); // the session that each tab shows; "" for all
let isOpen = false;
let token = "";
let close: (() => void) | null = null; // closes the link; null if there is none

// Returns the part of a notice that a tab with this session gets, or null.
function noticeFor(session: string, notice: Notice): Notice | null {
    if (notice.kind !== "sessions" || session === "") {
        return notice;
    }
    const items = (JSON.parse(notice.data) as { items: Session[] }).items;
    const own = items.filter((item) => item.id === session || item.parent_session_id === session);
    return own.length > 0 ? { kind: "sessions", data: JSON.stringify({ items: own }) } : null;
}

function send(tab: MessagePort, message: WorkerMessage): void {
    tab.postMessage(message);
}

// Opens the link with a token. If a link is open, its token is valid, and no other token is tried.
function linkWith(offered: string): void {
    if (!isOpen && (close === null || offered !== token)) {
        close?.();
        token = offered;
        close = openLink(token, handleNotice);
    }
}

function handleNotice(notice: Notice): void {
    isOpen = notice.kind !== "closed" && notice.kind !== "refused";
    if (notice.kind === "refused") {
        token = "";
        close = null;
    }
    for (const [tab, session] of tabs) {
        const own = noticeFor(session, notice);
        if (own) {
            send(tab, own);
        }
    }
}

addEventListener("connect", (event) => {
    const tab = (event as MessageEvent).ports[0]!;
    tabs.set(tab, "");
    tab.onmessage = ({ data }: MessageEvent<TabMessage>) => {
        if (data.leaves) {
            tabs.delete(tab);
            return;
        }
        tabs.set(tab, data.watch ?? "");
        if (data.token === "") {
            send(tab, { kind: "token", data: token });
        }
        linkWith(data.token || token);
    };
    if (isOpen) {
        send(tab, { kind: "open", data: "" });
    }
});
