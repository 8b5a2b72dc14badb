import { type PageName, route } from "../router";
import { onDevice } from "../selection";
import { may, Who } from "./access";
import { health } from "./engine";
import { connected, helpOpen, paletteOpen, setTheme, theme, type Theme } from "../store";

const places: readonly (readonly [PageName, string, string])[] = [
    ["sessions", "/", "Sessions"],
    ["compare", "/compare", "Compare"],
    ["coverage", "/coverage", "Coverage"],
    ["fleet", "/fleet", "Fleet"],
    ["zombies", "/zombies", "Findings"],
    ["sql", "/sql", "SQL"],
];

const ofLabs: ReadonlySet<PageName> = new Set(["coverage", "zombies"]); // a cluster does not have the data of these pages

function isAt(page: PageName): boolean {
    return route.value.page === page || (page === "sessions" && ["session", "timelines"].includes(route.value.page));
}

function isShown(page: PageName): boolean {
    return !(health.value?.is_cluster && ofLabs.has(page)) && (page !== "sql" || may("analyst"));
}

function Logo() {
    return (
        <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
            <rect width="32" height="32" rx="8" class="logo-back" />
            <rect x="6" y="8" width="20" height="4" rx="2" class="logo-1" />
            <rect x="9" y="14" width="13" height="4" rx="2" class="logo-2" />
            <rect x="12" y="20" width="6" height="4" rx="2" class="logo-3" />
        </svg>
    );
}

export function Header() {
    return (
        <header class="top">
            <a class="brand" href="/">
                <Logo />
                <span>Sojourn</span>
            </a>
            <nav class="places" aria-label="Pages">
                {places.filter(([page]) => isShown(page)).map(([page, address, title]) => (
                    <a
                        key={page}
                        href={onDevice(address)}
                        {...(isAt(page) ? { "aria-current": "page" as const } : {})}
                    >
                        {title}
                    </a>
                ))}
            </nav>
            <span class={`live ${connected.value ? "on" : ""}`} role="status">
                <span class="dot" aria-hidden="true" />
                {connected.value ? "live" : "reconnecting…"}
            </span>
            <span class="grow" />
            <Who />
            <button class="quiet" type="button" aria-haspopup="dialog" onClick={() => (paletteOpen.value = true)}>
                Go to <kbd>Ctrl</kbd> <kbd>K</kbd>
            </button>
            <label class="theme">
                <span class="hidden">Colours</span>
                <select
                    value={theme.value}
                    onChange={(event) => setTheme(event.currentTarget.value as Theme)}
                >
                    <option value="auto">Auto</option>
                    <option value="light">Light</option>
                    <option value="dark">Dark</option>
                </select>
            </label>
            <button
                class="quiet keys"
                type="button"
                aria-haspopup="dialog"
                onClick={() => (helpOpen.value = true)}
            >
                Keys <kbd>?</kbd>
            </button>
        </header>
    );
}
