// Runs before the first paint, so that the page does not flash in the colours of the wrong theme.
const chosen = localStorage.getItem("theme");
document.documentElement.dataset["theme"] = chosen === "light" || chosen === "dark" ? chosen : "auto";

// Moves the token that `sojourn ui` puts into the address to this tab's storage, so that copied
// addresses do not contain it. Then loads the page again without it. If another site opened this
// page, it may have chosen the address. The start page is loaded instead.
const given = /^#token=([0-9a-f]*)/.exec(location.hash)?.[1];
if (given !== undefined) {
    const [visit] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
    const isForeign = visit?.serverTiming?.some(({ name }) => name === "foreign") ?? false;
    sessionStorage.setItem("token", given);
    location.replace(isForeign ? "/" : location.pathname + location.search);
}

// Preloads the scripts of the page in the address together with the common scripts.
const [place = "", session] = location.pathname.slice(1).split("/");
const page = session ? (new URLSearchParams(location.search).get("view") ?? "") : place === "timeline" ? "timelines" : place;
const scripts = JSON.parse(document.currentScript?.dataset["scripts"] ?? "{}") as Record<string, string[]>;
for (const name of Object.hasOwn(scripts, page) ? scripts[page]! : []) {
    const link = document.createElement("link");
    link.rel = "modulepreload";
    link.href = `/assets/${name}`;
    document.head.append(link);
}
export {};
