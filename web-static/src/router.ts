// The address is the state: its URL contains all that a page shows, so it can be sent to a
// colleague.
import { signal } from "@preact/signals";

export type PageName = "sessions" | "session" | "compare" | "sql" | "fleet" | "zombies" | "coverage" | "timelines";

export interface Route {
    page: PageName;
    session: string | null;
    parameters: URLSearchParams;
}

// All pages of the dashboard. The server has the same list (assets.c).
const paths: readonly (readonly [RegExp, PageName])[] = [
    [/^\/$/, "sessions"],
    [/^\/sessions\/([1-9][0-9]{0,17})$/, "session"],
    [/^\/compare$/, "compare"],
    [/^\/sql$/, "sql"],
    [/^\/fleet$/, "fleet"],
    [/^\/zombies$/, "zombies"],
    [/^\/coverage$/, "coverage"],
    [/^\/timeline$/, "timelines"],
];

export function readRoute(path: string, search: string): Route | null {
    for (const [pattern, page] of paths) {
        const match = pattern.exec(path);
        if (match) {
            return { page, session: match[1] ?? null, parameters: new URLSearchParams(search) };
        }
    }
    return null;
}

function readLocation(): Route {
    return (
        readRoute(location.pathname, location.search) ?? {
            page: "sessions",
            session: null,
            parameters: new URLSearchParams(),
        }
    );
}

export const route = signal(readLocation());

function adopt(): void {
    route.value = readLocation();
}

export function navigate(url: string): void {
    history.pushState(null, "", url);
    adopt();
    scrollTo(0, 0);
}

// Changes some parameters of the address. Empty values are removed.
export function setParameters(changes: Record<string, string>, replace = false): void {
    const url = new URL(location.href);
    for (const [name, value] of Object.entries(changes)) {
        if (value === "") {
            url.searchParams.delete(name);
        } else {
            url.searchParams.set(name, value);
        }
    }
    history[replace ? "replaceState" : "pushState"](null, "", url);
    adopt();
}

// Handles a click on an internal link, unless the user wants a new tab or window.
export function followLink(event: MouseEvent): void {
    const link = (event.target as Element).closest("a");
    if (!link || link.origin !== location.origin || link.hasAttribute("download")) {
        return;
    }
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) {
        return;
    }
    if (link.hash !== "" && link.pathname === location.pathname && link.search === location.search) {
        event.preventDefault();
        document.getElementById(link.hash.slice(1))?.focus();
        return;
    }
    if (readRoute(link.pathname, "")) {
        event.preventDefault();
        navigate(link.href);
    }
}

addEventListener("popstate", adopt);
