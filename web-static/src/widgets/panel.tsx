// A card with a heading and, if its data comes from SQL and the token's role permits SQL, a link to the
// SQL console.
import type { ComponentChildren } from "preact";
import { consoleAddress, type SqlRows } from "../answers";
import type { QuestionName, Values } from "../api";
import { count } from "../format";
import { rowLimits } from "../questions";
import { may } from "./access";
import { Problem } from "./small";

interface PanelProperties {
    title: string;
    question?: QuestionName;
    values?: Values;
    engine?: string; // "cluster" if the question is in the cluster's SQL; "" for SQLite
    children: ComponentChildren;
}

export function Panel({ title, question, values, engine, children }: PanelProperties) {
    return (
        <section class="card panel" aria-label={title}>
            <div class="title-line">
                <h2>{title}</h2>
                {question && may("analyst") ? (
                    <a class="sql-link" href={consoleAddress(question, values ?? {}, engine)}>
                        SQL
                    </a>
                ) : null}
            </div>
            {children}
        </section>
    );
}

export interface ListColumn<Row> {
    title: string;
    number?: boolean;
    mono?: boolean;
    cell: (row: Row) => ComponentChildren;
}

export function RowTable<Row>({ label, columns, rows, isTall = false, rowClass }: {
    label: string;
    columns: readonly ListColumn<Row>[];
    rows: readonly Row[];
    isTall?: boolean; // scrolls a long table in a box of its own
    rowClass?: (row: Row) => string;
}) {
    const classOf = (column: ListColumn<Row>) =>
        [column.number ? "number" : "", column.mono ? "mono" : ""].join(" ").trim();
    return (
        <div class={`scroll-x ${isTall ? "tall" : ""}`} tabIndex={0} role="group" aria-label={label}>
            <table>
                <thead>
                    <tr>
                        {columns.map((column) =>
                            column.title === "" ? (
                                <td key="" />
                            ) : (
                                <th scope="col" class={column.number ? "number" : ""} key={column.title}>
                                    {column.title}
                                </th>
                            ),
                        )}
                    </tr>
                </thead>
                <tbody>
                    {rows.map((row, index) => (
                        <tr key={index} class={rowClass?.(row) ?? ""}>
                            {columns.map((column) => (
                                <td class={classOf(column)} key={column.title}>
                                    {column.cell(row)}
                                </td>
                            ))}
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}

interface SqlPanelProperties<Row> {
    title: string;
    question: QuestionName;
    values: Values;
    engine?: string;
    answer: SqlRows<Row>;
    columns: readonly ListColumn<Row>[];
    none?: string; // text if there are no rows; without it, an empty panel is hidden
    note?: string; // text below the rows
    isTall?: boolean;
}

// Shows the rows of a question. Says so if there may be more rows.
export function SqlPanel<Row>(properties: SqlPanelProperties<Row>) {
    const { title, question, values, engine = "", answer, columns, none, note = "", isTall = false } = properties;
    if (!answer.problem && answer.rows.length === 0 && none === undefined) {
        return null;
    }
    return (
        <Panel title={title} question={question} values={values} engine={engine}>
            {answer.problem ? <Problem message={answer.problem} /> : null}
            {answer.rows.length > 0 ? (
                <RowTable label={title} columns={columns} rows={answer.rows} isTall={isTall} />
            ) : (
                <p class="dim">{answer.value ? none : answer.problem ? "" : "Loading…"}</p>
            )}
            {answer.value?.truncated || answer.rows.length >= (rowLimits[question] ?? Infinity) ? (
                <p class="dim">The first {count(answer.rows.length)} are shown.</p>
            ) : null}
            {note ? <p class="dim">{note}</p> : null}
        </Panel>
    );
}
