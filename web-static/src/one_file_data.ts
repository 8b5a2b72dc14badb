// Collects the data of an offline page: the rows of its tables and its flame graph. The server
// writes the same page for `sojourn export` (one_file.c).
import { askQuestion, type Overview, type ValuesOf } from "./api";
import { ENDED, EVERYTHING, questionsOf } from "./one_file_questions";
import { PART_MS, type Selection, valuesOf } from "./selection";

export interface OnePanel {
    title: string;
    columns: string[];
    rows: unknown[][];
    truncated: boolean;
}

export interface OneFile {
    made: string; // time of creation, ISO 8601
    session: Overview;
    selection: string[]; // in words; empty if all calls are included
    panels: OnePanel[]; // the first one is the flame graph
}

// Runs all questions. Throws if one of them fails.
export async function gather(session: Overview, chosen: Selection, words: string[]): Promise<OneFile> {
    const values = valuesOf(session.id, chosen);
    const panels: OnePanel[] = [];
    for (const { title, name, rows, isOfEnded } of questionsOf(chosen)) {
        if (!isOfEnded || ENDED.includes(session.state)) {
            const answer = await askQuestion(name, { ...values, ...EVERYTHING } as ValuesOf<typeof name>, { rows, ms: PART_MS });
            panels.push({ title, columns: answer.columns, rows: answer.rows, truncated: answer.truncated });
        }
    }
    return { made: new Date().toISOString(), session, selection: words, panels };
}

// Inserts the data into the page template of build.mjs. The data contains names from traced
// programs. Without "<" they cannot close an element, and the page's policy runs only its own
// script.
export function pageOf(template: string, data: OneFile): string {
    const json = JSON.stringify(data).replaceAll("<", "\\u003c");
    return template.replace("{{data}}", () => json);
}
