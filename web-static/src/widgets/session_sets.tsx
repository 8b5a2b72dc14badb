// A form for two sets of sessions, which are the parameters a and b of the address.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useOpening, useQuestion } from "../answers";
import { route, setParameters } from "../router";

// A form that writes the two sets into the address. It also removes the parameters in `clears`,
// because they belong to the old sets.
export function SetFields({ titles, action, clears }: {
    titles: readonly [string, string];
    action: string;
    clears: readonly string[];
}) {
    const parameters = route.value.parameters;
    const [a, setA] = useState(parameters.get("a") ?? "");
    const [b, setB] = useState(parameters.get("b") ?? "");
    const list = useQuestion("web.sessions_to_compare", {}, useOpening());
    useEffect(() => {
        setA(parameters.get("a") ?? "");
        setB(parameters.get("b") ?? "");
    }, [parameters]);
    const show = (first: string, second: string) =>
        setParameters({ a: first, b: second, ...Object.fromEntries(clears.map((name) => [name, ""])) });
    const field = (label: string, value: string, set: (text: string) => void) => (
        <label class="field">
            {label}
            <input
                class="text"
                type="text"
                list="sets"
                value={value}
                placeholder="12,13 or tag:build=9.1 or last:5"
                onInput={(event) => set(event.currentTarget.value)}
            />
        </label>
    );
    return (
        <form
            class="tools"
            onSubmit={(event) => {
                event.preventDefault();
                show(a, b);
            }}
        >
            {field(titles[0], a, setA)}
            {field(titles[1], b, setB)}
            <datalist id="sets">
                {list.rows.map((row) => (
                    <option key={row.session_id} value={String(row.session_id)}>
                        {`${row.name || row.command} · ${row.device} · ${row.started}`}
                    </option>
                ))}
            </datalist>
            <button type="submit" class="primary">
                {action}
            </button>
            <button type="button" class="quiet" onClick={() => show(b, a)}>
                Swap
            </button>
        </form>
    );
}

export function SetHelp({ children }: { children: ComponentChildren }) {
    return (
        <p class="empty">
            {children} ids separated by commas, or <code>device:</code>, <code>build:</code>, <code>tag:</code>,{" "}
            <code>name:</code>, <code>command:</code>, <code>mark:</code>, <code>last:N</code>, joined by{" "}
            <code>+</code>.
        </p>
    );
}
