// What outlives a page: the sessions, the connection to the server, the theme.
import { computed, effect, signal } from "@preact/signals";
import { api, type Session, type SessionPage } from "./api";
import { type Notice, openLink } from "./event_link";
import type { Said, Told } from "./events_worker";
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

// isDarkSystem says what "auto" means now: canvases are drawn again when it changes.
const darkSystem = matchMedia("(prefers-color-scheme: dark)");
export const isDarkSystem = signal(darkSystem.matches);
darkSystem.addEventListener("change", () => (isDarkSystem.value = darkSystem.matches));

// looks changes with every change of the colours.
export const looks = computed(() => `${theme.value} ${isDarkSystem.value}`);

// changeOf counts the changes of each session that the server reported, so that pages can reload.
export const changeOf = signal<Record<string, number>>({});

// isFollowing: the server's events come since; what was loaded before may be older than they are.
export const isFollowing = signal(false);

// resyncs counts how often events may have been missed: whatever is shown loads again.
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
            changes[parent] = (changes[parent] ?? 0) + 1; // a dump of it
        }
    }
    changeOf.value = changes;
}

// changedHere counts a change of a session that this page made itself.
export function changedHere(id: string): void {
    changeOf.value = { ...changeOf.value, [id]: (changeOf.value[id] ?? 0) + 1 };
}

let filters: Record<string, string> = {};

// loadedFilters are those that the sessions in the list match, as JSON.
export const loadedFilters = signal("");
let turn = 0;
let reload: ReturnType<typeof setTimeout> | undefined;

// The newest page again; pages that were loaded after it stay, they are older than its last row.
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

function loadSessionsIn(delayMs: number): void {
    reload ??= setTimeout(() => {
        reload = undefined;
        void loadSessions();
    }, delayMs);
}

// showSessions loads the sessions that match, soon: more letters may follow.
export function showSessions(wanted: Record<string, string>): void {
    filters = wanted;
    sessionsError.value = ""; // it was of what was asked before
    loadSessionsIn(wanted["search"] ? 120 : 0);
}

// changesMade counts what this page did to sessions.
export const changesMade = signal(0);

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

// Rows that are shown change at once; whether a session belongs to the list, and the totals, are
// the server's to say.
function adopt(changed: Session[]): void {
    const byId = new Map(changed.map((session) => [session.id, session]));
    countChanges(changed);
    if (sessions.value && route.value.page === "sessions") {
        sessions.value = sessions.value.map((session) => byId.get(session.id) ?? session);
        loadSessionsIn(300);
    }
}

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

function take(notice: Notice): void {
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

let missedEvents = true; // what is shown may be older than the stream

declare const EVENTS_WORKER: string; // its address; build.mjs puts it in

function hear(told: Told): void {
    if (told.kind !== "token") {
        take(told);
        return;
    }
    if (told.data !== "" && token.value === "") {
        signIn(told.data);
    }
    isTokenKnown.value = true;
}

function listenAlone(): void {
    isTokenKnown.value = true;
    effect(() => openLink(token.value, take));
}

// listen follows the server's events through the worker that all tabs share, or by a stream of its
// own where the browser has no such workers. The pages' data waits for it only in a tab without a token.
export function listen(): void {
    if (typeof SharedWorker === "undefined") {
        listenAlone();
        return;
    }
    const worker = new SharedWorker(EVENTS_WORKER);
    const say = (said: Said) => worker.port.postMessage(said);
    const offer = () => say({ watch: route.value.session ?? "", token: token.value });
    worker.onerror = listenAlone;
    worker.port.onmessage = ({ data }: MessageEvent<Told>) => {
        hear(data);
        if (data.kind === "refused") {
            refuse(data.data);
            if (token.value !== "") {
                offer(); // it was another tab's token
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
