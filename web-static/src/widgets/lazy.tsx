// Loads the code of a page when the page is first shown.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Problem } from "./small";

export function lazy<Properties extends object>(load: () => Promise<ComponentType<Properties>>) {
    let ready: ComponentType<Properties> | null = null;
    function Lazy(properties: Properties) {
        const [Page, setPage] = useState<ComponentType<Properties> | null>(() => ready);
        const [problem, setProblem] = useState("");
        useEffect(() => {
            if (!ready) {
                load().then(
                    (page) => {
                        ready = page;
                        setPage(() => page);
                    },
                    () => setProblem("This page cannot be loaded. Check that the server is running, then reload."),
                );
            }
        }, []);
        if (!Page) {
            return problem ? <Problem message={problem} /> : <p class="empty">Loading…</p>;
        }
        return <Page {...properties} />;
    }
    // Loads the code before the page is shown.
    Lazy.prepare = () => void load().catch(() => undefined);
    return Lazy;
}
