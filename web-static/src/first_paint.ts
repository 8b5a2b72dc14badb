// Runs before the first paint, so that a chosen theme does not flash in the other one's colours.
const chosen = localStorage.getItem("theme");
document.documentElement.dataset["theme"] = chosen === "light" || chosen === "dark" ? chosen : "auto";

// The token that `sojourn ui` gives in the address is for this tab, and no part of an address that is sent to others.
// The page is loaded again, as its own. Where a page of another site has led here, it may have chosen the address, and
// the first page is loaded instead.
const given = /^#token=([0-9a-f]*)/.exec(location.hash)?.[1];
if (given !== undefined) {
    const [visit] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
    const isForeign = visit?.serverTiming?.some(({ name }) => name === "foreign") ?? false;
    sessionStorage.setItem("token", given);
    location.replace(isForeign ? "/" : location.pathname + location.search);
}

// The scripts of the page that the address names come with those of every page, not after they have run.
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
