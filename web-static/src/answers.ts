// Loads and caches answers of the server for components. A request is cancelled when no component
// waits for it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { askSql, rowsOf, type SqlAnswer } from "./api";

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

export type Values = Record<string, string | number>;

export interface SqlRows<Row> extends Answer<SqlAnswer> {
    rows: Row[];
}

function questionOf(sql: string, values: Values): string {
    return sql === "" ? "" : `${JSON.stringify(values)} ${sql}`;
}

function sqlKey(sql: string, values: Values, changes: number): string {
    return sql === "" ? "" : `${changes} ${questionOf(sql, values)}`;
}

export function prepareSql(sql: string, values: Values, changes: number, limits = {}): void {
    prepare(sqlKey(sql, values, changes), () => askSql(sql, values, limits));
}

// Runs an SQL statement. `changes` counts the changes of the session; a new number runs it again.
export function useSql<Row>(sql: string, values: Values, changes = 0, limits = {}): SqlRows<Row> {
    const ask = (signal: AbortSignal) => askSql(sql, values, limits, signal);
    const answer = useAnswer(sqlKey(sql, values, changes), ask, questionOf(sql, values));
    const rows = useMemo(() => (answer.value ? rowsOf<Row>(answer.value) : []), [answer.value]);
    return { ...answer, rows };
}

let openings = 0;

// Returns another number each time a component is mounted. Used as `changes`, it bypasses the
// cache.
export function useOpening(): number {
    const [opening] = useState(() => ++openings);
    return opening;
}

// Returns the address of the SQL console with this statement and these values.
export function consoleAddress(sql: string, values: Values, engine = ""): string {
    const parameters = new URLSearchParams({ sql: sql.trim(), ...(engine ? { engine } : {}) });
    for (const [name, value] of Object.entries(values)) {
        parameters.set(`p.${name}`, String(value));
    }
    return `/sql?${parameters.toString()}`;
}
