// Loads and caches answers of the server for components. A request is cancelled when no component
// waits for it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { askQuestion, type QuestionName, type RowOf, rowsOf, type SqlAnswer, type Values, type ValuesOf } from "./api";

const KEPT = 80;
const kept = new Map<string, unknown>();

// Adds an answer to the cache. Drops the oldest one if the cache is full.
function keep(key: string, value: unknown): void {
    kept.delete(key);
    kept.set(key, value);
    if (kept.size > KEPT) {
        kept.delete(kept.keys().next().value!);
    }
}

// Requests that were sent before the page that needs them was shown.
const coming = new Map<string, Promise<unknown>>();

// Sends a request early. The page with the same `key` will use its answer.
export function prepare<T>(key: string, load: () => Promise<T>): void {
    if (!kept.has(key) && !coming.has(key)) {
        const answer = load();
        coming.set(key, answer);
        answer.catch(() => coming.delete(key)); // the page sends the request again and shows the error
    }
}

// Uses the answer that was requested early, if there is one. If that request fails, sends a new
// one.
function loadOnce<T>(key: string, load: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    const answer = coming.get(key) as Promise<T> | undefined;
    coming.delete(key);
    return answer?.catch(() => load(signal)) ?? load(signal);
}

export interface Answer<T> {
    value: T | null; // the answer to this question; after a change, the old answer until the new one arrives
    problem: string;
    isCurrent: boolean; // true if the value belongs to this key
}

const NO_FAILURE = { key: "", problem: "" };

interface Held<T> {
    key: string;
    question: string;
    value: T;
}

// Loads the answer for `key`; "" loads nothing. Keys with the same `question` differ only in the
// number of changes. An answer to another question is never returned, because the page would show
// it under the wrong heading.
export function useAnswer<T>(key: string, load: (signal: AbortSignal) => Promise<T>, question = key): Answer<T> {
    const [held, setHeld] = useState<Held<T> | null>(null);
    const [failed, setFailed] = useState(NO_FAILURE);
    useEffect(() => {
        if (key === "") {
            return undefined;
        }
        if (kept.has(key)) {
            setHeld({ key, question, value: kept.get(key) as T });
            return undefined;
        }
        const abort = new AbortController();
        setFailed(NO_FAILURE);
        loadOnce(key, load, abort.signal).then(
            (value) => {
                keep(key, value);
                if (!abort.signal.aborted) {
                    setHeld({ key, question, value });
                }
            },
            (failure: Error) => abort.signal.aborted || setFailed({ key, problem: failure.message }),
        );
        return () => abort.abort();
    }, [key]);
    const isHeld = held?.key === key;
    const known = isHeld || !kept.has(key) ? (held?.question === question ? held.value : null) : (kept.get(key) as T);
    return {
        value: key === "" ? null : known,
        problem: failed.key === key ? failed.problem : "",
        isCurrent: key !== "" && (isHeld || kept.has(key)),
    };
}

// Returns `value` or, while it is null, the last value of the same scope. For pictures and lists
// that should stay visible until the next value arrives.
export function useKept<T>(value: T | null, scope: string): T | null {
    const last = useRef<{ scope: string; value: T } | null>(null);
    if (value !== null) {
        last.current = { scope, value };
    }
    return last.current?.scope === scope ? last.current.value : null;
}

export interface SqlRows<Row> extends Answer<SqlAnswer> {
    rows: Row[];
}

function keyOf(name: QuestionName | "", values: Values): string {
    return name === "" ? "" : `${name} ${JSON.stringify(values)}`;
}

function keyAt(name: QuestionName | "", values: Values, changes: number): string {
    return name === "" ? "" : `${changes} ${keyOf(name, values)}`;
}

export function prepareQuestion<Name extends QuestionName>(name: Name, values: ValuesOf<Name>, changes: number, limits = {}): void {
    prepare(keyAt(name, values, changes), () => askQuestion(name, values, limits));
}

// Asks a question of schema/queries/web; "" asks nothing. `changes` counts the changes of the
// session; a new number asks it again.
export function useQuestion<Name extends QuestionName>(
    name: Name | "",
    values: ValuesOf<Name>,
    changes = 0,
    limits = {},
): SqlRows<RowOf<Name>> {
    const ask = (signal: AbortSignal) => askQuestion(name as Name, values, limits, signal);
    const answer = useAnswer(keyAt(name, values, changes), ask, keyOf(name, values));
    const rows = useMemo(() => (answer.value ? rowsOf<RowOf<Name>>(answer.value) : []), [answer.value]);
    return { ...answer, rows };
}

let openings = 0;

// Returns another number each time a component is mounted. Used as `changes`, it bypasses the
// cache.
export function useOpening(): number {
    const [opening] = useState(() => ++openings);
    return opening;
}

// Returns the address of the SQL console with the statement of this question and these values.
export function consoleAddress(question: QuestionName, values: Values, engine = ""): string {
    const parameters = new URLSearchParams({ question, ...(engine ? { engine } : {}) });
    for (const [name, value] of Object.entries(values)) {
        if (value !== undefined) {
            parameters.set(`p.${name}`, String(value));
        }
    }
    return `/sql?${parameters.toString()}`;
}
