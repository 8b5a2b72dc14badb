import { render } from "preact";
import { useEffect } from "preact/hooks";
import { handleKey } from "./keys";
import { followLink, route } from "./router";
import { applyTheme, listen, paletteOpen } from "./store";
import { lazy } from "./widgets/lazy";
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
                <Page />
            </main>
            <Help />
            {paletteOpen.value ? <Palette /> : null}
        </div>
    );
}

applyTheme();
listen();
render(<App />, document.getElementById("app")!);
