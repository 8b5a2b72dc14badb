// Keys that work on every page, and keys of one page that need no focus. Tables and trees handle
// and explain their own keys.
import { navigate, route, setParameters } from "./router";
import { helpOpen, paletteOpen, setTheme, theme } from "./store";

export interface KeyBinding {
    keys: string;
    does: string;
    where: string;
}

export const bindings: readonly KeyBinding[] = [
    { keys: "?", does: "show or hide this help", where: "Everywhere" },
    { keys: "Ctrl K", does: "go to a page, function, session or question by name", where: "Everywhere" },
    { keys: "/", does: "search", where: "Everywhere" },
    { keys: "Esc", does: "in a search: clear it, then leave it", where: "Everywhere" },
    { keys: "g s", does: "go to the list of sessions", where: "Everywhere" },
    { keys: "t", does: "switch between light, dark and automatic colours", where: "Everywhere" },
    { keys: "1 2 3 4 5 6 7", does: "functions, call tree, overview, missing, timeline, flame graph, live", where: "Session" },
    { keys: "W S, wheel, two fingers", does: "zoom in and out", where: "Timeline" },
    { keys: "A D, ← →, drag", does: "move in time", where: "Timeline" },
    { keys: "↑ ↓, drag, Shift wheel", does: "scroll the threads", where: "Timeline" },
    { keys: "[ ], Alt wheel, the bar on the right", does: "scroll the levels of a deep thread", where: "Timeline" },
    { keys: "F, Home", does: "show the selected call or time, or everything", where: "Timeline" },
    { keys: "R", does: "select the time of the selected call, or of the window", where: "Timeline" },
    { keys: "Shift drag, drag on the ruler", does: "select a time", where: "Timeline" },
    { keys: "click, double click", does: "select a call, zoom to it", where: "Timeline" },
    { keys: "Esc", does: "clear the selected time and call", where: "Timeline" },
    { keys: "↓ ↑ ← →", does: "widest callee, caller, neighbours", where: "Flame graph" },
    { keys: "g q, g f, g c, g v, g z", does: "go to SQL, fleet, compare, coverage, findings", where: "Everywhere" },
    { keys: "↑ ↓", does: "previous or next row", where: "Tables and call tree" },
    { keys: "Page ↑ ↓, Home, End", does: "move by pages, or to the first or last row", where: "Tables and call tree" },
    { keys: "Enter", does: "show a function's hottest path in the call tree", where: "Functions" },
    { keys: "→", does: "open a call, or go to its first callee", where: "Call tree" },
    { keys: "←", does: "close a call, or go to its caller", where: "Call tree" },
    { keys: "h", does: "open the hottest path below the selected call", where: "Call tree" },
    { keys: "Enter", does: "on “n more”: load them; else open or close", where: "Call tree" },
];

const views: Record<string, string> = { "1": "", "2": "tree", "3": "overview", "4": "missing", "5": "timeline", "6": "flame", "7": "live" };
const places: Record<string, string> = {
    "g s": "/",
    "g q": "/sql",
    "g f": "/fleet",
    "g c": "/compare",
    "g v": "/coverage",
    "g z": "/zombies",
};
let leader = "";

// Returns true if it has handled the key.
type KeyHandler = (event: KeyboardEvent) => boolean;
let pageKeys: KeyHandler | null = null;

// Lets the visible page handle keys first. Returns a function that ends this.
export function takeKeys(handler: KeyHandler): () => void {
    pageKeys = handler;
    return () => {
        pageKeys = pageKeys === handler ? null : pageKeys;
    };
}

function isTyping(target: EventTarget | null): boolean {
    return (
        target instanceof HTMLInputElement ||
        target instanceof HTMLTextAreaElement ||
        target instanceof HTMLSelectElement ||
        (target instanceof HTMLElement && target.isContentEditable)
    );
}

function isInDialog(): boolean {
    return helpOpen.value || paletteOpen.value || document.querySelector("dialog[open]") !== null;
}

function focusSearch(): boolean {
    const search = document.querySelector<HTMLInputElement>("input[type=search]");
    search?.focus();
    search?.select();
    return search !== null;
}

// Clears a search field. If it is empty, or is another field, removes the focus from it.
function clearSearch(field: HTMLInputElement): void {
    if (field.type === "search" && field.value !== "") {
        setParameters({ q: "" }, true);
        field.value = "";
    } else {
        field.blur();
    }
}

function nextTheme(): void {
    setTheme(theme.value === "auto" ? "light" : theme.value === "light" ? "dark" : "auto");
}

export function handleKey(event: KeyboardEvent): void {
    if (event.key === "Escape" && isTyping(event.target)) {
        clearSearch(event.target as HTMLInputElement);
        return;
    }
    if ((event.ctrlKey || event.metaKey) && event.code === "KeyK") {
        event.preventDefault();
        paletteOpen.value = !paletteOpen.value;
        return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) {
        return;
    }
    if (leader === "" && !event.defaultPrevented && !isInDialog() && pageKeys?.(event)) {
        event.preventDefault();
        return;
    }
    const key = leader + event.key;
    leader = event.key === "g" ? "g " : "";
    const view = views[event.key];
    if (event.key === "?") {
        helpOpen.value = !helpOpen.value;
    } else if (event.key === "/" && focusSearch()) {
        event.preventDefault();
    } else if (places[key]) {
        navigate(places[key]);
    } else if (event.key === "t") {
        nextTheme();
    } else if (view !== undefined && route.value.session) {
        setParameters({ view });
    }
}
