// The function table of a selection: sums of stored aggregates, or of the single calls that began
// in the selection. All rows are loaded at once. Sorting and searching happen in the browser.
import { useMemo } from "preact/hooks";
import { useSql, type SqlRows } from "../answers";
import type { FunctionRow } from "../api";
import { selfEstimateSql } from "../estimates";
import { isPart, isPicked, matches, PART_MS, pickedSql, quantileSql, type Selection, valuesOf } from "../selection";

const COLUMNS = `f.function_id AS id, f.name, coalesce(m.path, '') AS module`;

// For each function: how many of its calls were open when recording ended.
const openSql = (chosen: Selection) => `(SELECT o.function_id, count(*) AS open_calls FROM streams x JOIN open_calls o USING (stream_id)
    WHERE x.session_id = :session AND ${isPicked(chosen, "o.stream_id", "o.start_ns")} GROUP BY o.function_id)`;

function wholeSql(chosen: Selection): string {
    const quantile = (part: string) =>
        `histogram_quantile(s.histogram, ${part}, s.session_id, s.min_ns, s.max_ns)`;
    return `SELECT ${COLUMNS}, s.calls, s.total_ns, s.self_ns,
       (SELECT sum(p.total_ns) / nullif(sum(p.calls), 0) FROM call_paths p
        WHERE p.session_id = s.session_id AND p.function_id = s.function_id) AS mean_ns,
       s.min_ns, s.max_ns, ${quantile("0.5")} AS p50_ns, ${quantile("0.9")} AS p90_ns,
       ${quantile("0.95")} AS p95_ns, ${quantile("0.99")} AS p99_ns,
       coalesce(e.open_calls, 0) AS open_calls, s.unwound, s.untrusted,
       coalesce(s.untimed_calls, 0) AS untimed_calls, s.error_ns, ${selfEstimateSql("s.function_id")}
FROM function_stats s JOIN functions f USING (function_id) LEFT JOIN modules m USING (module_id)
LEFT JOIN ${openSql(chosen)} e ON e.function_id = s.function_id
WHERE s.session_id = :session AND ${matches(chosen, "f.name")}`;
}

// The sums come from call_aggregate, which counts recursive time once. The percentiles come from
// call_groups.
function partSql(chosen: Selection): string {
    return `${pickedSql(chosen)},
  sums AS (SELECT a.function_id, sum(a.calls) AS calls, sum(a.total_ns) AS total_ns, sum(a.self_ns) AS self_ns,
      sum(a.duration_ns) AS duration_ns, min(a.min_ns) AS min_ns, max(a.max_ns) AS max_ns
    FROM picked p JOIN call_aggregate(:session, p.from_ns, p.to_ns, p.stream_id) a GROUP BY a.function_id),
  spread AS (SELECT g.function_id, histogram_merge(g.histogram) AS histogram
    FROM (SELECT DISTINCT thread_id, from_ns, to_ns FROM picked) p
    JOIN call_groups('function', :session, p.from_ns, p.to_ns, p.thread_id) g GROUP BY g.function_id)
SELECT ${COLUMNS}, s.calls, s.total_ns, s.self_ns, s.duration_ns / nullif(s.calls, 0) AS mean_ns, s.min_ns, s.max_ns,
       ${quantileSql("0.5")} AS p50_ns, ${quantileSql("0.9")} AS p90_ns,
       ${quantileSql("0.95")} AS p95_ns, ${quantileSql("0.99")} AS p99_ns,
       coalesce(e.open_calls, 0) AS open_calls, 0 AS unwound, 0 AS untrusted,
       (SELECT coalesce(max(u.untimed_calls), 0) FROM function_stats u
        WHERE u.session_id = :session AND u.function_id = s.function_id) AS untimed_calls, NULL AS error_ns,
       ${selfEstimateSql("s.function_id")}
FROM sums s JOIN functions f USING (function_id) LEFT JOIN modules m USING (module_id)
LEFT JOIN ${openSql(chosen)} e ON e.function_id = s.function_id
LEFT JOIN spread h ON h.function_id = s.function_id WHERE ${matches(chosen, "f.name")}`;
}

// Returns the statement of the table. Its parameters are those of valuesOf().
export function selectedFunctionsSql(chosen: Selection): string {
    return isPart(chosen) ? partSql(chosen) : wholeSql(chosen);
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
    answer: SqlRows<FunctionRow>;
    rows: FunctionRow[];
    totals: { matching: number; calls: number; self_ns: number; session_self_ns: number };
}

export function useSelectedFunctions(
    session: string,
    chosen: Selection | null, // null: loads nothing
    changes: number,
    { sort, order, search }: { sort: string; order: string; search: string },
): SelectedFunctions {
    const answer = useSql<FunctionRow>(
        chosen ? selectedFunctionsSql(chosen) : "",
        chosen ? valuesOf(session, chosen) : {},
        changes,
        { rows: 20000, ms: PART_MS },
    );
    const rows = useMemo(() => {
        const wanted = search.toLowerCase();
        const found = answer.rows.filter((row) => row.name.toLowerCase().includes(wanted));
        const sign = order === "asc" ? 1 : -1;
        return found.sort((a, b) => sign * compare(sort as Key, a, b) || Number(a.id) - Number(b.id));
    }, [answer.value, sort, order, search]);
    const sum = (list: readonly FunctionRow[], pick: (row: FunctionRow) => number) =>
        list.reduce((before, row) => before + pick(row), 0);
    return {
        answer,
        rows,
        totals: {
            matching: rows.length,
            calls: sum(rows, (row) => row.calls),
            self_ns: sum(rows, (row) => row.self_ns),
            session_self_ns: sum(answer.rows, (row) => row.self_ns),
        },
    };
}
