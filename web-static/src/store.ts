// What outlives a page: the sessions, the connection to the server, the theme.
import { signal } from "@preact/signals";
import { api, type Session } from "./api";

export type Theme = "auto" | "light" | "dark";

export const sessions = signal<Session[] | null>(null);
export const olderSessions = signal(false);
export const sessionsError = signal("");
export const connected = signal(false);
export const helpOpen = signal(false);
export const theme = signal<Theme>(readTheme());

// changeOf counts the changes of each session that the server told of, so that pages can reload.
export const changeOf = signal<Record<string, number>>({});

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
    for (const session of changed) {
        changes[session.id] = (changes[session.id] ?? 0) + 1;
    }
    changeOf.value = changes;
}

export async function loadSessions(): Promise<void> {
    try {
        const list = await api.sessions();
        if (sessions.value) {
            countChanges(list.items); // whatever was missed since the last list
        }
        sessions.value = list.items;
        olderSessions.value = list.truncated;
        sessionsError.value = "";
    } catch (failure) {
        sessionsError.value = String((failure as Error).message);
    }
}

export async function loadOlderSessions(): Promise<void> {
    const known = sessions.value ?? [];
    const list = await api.sessions(known[known.length - 1]?.id);
    sessions.value = [...known, ...list.items];
    olderSessions.value = list.truncated;
}

function byAge(a: Session, b: Session): number {
    return BigInt(b.id) > BigInt(a.id) ? 1 : -1;
}

function adopt(changed: Session[]): void {
    const byId = new Map((sessions.value ?? []).map((session) => [session.id, session]));
    for (const session of changed) {
        byId.set(session.id, session);
    }
    sessions.value = [...byId.values()].sort(byAge);
    countChanges(changed);
}

// listen follows the server's events; EventSource reconnects by itself, and everything is loaded
// anew then, because changes may have been missed.
export function listen(): void {
    const events = new EventSource("/api/v1/events");
    events.addEventListener("open", () => {
        connected.value = true;
        void loadSessions();
    });
    events.addEventListener("error", () => {
        connected.value = false;
    });
    events.addEventListener("sessions", (event) => {
        adopt((JSON.parse((event as MessageEvent<string>).data) as { items: Session[] }).items);
    });
    events.addEventListener("resync", () => {
        void loadSessions();
    });
}
