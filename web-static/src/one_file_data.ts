// What a page for one file holds: the answers that its tables and its flame graph are drawn from. The
// server writes the same (one_file.c).
import { askSql, type Overview } from "./api";
import { ENDED, EVERYTHING, questionsOf } from "./one_file_questions";
import { PART_MS, type Selection, valuesOf } from "./selection";

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
    panels: OnePanel[]; // the first is the flame graph
}

// gather asks for everything; it fails when one of the answers does.
export async function gather(session: Overview, chosen: Selection, words: string[]): Promise<OneFile> {
    const values = valuesOf(session.id, chosen);
    const panels: OnePanel[] = [];
    for (const { title, sql, rows, isOfEnded } of questionsOf(chosen)) {
        if (!isOfEnded || ENDED.includes(session.state)) {
            const more = panels.length === 0 ? EVERYTHING : {};
            const answer = await askSql(sql, { ...values, ...more }, { rows, ms: PART_MS });
            panels.push({ title, columns: answer.columns, rows: answer.rows, truncated: answer.truncated });
        }
    }
    return { made: new Date().toISOString(), session, selection: words, panels };
}

// pageOf puts the data into the page that build.mjs made. Names come from traced programs: as JSON
// without "<" they end no element, and the page's policy runs no script but its own.
export function pageOf(template: string, data: OneFile): string {
    const json = JSON.stringify(data).replaceAll("<", "\\u003c");
    return template.replace("{{data}}", () => json);
}
