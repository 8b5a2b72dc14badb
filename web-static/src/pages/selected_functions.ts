// The function table of a selection: sums of stored aggregates, or of the single calls that began
// in the selection. All rows are loaded at once. Sorting and searching happen in the browser.
import { useMemo } from "preact/hooks";
import { useQuestion, type SqlRows } from "../answers";
import type { FunctionRow } from "../api";
import { isPart, PART_MS, type Selection, valuesOf } from "../selection";

// Returns the question of the table. Its parameters are those of valuesOf().
export function functionsQuestion(chosen: Selection): "web.selected_functions" | "web.functions" {
    return isPart(chosen) ? "web.selected_functions" : "web.functions";
}

type Key = "name" | "self" | "total" | "calls" | "mean" | "min" | "p50" | "p95" | "p99" | "max";

function compare(key: Key, a: FunctionRow, b: FunctionRow): number {
    if (key === "name") {
        return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
    }
    const field = key === "calls" ? "calls" : (`${key}_ns` as const);
    return (a[field] ?? -1) - (b[field] ?? -1);
}

export interface SelectedFunctions {
    answer: SqlRows<unknown>;
    rows: FunctionRow[];
    totals: { matching: number; calls: number; self_ns: number; session_self_ns: number };
}

export function useSelectedFunctions(
    session: string,
    chosen: Selection | null, // null: loads nothing
    changes: number,
    { sort, order, search }: { sort: string; order: string; search: string },
): SelectedFunctions {
    const answer = useQuestion(
        chosen ? functionsQuestion(chosen) : "",
        chosen ? valuesOf(session, chosen) : { session },
        changes,
        { rows: 20000, ms: PART_MS },
    );
    const all = useMemo(
        () => answer.rows.map((row): FunctionRow => ({ ...row, id: String(row.id), is_self_estimate: row.is_self_estimate !== 0 })),
        [answer.value],
    );
    const rows = useMemo(() => {
        const wanted = search.toLowerCase();
        const found = all.filter((row) => row.name.toLowerCase().includes(wanted));
        const sign = order === "asc" ? 1 : -1;
        return found.sort((a, b) => sign * compare(sort as Key, a, b) || Number(a.id) - Number(b.id));
    }, [all, sort, order, search]);
    const sum = (list: readonly FunctionRow[], pick: (row: FunctionRow) => number) =>
        list.reduce((before, row) => before + pick(row), 0);
    return {
        answer,
        rows,
        totals: {
            matching: rows.length,
            calls: sum(rows, (row) => row.calls),
            self_ns: sum(rows, (row) => row.self_ns),
            session_self_ns: sum(all, (row) => row.self_ns),
        },
    };
}
