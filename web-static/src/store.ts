// State that is shared by all pages: the sessions, the connection to the server, and the theme.
import { computed, effect, signal } from "@preact/signals";
import { api, type Session, type SessionPage } from "./api";
import { type Notice, openLink } from "./event_link";
import type { TabMessage, WorkerMessage } from "./events_worker";
import { parse } from "./parse";
import { route } from "./router";
import { isTokenKnown, refuse, signIn, token } from "./token";

export type Theme = "auto" | "light" | "dark";

export const sessions = signal<Session[] | null>(null);
export const sessionTotals = signal<SessionPage["totals"] | null>(null);
export const olderSessions = signal(false);
export const sessionsError = signal("");
export const connected = signal(false);
export const helpOpen = signal(false);
export const paletteOpen = signal(false);
export const theme = signal<Theme>(readTheme());

// True if "auto" means dark now.
const darkSystem = matchMedia("(prefers-color-scheme: dark)");
export const isDarkSystem = signal(darkSystem.matches);
darkSystem.addEventListener("change", () => (isDarkSystem.value = darkSystem.matches));

export const themeKey = computed(() => `${theme.value} ${isDarkSystem.value}`);

// Counts the changes of each session: those that the server reports, and those that this page
// makes. Pages reload when the number changes.
export const changeOf = signal<Record<string, number>>({});

// True once the event stream is connected. Data that was loaded earlier may have missed events.
export const isFollowing = signal(false);

// Counts how often events may have been missed. Pages then load everything again.
export const resyncs = signal(0);

function readTheme(): Theme {
    const stored = localStorage.getItem("theme");
    return stored === "light" || stored === "dark" ? stored : "auto";
}

export function setTheme(next: Theme): void {
    theme.value = next;
    localStorage.setItem("theme", next);
    applyTheme();
}

export function applyTheme(): void {
    document.documentElement.dataset["theme"] = theme.value;
}

function countChanges(changed: Session[]): void {
    const changes = { ...changeOf.value };
    for (const { id, parent_session_id: parent } of changed) {
        changes[id] = (changes[id] ?? 0) + 1;
        if (parent !== null) {
            changes[parent] = (changes[parent] ?? 0) + 1; // `parent` has a new or changed child session
        }
    }
    changeOf.value = changes;
}

// Counts a change of a session that this page made itself.
export function changedHere(id: string): void {
    changeOf.value = { ...changeOf.value, [id]: (changeOf.value[id] ?? 0) + 1 };
}

let filters: Record<string, string> = {};

// The filters of the sessions in the list, as JSON.
export const loadedFilters = signal("");
let turn = 0;
let reload: ReturnType<typeof setTimeout> | undefined;

// Loads the newest page again. If the filters are the same, older pages that were already loaded
// stay, because their sessions are older than its last row.
async function loadSessions(): Promise<void> {
    const mine = ++turn;
    const key = JSON.stringify(filters);
    try {
        const page = await api.sessions(filters);
        if (mine !== turn) {
            return;
        }
        const last = BigInt(page.items[page.items.length - 1]?.id ?? 0);
        const older =
            key === loadedFilters.value && page.truncated
                ? (sessions.value ?? []).filter((session) => BigInt(session.id) < last)
                : [];
        loadedFilters.value = key;
        sessions.value = [...page.items, ...older];
        olderSessions.value = older.length > 0 ? olderSessions.value : page.truncated;
        sessionTotals.value = page.totals;
        sessionsError.value = "";
    } catch (failure) {
        sessionsError.value = mine === turn ? (failure as Error).message : sessionsError.value;
    }
}

// Loads the sessions after a delay, unless a load is already waiting.
function loadSessionsIn(delayMs: number): void {
    reload ??= setTimeout(() => {
        reload = undefined;
        void loadSessions();
    }, delayMs);
}

// Loads the sessions that match. If they are searched by text, waits shortly, because the user may
// still be typing.
export function showSessions(wanted: Record<string, string>): void {
    filters = wanted;
    sessionsError.value = ""; // the old message was about other filters
    loadSessionsIn(wanted["search"] ? 120 : 0);
}

// Counts the changes that this page made to sessions.
export const changesMade = signal(0);

// Loads the list again after this page has changed sessions.
export function reloadSessions(): void {
    changesMade.value++;
    loadSessionsIn(0);
}

export async function loadOlderSessions(): Promise<void> {
    const mine = turn;
    const known = sessions.value ?? [];
    try {
        const page = await api.sessions(JSON.parse(loadedFilters.value || "{}") as Record<string, string>, known[known.length - 1]?.id);
        if (mine === turn) {
            sessions.value = [...known, ...page.items];
            olderSessions.value = page.truncated;
        }
    } catch (failure) {
        sessionsError.value = (failure as Error).message;
    }
}

// Updates visible rows at once. Then asks the server which sessions belong to the list, and for the
// totals.
function adopt(changed: Session[]): void {
    const byId = new Map(changed.map((session) => [session.id, session]));
    countChanges(changed);
    if (sessions.value && route.value.page === "sessions") {
        sessions.value = sessions.value.map((session) => byId.get(session.id) ?? session);
        loadSessionsIn(300);
    }
}

// Makes all pages load their data again, because events may have been missed.
function reloadAll(): void {
    resyncs.value++;
    isFollowing.value = true;
    reloadList();
}

function reloadList(): void {
    if (route.value.page === "sessions") {
        loadSessionsIn(0);
    }
}

// Handles a notice of the event stream. Its first connection reloads only the list of sessions. A
// later connection reloads all pages.
function handleNotice(notice: Notice): void {
    if (notice.kind === "sessions") {
        adopt((parse(notice.data) as { items: Session[] }).items);
    } else if (notice.kind === "closed" || notice.kind === "refused") {
        connected.value = false;
        missedEvents = true;
    } else if (notice.kind === "resync" || (missedEvents && isFollowing.value)) {
        connected.value = true;
        missedEvents = false;
        reloadAll();
    } else if (missedEvents) {
        connected.value = true;
        missedEvents = false;
        isFollowing.value = true;
        reloadList();
    } else {
        connected.value = true;
    }
}

let missedEvents = true; // true if the visible data may be older than the event stream

declare const EVENTS_WORKER: string; // address of the worker, inserted by build.mjs

// Handles a message of the shared worker: a notice, or the token of another tab.
function receive(message: WorkerMessage): void {
    if (message.kind !== "token") {
        handleNotice(message);
        return;
    }
    if (message.data !== "" && token.value === "") {
        signIn(message.data);
    }
    isTokenKnown.value = true;
}

// Opens an event stream for this tab only. Opens it again when the token changes.
function listenAlone(): void {
    isTokenKnown.value = true;
    effect(() => openLink(token.value, handleNotice));
}

// Follows the server's events through a worker that all tabs share. If the browser does not support
// shared workers, this tab opens its own stream. Only a tab without a token waits for this before
// it loads data.
export function listen(): void {
    if (typeof SharedWorker === "undefined") {
        listenAlone();
        return;
    }
    const worker = new SharedWorker(EVENTS_WORKER);
    const say = (said: TabMessage) => worker.port.postMessage(said);
    const offer = () => say({ watch: route.value.session ?? "", token: token.value });
    worker.onerror = listenAlone;
    worker.port.onmessage = ({ data }: MessageEvent<WorkerMessage>) => {
        receive(data);
        if (data.kind === "refused") {
            refuse(data.data);
            if (token.value !== "") {
                offer(); // the refused token was another tab's
            }
        }
    };
    effect(offer);
    addEventListener("pagehide", () => say({ leaves: true }));
    addEventListener("pageshow", (event) => {
        if (event.persisted) {
            offer();
            reloadAll();
        }
    });
}
