// The SQL console: read-only statements, the shipped questions, and their results as tables and
// charts.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useAnswer } from "../answers";
import { api, askQuestion, askSql, type ShippedQuery, type SqlAnswer, type Values } from "../api";
import { count, duration } from "../format";
import { route, setParameters } from "../router";
import { selection } from "../selection";
import { DeviceChip } from "../widgets/device_chip";
import { save } from "../widgets/download";
import { useEngine } from "../widgets/engine";
import { LineChart } from "../widgets/line_chart";
import { Panel } from "../widgets/panel";
import { Problem } from "../widgets/small";
import { makeEditor, type SqlEditor } from "./sql_editor";

const SHOWN_ROWS = 500;
const FIRST_SQL = `SELECT session_id, command, state, stored_calls, lost_calls
FROM sessions ORDER BY session_id DESC LIMIT 20`;
const TABLE_FUNCTIONS = [
    "calls",
    "call_aggregate",
    "call_groups",
    "descendants",
    "ancestors",
    "siblings",
    "sequence",
    "contains",
    "intervals_intersect",
    "concurrency",
    "call_tree",
    "flame",
    "session_set",
    "coverage",
    "diff_functions",
    "diff_tree",
    "histogram",
];

// Returns the names of :parameters outside of strings and comments.
export function parametersOf(sql: string): string[] {
    const bare = sql.replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\//g, " ");
    const names = [...bare.matchAll(/:([A-Za-z_][A-Za-z_0-9]*)/g)].map((match) => match[1]!);
    return [...new Set(names)];
}

// Returns the parameters p.NAME of the address, and the selected device.
function valuesInAddress(): Values {
    const { device } = selection.value;
    const values: Values = device ? { device } : {};
    for (const [name, value] of route.value.parameters) {
        if (name.startsWith("p.")) {
            values[name.slice(2)] = value;
        }
    }
    return values;
}

// Shows a column whose name ends in _ns as a duration, unless its times are since 1970 or negative.
// The tooltip has the number.
function cellText(column: string, value: unknown): string {
    if (value === null) {
        return "NULL";
    }
    if (typeof value === "number" && column.endsWith("_ns") && !column.includes("realtime") && value >= 0) {
        return duration(value);
    }
    return String(value);
}

// Returns the address of the timeline around the row's start_ns. Returns null if the row has no
// start_ns, or no session is known.
function timelineAddress(columns: readonly string[], row: readonly unknown[]): string | null {
    const at = (name: string) => {
        const value = row[columns.indexOf(name)];
        return typeof value === "number" || typeof value === "string" ? Number(value) : null;
    };
    const session = at("session_id") ?? (Number(valuesInAddress()["session"]) || null);
    const start = at("start_ns");
    if (!session || start === null || Number.isNaN(start)) {
        return null;
    }
    const length = Math.max(1000, at("duration_ns") ?? 1e6);
    const call = row[columns.indexOf("call_id")];
    const from = Math.max(0, Math.floor(start - length * 0.2));
    const select = call === undefined || call === null ? "" : `&call=${String(call)}`;
    return `/sessions/${session}?view=timeline&from=${from}&to=${Math.ceil(start + length * 1.2)}${select}`;
}

function Table({ answer }: { answer: SqlAnswer }) {
    const { columns, rows } = answer;
    const isNumber = columns.map((_, at) => rows.some((row) => typeof row[at] === "number"));
    const hasTimeline = rows.length > 0 && timelineAddress(columns, rows[0]!) !== null;
    return (
        <div class="scroll-x result" tabIndex={0} role="region" aria-label="Rows">
            <table>
                <thead>
                    <tr>
                        {columns.map((column, at) => (
                            <th scope="col" key={at} class={isNumber[at] ? "number" : ""}>
                                {column}
                            </th>
                        ))}
                        {hasTimeline ? <th scope="col">Timeline</th> : null}
                    </tr>
                </thead>
                <tbody>
                    {rows.slice(0, SHOWN_ROWS).map((row, index) => (
                        <tr key={index}>
                            {row.map((value, at) => (
                                <td
                                    key={at}
                                    class={`${isNumber[at] ? "number" : ""} ${value === null ? "dim" : "mono"}`}
                                    title={value === null ? "" : String(value)}
                                >
                                    {cellText(columns[at]!, value)}
                                </td>
                            ))}
                            {hasTimeline ? (
                                <td>
                                    <a href={timelineAddress(columns, row) ?? "#"}>show</a>
                                </td>
                            ) : null}
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}

function csvOf(answer: SqlAnswer): string {
    const field = (value: unknown) => {
        const text = value === null ? "" : String(value);
        return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return [answer.columns, ...answer.rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

function Result({ answer }: { answer: SqlAnswer }) {
    const [asChart, setAsChart] = useState(false);
    const numeric = answer.columns.filter((_, at) => answer.rows.some((row) => typeof row[at] === "number"));
    return (
        <section class="card panel" aria-label="Result">
            <div class="tools">
                <span role="status">
                    {count(answer.rows.length)} rows in {duration(answer.elapsed_us * 1000)}
                    {answer.truncated
                        ? answer.is_full
                            ? "; truncated, because the result is too large"
                            : "; there are more: raise the row limit"
                        : ""}
                    {answer.rows.length > SHOWN_ROWS ? `; ${SHOWN_ROWS} are shown; a download has all` : ""}
                </span>
                {numeric.length > 1 ? (
                    <button type="button" class="quiet" aria-pressed={asChart} onClick={() => setAsChart(!asChart)}>
                        {asChart ? "Table" : "Chart"}
                    </button>
                ) : null}
                <button type="button" class="quiet" onClick={() => save("result.csv", new Blob([csvOf(answer)], { type: "text/csv" }))}>
                    CSV
                </button>
                <button
                    type="button"
                    class="quiet"
                    onClick={() => save("result.json", new Blob([JSON.stringify(answer)], { type: "application/json" }))}
                >
                    JSON
                </button>
            </div>
            {answer.warnings ? <p class="warn-text">{answer.warnings}</p> : null}
            {asChart ? <LineChart answer={answer} /> : <Table answer={answer} />}
        </section>
    );
}

function Question({ query }: { query: ShippedQuery }) {
    const open = () => {
        const changes: Record<string, string> = { sql: query.sql };
        for (const parameter of query.parameters) {
            const [, name, value] = /^(\w+) = (.*?) \|/.exec(parameter) ?? [];
            if (name) {
                changes[`p.${name}`] = value ?? "";
            }
        }
        setParameters(changes);
    };
    return (
        <li>
            <button type="button" class="link-button" onClick={open} title={query.question}>
                {query.title}
            </button>
            <span class="dim below">{query.question}</span>
        </li>
    );
}

interface Schema {
    [table: string]: string[];
}

function useSchema(): Schema {
    const answer = useAnswer("schema", (signal) => askQuestion("web.tables", {}, { rows: 2000 }, signal));
    return useMemo(() => {
        const schema: Schema = Object.fromEntries(TABLE_FUNCTIONS.map((name) => [name, []]));
        for (const [table, columns] of answer.value?.rows ?? []) {
            schema[String(table)] = String(columns).split(" ");
        }
        return schema;
    }, [answer.value]);
}

function Editor({ text, schema, onRun }: { text: string; schema: Schema; onRun: (text: string) => void }) {
    const box = useRef<HTMLDivElement>(null);
    const editor = useRef<SqlEditor | null>(null);
    const run = useRef(onRun);
    run.current = onRun;
    useEffect(() => {
        editor.current = makeEditor(box.current!, text, (sql) => run.current(sql));
        return () => editor.current?.destroy();
    }, []);
    useEffect(() => editor.current?.setSchema(schema), [schema]);
    useEffect(() => editor.current?.setText(text), [text]);
    return (
        <>
            <div class="editor card" ref={box} />
            <button class="primary" type="button" onClick={() => run.current(editor.current!.text())}>
                Run <kbd>Ctrl</kbd> <kbd>Enter</kbd>
            </button>
        </>
    );
}

// The draft is not overwritten while the user types. It becomes the parameter when the user
// confirms it.
function ValueField({ name, value }: { name: string; value: string }) {
    const [draft, setDraft] = useState(value);
    useEffect(() => setDraft(value), [value]);
    return (
        <label class="field">
            :{name}
            <input
                class="text short"
                type="text"
                value={draft}
                onInput={(event) => setDraft(event.currentTarget.value)}
                onChange={(event) => setParameters({ [`p.${name}`]: event.currentTarget.value })}
            />
        </label>
    );
}

// Replaces the name of a panel's question in the address by its statement. Parameters without a value
// become NULL: they select nothing.
function useStatementOf(name: string): string {
    const found = useAnswer(name && `question ${name}`, () => api.queries(name));
    const text = found.value?.items[0]?.sql;
    useEffect(() => {
        if (text !== undefined) {
            const given = route.value.parameters;
            const filled = text.trim().replace(/:([a-z_]+)/g, (whole, parameter: string) => (given.has(`p.${parameter}`) ? whole : "NULL"));
            setParameters({ sql: filled, question: "" }, true);
        }
    }, [text]);
    return found.problem;
}

export function SqlPage() {
    useEffect(() => {
        document.title = "SQL · Sojourn";
    }, []);
    const question = route.value.parameters.get("question") ?? "";
    const problem = useStatementOf(question);
    if (question) {
        return problem ? <Problem message={problem} /> : <p class="empty">Loading…</p>;
    }
    return <Console />;
}

function Console() {
    const parameters = route.value.parameters;
    const sql = parameters.get("sql") ?? FIRST_SQL;
    const rows = Number(parameters.get("rows")) || 1000;
    const ms = Number(parameters.get("ms")) || 5000;
    const engine = parameters.get("engine") ?? "";
    const isCluster = useEngine()?.is_cluster ?? false;
    const [turn, setTurn] = useState(0);
    const schema = useSchema();
    const questions = useAnswer("questions", () => api.queries());
    const names = parametersOf(sql);
    const held = valuesInAddress();
    const values = Object.fromEntries(names.map((name) => [name, held[name] ?? (name === "session" ? "last" : "")]));
    const missing = names.filter((name) => values[name] === "");
    const key = missing.length > 0 ? "" : `console ${engine} ${turn} ${rows} ${ms} ${JSON.stringify(values)} ${sql}`;
    const answer = useAnswer(key, (signal) => askSql(sql, values, { rows, ms, engine }, signal));
    const run = (text: string) => {
        setTurn(turn + 1);
        setParameters({ sql: text });
    };
    return (
        <div class="page">
            <h1>SQL</h1>
            {selection.value.device ? (
                <div class="chips selection" role="group" aria-label="Selection">
                    <DeviceChip /> <span class="dim">available as :device in statements</span>
                </div>
            ) : null}
            <div class="console">
                <div class="lists">
                    <Editor text={sql} schema={schema} onRun={run} />
                    <div class="tools">
                        {names.map((name) => (
                            <ValueField key={name} name={name} value={String(values[name])} />
                        ))}
                        {isCluster ? (
                            <label class="field">
                                Asked
                                <select value={engine} onChange={(event) => setParameters({ engine: event.currentTarget.value })}>
                                    <option value="">data fetched from the cluster</option>
                                    <option value="cluster">the cluster, in its SQL</option>
                                </select>
                            </label>
                        ) : null}
                        <label class="field">
                            Rows at most
                            <select value={String(rows)} onChange={(event) => setParameters({ rows: event.currentTarget.value })}>
                                {["100", "1000", "5000", "20000"].map((limit) => (
                                    <option key={limit}>{limit}</option>
                                ))}
                            </select>
                        </label>
                        <label class="field">
                            Seconds at most
                            <select value={String(ms)} onChange={(event) => setParameters({ ms: event.currentTarget.value })}>
                                {["1000", "5000", "30000"].map((limit) => (
                                    <option key={limit} value={limit}>
                                        {Number(limit) / 1000}
                                    </option>
                                ))}
                            </select>
                        </label>
                    </div>
                    {missing.length > 0 ? <p class="dim">Give a value for {missing.map((name) => `:${name}`).join(", ")}.</p> : null}
                    {answer.problem ? <Problem message={answer.problem} /> : null}
                    {!answer.problem && answer.value && answer.isCurrent ? <Result answer={answer.value} /> : null}
                    {!answer.problem && key && !answer.isCurrent ? <p class="dim">Running…</p> : null}
                </div>
                <div class="lists">
                    <Panel title="Questions">
                        {questions.problem ? <Problem message={questions.problem} /> : null}
                        <ul class="questions">
                            {(questions.value?.items ?? []).map((query) => (
                                <Question key={query.name} query={query} />
                            ))}
                        </ul>
                    </Panel>
                    <Panel title="Tables">
                        <div class="questions" tabIndex={0} role="group" aria-label="Tables and their columns">
                            {Object.entries(schema).map(([table, columns]) => (
                                <details key={table} class="rule">
                                    <summary class="mono">{table}</summary>
                                    <p class="mono dim">{columns.join(", ") || "see schema/README.md"}</p>
                                </details>
                            ))}
                        </div>
                    </Panel>
                </div>
            </div>
        </div>
    );
}
