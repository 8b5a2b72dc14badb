// The questions of an offline page. The dashboard asks them for a selection. build.mjs embeds the names
// of those for all calls into the program, for `sojourn export`.
import type { QuestionName } from "./api";
import { isPart, readSelection, type Selection } from "./selection";

export interface PageQuestion {
    title: string;
    name: QuestionName;
    rows: number; // limit
    isOfEnded: boolean; // asked only if the session did not end normally
}

export const ENDED = ["crashed", "killed", "lost", "lost contact", "interrupted"];

// Values of web.flame for the full width.
export const EVERYTHING = { left: 0, right: Number.MAX_SAFE_INTEGER, whole: 0 };

// The first question is the flame graph's.
export function questionsOf(chosen: Selection): PageQuestion[] {
    const of = (title: string, name: QuestionName, rows: number, isOfEnded = false) => ({ title, name, rows, isOfEnded });
    const isSelected = isPart(chosen);
    return [
        of("Call paths", "web.flame", 20000),
        of("Functions", isSelected ? "web.selected_functions_of_page" : "web.functions_of_page", 5000),
        of("Calls with the most self time", isSelected ? "web.selected_slow_with_callers" : "web.slow_with_callers", 100),
        of("Open at the end, innermost first", "web.open_at_end", 500, true),
        of("Threads", "web.threads", 200),
        of("Marks", "web.marks", 200),
        of("Notes", "web.notes", 200),
        of("Triggers that fired", "web.triggers", 200),
        of("Decisions of the overhead budget", "web.decisions", 200),
        of("Functions that were not instrumented, by reason", "web.unhooked", 200),
    ];
}

// Returns what build.mjs embeds: the questions for all calls, and the values of their parameters.
export function questionsOfAll(): { ended: string[]; values: typeof EVERYTHING; questions: PageQuestion[] } {
    return { ended: ENDED, values: EVERYTHING, questions: questionsOf(readSelection(new URLSearchParams())) };
}
