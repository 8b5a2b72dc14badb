// The command palette: pages, views, sessions, functions of the current session, and shipped
// questions.
import { useEffect, useRef, useState } from "preact/hooks";
import { useAnswer, useKept, useOpening, useQuestion } from "../answers";
import { api } from "../api";
import { navigate, route } from "../router";
import { addressOf } from "../selection";
import { paletteOpen } from "../store";

interface Choice {
    title: string;
    kind: string;
    address: string;
}

const pages: readonly Choice[] = [
    { title: "Sessions", kind: "page", address: "/" },
    { title: "Compare", kind: "page", address: "/compare" },
    { title: "Coverage", kind: "page", address: "/coverage" },
    { title: "Fleet", kind: "page", address: "/fleet" },
    { title: "Findings", kind: "page", address: "/zombies" },
    { title: "SQL", kind: "page", address: "/sql" },
];

const views = ["", "tree", "overview", "missing", "timeline", "flame", "live"];
const viewNames = ["Functions", "Call tree", "Overview", "Missing", "Timeline", "Flame graph", "Live"];

interface Choices {
    choices: Choice[];
    isSettled: boolean; // true if every request for this text has been answered or has failed
}

const settled = (answer: { isCurrent: boolean; problem: string }) => answer.isCurrent || answer.problem !== "";

function useChoices(text: string): Choices {
    const session = route.value.session;
    const wanted = text.trim().toLowerCase();
    const matches = (choice: Choice) => choice.title.toLowerCase().includes(wanted);
    const opening = useOpening();
    const sessions = useQuestion("web.sessions_with_text", { text: wanted || " " }, opening);
    const asksFunctions = session !== null && wanted !== "";
    const values = { session: session ?? "", text: wanted };
    const functions = useQuestion(asksFunctions ? "web.functions_with_text" : "", values, opening);
    const questions = useAnswer("questions", () => api.queries());
    // Until the rows for this text arrive, those of the previous text are shown if they match.
    const functionRows = useKept(functions.isCurrent ? functions.rows : null, session ?? "");
    const sessionRows = useKept(sessions.isCurrent ? sessions.rows : null, "");
    const inSession = session
        ? viewNames.map((title, at) => ({
              title,
              kind: "view",
              address: `/sessions/${session}${views[at] ? `?view=${views[at]}` : ""}`,
          }))
        : [];
    const choices = [
        ...[...inSession, ...pages].filter(matches),
        ...((asksFunctions && functionRows) || [])
            .map((row) => ({
                title: row.name,
                kind: "function",
                address: addressOf(session!, { view: "function", function: row.function_id }),
            }))
            .filter((choice) => functions.isCurrent || matches(choice)),
        ...(sessionRows ?? [])
            .map((row) => ({
                title: `${row.title} · ${row.device}`,
                kind: `session ${row.session_id}`,
                address: `/sessions/${row.session_id}`,
            }))
            .filter((choice) => sessions.isCurrent || matches(choice)),
        ...(questions.value?.items ?? [])
            .map((query) => ({
                title: query.title,
                kind: "question",
                address: `/sql?${new URLSearchParams({ sql: query.sql, ...(session ? { "p.session": session } : {}) }).toString()}`,
            }))
            .filter((choice) => wanted !== "" && matches(choice)),
    ];
    return { choices, isSettled: (!asksFunctions || settled(functions)) && settled(sessions) && settled(questions) };
}

export function Palette() {
    const [text, setText] = useState("");
    const [chosen, setChosen] = useState(""); // address chosen with the arrow keys; "" for the first choice
    const field = useRef<HTMLInputElement>(null);
    const [isEntered, setEntered] = useState(false);
    const { choices, isSettled } = useChoices(text);
    const at = Math.max(0, choices.findIndex((choice) => choice.address === chosen));
    const close = () => (paletteOpen.value = false);
    useEffect(() => {
        const before = document.activeElement as HTMLElement | null;
        field.current?.focus();
        return () => before?.focus();
    }, []);
    const go = (choice: Choice | undefined) => {
        if (choice) {
            close();
            navigate(choice.address);
        }
    };
    // Enter opens the choice that the arrow keys selected, even if it has moved since. Otherwise
    // Enter waits for all answers and opens the first choice.
    useEffect(() => {
        if (isEntered && isSettled) {
            setEntered(false);
            go(choices[at]);
        }
    }, [isEntered, isSettled]);
    const onKeyDown = (event: KeyboardEvent) => {
        event.stopPropagation();
        if (event.key === "Escape") {
            close();
        } else if (event.key === "Enter" && choices[at]?.address === chosen) {
            go(choices[at]);
        } else if (event.key === "Enter") {
            setEntered(true);
        } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            event.preventDefault();
            const step = event.key === "ArrowDown" ? 1 : -1;
            setChosen(choices.at((at + step) % choices.length)?.address ?? "");
        }
    };
    return (
        <div class="palette-back" onClick={(event) => event.target === event.currentTarget && close()}>
            <div class="palette card" role="dialog" aria-modal="true" aria-label="Go to" onKeyDown={onKeyDown}>
                <input
                    ref={field}
                    class="text"
                    type="text"
                    role="combobox"
                    aria-label="Go to"
                    aria-expanded="true"
                    aria-controls="choices"
                    aria-activedescendant={choices.length > 0 ? `choice-${at}` : undefined}
                    placeholder="Page, function, session, question…"
                    value={text}
                    onInput={(event) => {
                        setText(event.currentTarget.value);
                        setChosen("");
                        setEntered(false);
                    }}
                />
                <ul id="choices" role="listbox" aria-label="Where to">
                    {choices.map((choice, index) => (
                        <li
                            key={choice.address}
                            id={`choice-${index}`}
                            role="option"
                            aria-selected={index === at}
                            onClick={() => go(choice)}
                        >
                            <span class="mono">{choice.title}</span> <span class="dim">{choice.kind}</span>
                        </li>
                    ))}
                </ul>
                {choices.length === 0 ? <p class="dim">{isSettled ? "Nothing matches." : "Loading…"}</p> : null}
            </div>
        </div>
    );
}
