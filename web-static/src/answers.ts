// Answers of the server for components: kept by their address, cancelled when nobody waits.
import { useEffect, useState } from "preact/hooks";
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
    value: T | null; // of the key before, until that of this one is there
    problem: string;
    isCurrent: boolean;
}

// useAnswer loads what `key` names; "" loads nothing.
export function useAnswer<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Answer<T> {
    const [held, setHeld] = useState<{ key: string; value: T } | null>(null);
    const [problem, setProblem] = useState("");
    useEffect(() => {
        setProblem("");
        if (key === "") {
            return undefined;
        }
        if (kept.has(key)) {
            setHeld({ key, value: kept.get(key) as T });
            return undefined;
        }
        const abort = new AbortController();
        take(key, load, abort.signal).then(
            (value) => {
                keep(key, value);
                if (!abort.signal.aborted) {
                    setHeld({ key, value });
                }
            },
            (failure: Error) => abort.signal.aborted || setProblem(failure.message),
        );
        return () => abort.abort();
    }, [key]);
    return {
        value: key === "" ? null : (held?.value ?? null),
        problem,
        isCurrent: held?.key === key,
    };
}

export type Values = Record<string, string | number>;

export interface SqlRows<Row> extends Answer<SqlAnswer> {
    rows: Row[];
}

function sqlKey(sql: string, values: Values, changes: number): string {
    return sql === "" ? "" : `${changes} ${JSON.stringify(values)} ${sql}`;
}

export function prepareSql(sql: string, values: Values, changes: number, limits = {}): void {
    prepare(sqlKey(sql, values, changes), () => askSql(sql, values, limits));
}

// useSql asks in SQL; `changes` counts the changes of the session that it is about.
export function useSql<Row>(sql: string, values: Values, changes = 0, limits = {}): SqlRows<Row> {
    const answer = useAnswer(sqlKey(sql, values, changes), (signal) => askSql(sql, values, limits, signal));
    return { ...answer, rows: answer.value ? rowsOf<Row>(answer.value) : [] };
}

// consoleAddress is where a statement can be read, changed and run again.
export function consoleAddress(sql: string, values: Values, engine = ""): string {
    const parameters = new URLSearchParams({ sql: sql.trim(), ...(engine ? { engine } : {}) });
    for (const [name, value] of Object.entries(values)) {
        parameters.set(`p.${name}`, String(value));
    }
    return `/sql?${parameters.toString()}`;
}
