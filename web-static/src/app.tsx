import { render } from "preact";
import { useEffect } from "preact/hooks";
import { handleKey } from "./keys";
import { followLink, route } from "./router";
import { applyTheme, listen, paletteOpen } from "./store";
import { isRefused, isTokenKnown } from "./token";
import { followRole } from "./widgets/access";
import { lazy } from "./widgets/lazy";
import { SignInPage } from "./widgets/sign_in";
import { SessionPage } from "./pages/session";
import { SessionsPage } from "./pages/sessions";
import { Header } from "./widgets/header";
import { Help } from "./widgets/help";

const Palette = lazy<object>(() => import("./widgets/palette").then((part) => part.Palette));
const SqlPage = lazy(() => import("./pages/sql").then((page) => page.SqlPage));
const ComparePage = lazy(() => import("./pages/compare").then((page) => page.ComparePage));
const FleetPage = lazy(() => import("./pages/fleet").then((page) => page.FleetPage));
const ZombiesPage = lazy(() => import("./pages/zombies").then((page) => page.ZombiesPage));
const TimelinesPage = lazy(() => import("./pages/timelines").then((page) => page.TimelinesPage));
const CoveragePage = lazy(() => import("./pages/coverage").then((page) => page.CoveragePage));

function Page() {
    const { page, session } = route.value;
    switch (page) {
        case "session":
            return <SessionPage key={session} id={session!} />;
        case "sql":
            return <SqlPage />;
        case "compare":
            return <ComparePage />;
        case "fleet":
            return <FleetPage />;
        case "coverage":
            return <CoveragePage />;
        case "timelines":
            return <TimelinesPage />;
        case "zombies":
            return <ZombiesPage />;
        default:
            return <SessionsPage />;
    }
}

function App() {
    useEffect(() => {
        addEventListener("keydown", handleKey);
        return () => removeEventListener("keydown", handleKey);
    }, []);
    return (
        <div class="app" onClick={followLink}>
            <a class="skip" href="#main">
                Skip to content
            </a>
            <Header />
            <main id="main" tabIndex={-1}>
                {isRefused.value ? <SignInPage /> : isTokenKnown.value ? <Page /> : null}
            </main>
            <Help />
            {paletteOpen.value ? <Palette /> : null}
        </div>
    );
}

// A page of another site has opened this address. The address may be hostile, so nothing is
// requested until the user agrees.
function Foreign() {
    return (
        <main class="card panel" id="main">
            <h1>A page of another site has opened this one</h1>
            <p>
                It may have chosen what is shown, and what is computed for that.{" "}
                <a href={location.pathname + location.search}>Show {location.pathname + location.search}</a>
            </p>
        </main>
    );
}

// True if a page of another site linked here. The server reports that in a Server-Timing header
// (reply.h).
function isForeign(): boolean {
    const [visit] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
    return visit?.serverTiming?.some(({ name }) => name === "foreign") ?? false;
}

function start(): void {
    applyTheme();
    if (location.hash.startsWith("#token=")) {
        return; // the page is about to be loaded again (first_paint.ts)
    }
    if (isForeign()) {
        render(<Foreign />, document.getElementById("app")!);
        return;
    }
    listen();
    followRole();
    render(<App />, document.getElementById("app")!);
}

start();
