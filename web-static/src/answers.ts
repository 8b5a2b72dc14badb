// Answers of the server for components: kept by their address, cancelled when nobody waits.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { askSql, rowsOf, type SqlAnswer } from "./api";

const KEPT = 80;
const kept = new Map<string, unknown>();

function keep(key: string, value: unknown): void {
    kept.delete(key);
    kept.set(key, value);
    if (kept.size > KEPT) {
        kept.delete(kept.keys().next().value!);
    }
}

// What was asked for before the page that shows it was there.
const coming = new Map<string, Promise<unknown>>();

// prepare asks for what a page will ask for by that key, once.
export function prepare<T>(key: string, load: () => Promise<T>): void {
    if (!kept.has(key) && !coming.has(key)) {
        const answer = load();
        coming.set(key, answer);
        answer.catch(() => coming.delete(key)); // the page asks itself, and says what is wrong
    }
}

function take<T>(key: string, load: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    const answer = coming.get(key) as Promise<T> | undefined;
    coming.delete(key);
    return answer?.catch(() => load(signal)) ?? load(signal);
}

export interface Answer<T> {
    value: T | null; // of this question; until a change of what it is about has been answered, as it was before
    problem: string;
    isCurrent: boolean; // it answers this key
}

const NO_FAILURE = { key: "", problem: "" };

interface Held<T> {
    key: string;
    question: string;
    value: T;
}

// useAnswer loads what `key` names; "" loads nothing. Keys of the same `question` differ by what has changed since. The
// answer to another question is never given: nobody is to read it, or act on it, under the words of this one.
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
        take(key, load, abort.signal).then(
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

// useKept is a value or, while there is none, the last one of the same scope: for a picture that stays until the next
// is there, and for lists that say themselves which of their rows still fit.
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

// useSql asks in SQL; `changes` counts the changes of the session that it is about.
export function useSql<Row>(sql: string, values: Values, changes = 0, limits = {}): SqlRows<Row> {
    const ask = (signal: AbortSignal) => askSql(sql, values, limits, signal);
    const answer = useAnswer(sqlKey(sql, values, changes), ask, questionOf(sql, values));
    const rows = useMemo(() => (answer.value ? rowsOf<Row>(answer.value) : []), [answer.value]);
    return { ...answer, rows };
}

let openings = 0;

// useOpening is another number each time that a part of a page is opened: as `changes`, it asks anew what was kept.
export function useOpening(): number {
    const [opening] = useState(() => ++openings);
    return opening;
}

// consoleAddress is where a statement can be read, changed and run again.
export function consoleAddress(sql: string, values: Values, engine = ""): string {
    const parameters = new URLSearchParams({ sql: sql.trim(), ...(engine ? { engine } : {}) });
    for (const [name, value] of Object.entries(values)) {
        parameters.set(`p.${name}`, String(value));
    }
    return `/sql?${parameters.toString()}`;
}
