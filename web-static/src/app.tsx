import { render } from "preact";
import { useEffect } from "preact/hooks";
import { handleKey } from "./keys";
import { followLink, route } from "./router";
import { applyTheme, listen } from "./store";
import { SessionPage } from "./pages/session";
import { SessionsPage } from "./pages/sessions";
import { Header } from "./widgets/header";
import { Help } from "./widgets/help";

function App() {
    useEffect(() => {
        addEventListener("keydown", handleKey);
        return () => removeEventListener("keydown", handleKey);
    }, []);
    const session = route.value.session;
    return (
        <div class="app" onClick={followLink}>
            <a class="skip" href="#main">
                Skip to content
            </a>
            <Header />
            <main id="main" tabIndex={-1}>
                {session ? <SessionPage key={session} id={session} /> : <SessionsPage />}
            </main>
            <Help />
        </div>
    );
}

applyTheme();
listen();
render(<App />, document.getElementById("app")!);
