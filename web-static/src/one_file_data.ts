// What a page for one file holds: the answers that its tables and its flame graph are drawn from.
import { askSql, type Overview, rowsOf, type SqlAnswer } from "./api";
import { type FlameRow, flameSql } from "./pages/flame_tree";
import {
    decisionsSql,
    marksSql,
    OPEN_SQL,
    slowSql,
    threadsSql,
    triggersSql,
    UNHOOKED_SQL,
} from "./pages/overview_sql";
import { selectedFunctionsSql } from "./pages/selected_functions";
import { isPart, PART_MS, type Selection, valuesOf } from "./selection";

export interface OnePanel {
    title: string;
    columns: string[];
    rows: unknown[][];
    truncated: boolean;
}

export interface OneFile {
    made: string; // when, ISO 8601
    session: Overview;
    selection: string[]; // in words; none: all calls
    isPart: boolean;
    flame: FlameRow[];
    panels: OnePanel[];
}

const FUNCTIONS_MAX = 5000;

// Slow calls with their callers, which nobody can ask for later.
function slowWithCallersSql(chosen: Selection): string {
    return `SELECT x.name, x.given, x.thread, x.start_ns, x.duration_ns, x.self_ns,
    (SELECT group_concat(f.name, ' ← ') FROM ancestors(x.call_id) a LEFT JOIN functions f USING (function_id)) AS callers
FROM (${slowSql(chosen)}) x`;
}

function functionsSql(chosen: Selection): string {
    return `SELECT name, module, calls, total_ns, self_ns, mean_ns, min_ns, p50_ns, p95_ns, p99_ns, max_ns
FROM (${selectedFunctionsSql(chosen)}) ORDER BY self_ns DESC`;
}

function panelsOf(session: Overview, chosen: Selection): [string, string, number][] {
    const hasEnded = ["crashed", "killed", "lost", "interrupted"].includes(session.state);
    return [
        ["Functions", functionsSql(chosen), FUNCTIONS_MAX],
        ["Single calls with most time of their own", slowWithCallersSql(chosen), 100],
        ...(hasEnded ? [["Open at the end, innermost first", OPEN_SQL, 500] as [string, string, number]] : []),
        ["Threads", threadsSql(chosen), 200],
        ["Marks", marksSql(chosen), 200],
        ["Triggers that fired", triggersSql(chosen), 200],
        ["Decisions of the overhead budget", decisionsSql(chosen), 200],
        ["Functions that were not instrumented, by reason", UNHOOKED_SQL, 200],
    ];
}

// gather asks for everything; it fails when one of the answers does.
export async function gather(session: Overview, chosen: Selection, words: string[]): Promise<OneFile> {
    const values = valuesOf(session.id, chosen);
    const ask = (sql: string, rows: number, more = {}): Promise<SqlAnswer> =>
        askSql(sql, { ...values, ...more }, { rows, ms: PART_MS });
    const everything = { left: 0, right: Number.MAX_SAFE_INTEGER, whole: 0 };
    const flame = await ask(flameSql(chosen, null), 20000, everything);
    const panels: OnePanel[] = [];
    for (const [title, sql, rows] of panelsOf(session, chosen)) {
        const answer = await ask(sql, rows);
        panels.push({ title, columns: answer.columns, rows: answer.rows, truncated: answer.truncated });
    }
    return {
        made: new Date().toISOString(),
        session,
        selection: words,
        isPart: isPart(chosen) || chosen.functions !== "",
        flame: rowsOf<FlameRow>(flame),
        panels,
    };
}

// pageOf puts the data into the page that build.mjs made. Names come from traced programs: as JSON
// without "<" they end no element, and the page's policy runs no script but its own.
export function pageOf(template: string, data: OneFile): string {
    const json = JSON.stringify(data).replaceAll("<", "\\u003c");
    return template.replace("{{data}}", () => json);
}
