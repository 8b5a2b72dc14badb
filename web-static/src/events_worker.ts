// One event stream for all tabs of a browser: a browser opens six connections to a server at most,
// and a stream in each tab would use them up. A tab says which session it shows, and gets the
// events of that one and of what was cut from it; a tab that shows the list gets all.
import { type Notice, openLink } from "./event_link";

type Session = { id: string; parent_session_id: string | null };

const tabs = new Map<MessagePort, string>(); // the session shown; "": all
let isOpen = false;

function noticeFor(session: string, notice: Notice): Notice | null {
    if (notice.kind !== "sessions" || session === "") {
        return notice;
    }
    const items = (JSON.parse(notice.data) as { items: Session[] }).items;
    const own = items.filter((item) => item.id === session || item.parent_session_id === session);
    return own.length > 0 ? { kind: "sessions", data: JSON.stringify({ items: own }) } : null;
}

function take(notice: Notice): void {
    isOpen = notice.kind !== "closed";
    for (const [tab, session] of tabs) {
        const own = noticeFor(session, notice);
        if (own) {
            tab.postMessage(own);
        }
    }
}

addEventListener("connect", (event) => {
    const tab = (event as MessageEvent).ports[0]!;
    tabs.set(tab, "");
    tab.onmessage = (message: MessageEvent<{ watch?: string; leaves?: boolean }>) => {
        if (message.data.leaves) {
            tabs.delete(tab);
        } else {
            tabs.set(tab, message.data.watch ?? "");
        }
    };
    if (isOpen) {
        tab.postMessage({ kind: "open", data: "" });
    }
});

openLink(take);
