// One event stream for all tabs of a browser: a browser opens six connections to a server at most,
// and a stream in each tab would use them up. A tab says which session it shows, and gets the
// events of that one and of what was cut from it; a tab that shows the list gets all. A tab that has the token gives it
// to the worker, and so to tabs that have none.
import { type Notice, openLink } from "./event_link";

export type Told = Notice | { kind: "token"; data: string }; // "": no tab has one

export interface Said {
    watch?: string; // the session that the tab shows; "": all
    token?: string;
    leaves?: boolean;
}

type Session = { id: string; parent_session_id: string | null };

const tabs = new Map<MessagePort, string>(); // the session shown; "": all
let isOpen = false;
let token = "";
let close: (() => void) | null = null; // ends the link; null: there is none

function noticeFor(session: string, notice: Notice): Notice | null {
    if (notice.kind !== "sessions" || session === "") {
        return notice;
    }
    const items = (JSON.parse(notice.data) as { items: Session[] }).items;
    const own = items.filter((item) => item.id === session || item.parent_session_id === session);
    return own.length > 0 ? { kind: "sessions", data: JSON.stringify({ items: own }) } : null;
}

function tell(tab: MessagePort, told: Told): void {
    tab.postMessage(told);
}

// A link that is open has the right token: another one is not tried.
function linkWith(offered: string): void {
    if (!isOpen && (close === null || offered !== token)) {
        close?.();
        token = offered;
        close = openLink(token, take);
    }
}

function take(notice: Notice): void {
    isOpen = notice.kind !== "closed" && notice.kind !== "refused";
    if (notice.kind === "refused") {
        token = "";
        close = null;
    }
    for (const [tab, session] of tabs) {
        const own = noticeFor(session, notice);
        if (own) {
            tell(tab, own);
        }
    }
}

addEventListener("connect", (event) => {
    const tab = (event as MessageEvent).ports[0]!;
    tabs.set(tab, "");
    tab.onmessage = ({ data }: MessageEvent<Said>) => {
        if (data.leaves) {
            tabs.delete(tab);
            return;
        }
        tabs.set(tab, data.watch ?? "");
        if (data.token === "") {
            tell(tab, { kind: "token", data: token });
        }
        linkWith(data.token || token);
    };
    if (isOpen) {
        tell(tab, { kind: "open", data: "" });
    }
});
