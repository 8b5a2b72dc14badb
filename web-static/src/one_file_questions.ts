// The SQL statements of an offline page. The dashboard runs them for a selection. build.mjs embeds
// those for all calls into the program, for `sojourn export`.
import { flameSql } from "./pages/flame_tree";
import {
    decisionsSql,
    marksSql,
    NOTES_SQL,
    openSql,
    slowSql,
    threadsSql,
    triggersSql,
    unhookedSql,
} from "./pages/overview_sql";
import { selectedFunctionsSql } from "./pages/selected_functions";
import { readSelection, type Selection } from "./selection";

export interface Question {
    title: string;
    sql: string;
    rows: number; // limit
    isOfEnded: boolean; // asked only if the session did not end normally
}

export const ENDED = ["crashed", "killed", "lost", "lost contact", "interrupted"];

// Arguments of flameSql for the full width.
export const EVERYTHING = { left: 0, right: Number.MAX_SAFE_INTEGER, whole: 0 };

// Slow calls with their callers, because an offline page cannot ask for callers later.
function slowWithCallersSql(chosen: Selection): string {
    return `SELECT x.name, x.given, x.thread, x.start_ns, x.duration_ns, x.self_ns, x.ending, x.flags, x.is_self_estimate,
    (SELECT group_concat(f.name, ' ← ') FROM ancestors(x.call_id) a LEFT JOIN functions f USING (function_id)) AS callers
FROM (${slowSql(chosen)}) x`;
}

function functionsSql(chosen: Selection): string {
    return `SELECT name, module, calls, total_ns, self_ns, mean_ns, min_ns, p50_ns, p95_ns, p99_ns, max_ns,
    untimed_calls, error_ns, is_self_estimate
FROM (${selectedFunctionsSql(chosen)}) ORDER BY self_ns DESC`;
}

// The first question is the flame graph's.
export function questionsOf(chosen: Selection): Question[] {
    const of = (title: string, sql: string, rows: number, isOfEnded = false) => ({ title, sql, rows, isOfEnded });
    return [
        of("Call paths", flameSql(chosen, null), 20000),
        of("Functions", functionsSql(chosen), 5000),
        of("Calls with the most self time", slowWithCallersSql(chosen), 100),
        of("Open at the end, innermost first", openSql(chosen), 500, true),
        of("Threads", threadsSql(chosen), 200),
        of("Marks", marksSql(chosen), 200),
        of("Notes", NOTES_SQL, 200),
        of("Triggers that fired", triggersSql(chosen), 200),
        of("Decisions of the overhead budget", decisionsSql(chosen), 200),
        of("Functions that were not instrumented, by reason", unhookedSql(chosen), 200),
    ];
}

// Returns what build.mjs embeds: the statements for all calls, and the values of their parameters.
export function questionsOfAll(): { ended: string[]; values: typeof EVERYTHING; questions: Question[] } {
    return { ended: ENDED, values: EVERYTHING, questions: questionsOf(readSelection(new URLSearchParams())) };
}
