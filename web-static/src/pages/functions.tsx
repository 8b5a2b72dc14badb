import { useEffect, useRef, useState } from "preact/hooks";
import { api, type FunctionPage, type FunctionRow, type Overview } from "../api";
import { compact, count, duration, estimated, fileName, percent } from "../format";
import { navigate, route, setParameters } from "../router";
import { may } from "../widgets/access";
import { Bar, OpenTag, Problem, Time } from "../widgets/small";
import { consoleAddress } from "../answers";
import { addressOf, isPart, selection, valuesOf } from "../selection";
import { functionsQuestion, useSelectedFunctions } from "./selected_functions";
import { type Column, VirtualTable } from "../widgets/virtual_table";

const PAGE_ROWS = 200;

// Draws min to max and p50 to p95 on a logarithmic scale from 10 ns to 10 s. All rows use the same
// scale, so that they can be compared.
function Spread({ row }: { row: FunctionRow }) {
    if (row.min_ns === null || row.max_ns === null || row.p50_ns === null || row.p95_ns === null) {
        return null;
    }
    const place = (ns: number) =>
        Math.max(0, Math.min(100, ((Math.log10(Math.max(ns, 1)) - 1) / 9) * 100));
    const range = (from: number, to: number) => ({
        left: `${place(from)}%`,
        width: `${Math.max(place(to) - place(from), 1.5)}%`,
    });
    const said = (ns: number) => estimated(ns, row.untimed_calls > 0);
    return (
        <span
            class="spread"
            aria-hidden="true"
            title={`min ${said(row.min_ns)} · p50 ${said(row.p50_ns)} · p95 ${said(row.p95_ns)} · max ${said(row.max_ns)}`}
        >
            <span class="whisker" style={range(row.min_ns, row.max_ns)} />
            <span class="body" style={range(row.p50_ns, row.p95_ns)} />
        </span>
    );
}

function RowTime({ row, ns }: { row: FunctionRow; ns: number | null }) {
    return <Time ns={ns} isEstimate={row.untimed_calls > 0} error={row.error_ns} />;
}

function columnsOf(sessionSelf: number, session = ""): Column<FunctionRow>[] {
    const time = (key: string, title: string, hint: string, pick: (r: FunctionRow) => number | null) => ({
        key,
        title,
        hint,
        className: "number",
        sortable: true,
        cell: (row: FunctionRow) => <RowTime row={row} ns={pick(row)} />,
    });
    return [
        {
            key: "name",
            title: "Function",
            className: "name",
            sortable: true,
            cell: (row) => (
                <>
                    <a
                        class="mono"
                        title={row.name}
                        tabIndex={-1}
                        href={addressOf(session, { view: "tree", function: row.id })}
                    >
                        {row.name}
                    </a>
                    <span class="module" title={row.module}>
                        {fileName(row.module)}
                    </span>
                    {row.open_calls > 0 ? <OpenTag calls={row.open_calls} /> : null}
                    {row.untrusted > 0 ? (
                        <span class="warn-text" title={`${count(row.untrusted)} calls are not exact`}>
                            ▲
                        </span>
                    ) : null}
                </>
            ),
        },
        {
            key: "self",
            title: "Self",
            hint: "time in the function itself, callees not counted",
            className: "number share",
            sortable: true,
            cell: (row) => (
                <>
                    <Bar part={row.self_ns} whole={sessionSelf} />
                    <span>{percent(row.self_ns, sessionSelf)}</span>
                    <span class="value">
                        <Time ns={row.self_ns} isEstimate={row.is_self_estimate} error={row.error_ns} />
                    </span>
                </>
            ),
        },
        {
            ...time("total", "Total", "time in the function and its callees", (row) => row.total_ns),
            cell: (row) =>
                row.calls === 0 ? (
                    <span title="no exit is known: the calls are open, or the exits were lost">no end</span>
                ) : (
                    <RowTime row={row} ns={row.total_ns} />
                ),
        },
        {
            key: "calls",
            title: "Calls",
            className: "number",
            sortable: true,
            cell: (row) => <span title={count(row.calls)}>{compact(row.calls)}</span>,
        },
        time("mean", "Mean", "mean duration of a call", (row) => row.mean_ns),
        time("min", "Min", "shortest call", (row) => row.min_ns),
        time("p50", "p50", "half of the calls were shorter", (row) => row.p50_ns),
        time("p95", "p95", "95 % of the calls were shorter", (row) => row.p95_ns),
        time("p99", "p99", "99 % of the calls were shorter", (row) => row.p99_ns),
        time("max", "Max", "longest call", (row) => row.max_ns),
        {
            key: "spread",
            title: "10 ns – 10 s",
            hint: "durations on a logarithmic scale: min to max, p50 to p95",
            className: "spread-cell",
            sortable: false,
            cell: (row) => (
                <a
                    class="spread-link"
                    tabIndex={-1}
                    aria-label={`Durations of ${row.name}`}
                    href={addressOf(session, { view: "function", function: row.id })}
                >
                    <Spread row={row} />
                </a>
            ),
        },
    ];
}

const sortKeys = new Set(columnsOf(0).filter((column) => column.sortable).map((column) => column.key));
const orders = new Set(["asc", "desc"]);

interface Loaded {
    query: string; // the key that the pages were loaded for, with the change count
    question: string; // the same without the change count
    totals: FunctionPage["totals"];
    pages: Map<number, FunctionRow[]>;
}

const NO_FAILURE = { question: "", problem: "" };

interface FunctionQuery {
    sort: string;
    order: string;
    search: string;
}

// Loads pages of the function table when they become visible. The old rows stay until the new ones
// are loaded. Loads nothing if `id` is "".
function useFunctions(id: string, query: FunctionQuery, changes: number) {
    const [loaded, setLoaded] = useState<Loaded | null>(null);
    const [failed, setFailed] = useState(NO_FAILURE);
    const wanted = useRef(new Set<number>());
    const abort = useRef(new AbortController());
    const question = JSON.stringify([id, query]);
    const key = `${changes} ${question}`;

    const load = (page: number, signal: AbortSignal) => {
        wanted.current.add(page);
        const parameters = { ...query, limit: PAGE_ROWS, offset: page * PAGE_ROWS };
        api.functions(id, parameters, signal).then(
            (answer) => {
                setFailed(NO_FAILURE);
                setLoaded((old) => {
                    const pages = new Map(old?.query === key ? old.pages : []);
                    pages.set(page, answer.items);
                    return { query: key, question, totals: answer.totals, pages };
                });
            },
            (failure: Error) => {
                if (!signal.aborted) {
                    setFailed({ question, problem: failure.message });
                }
            },
        );
    };
    useEffect(() => {
        abort.current.abort();
        abort.current = new AbortController();
        wanted.current = new Set();
        const signal = abort.current.signal;
        if (id === "") {
            return undefined;
        }
        const timer = setTimeout(() => load(0, signal), query.search ? 120 : 0);
        return () => clearTimeout(timer);
    }, [key]);

    const problem = failed.question === question ? failed.problem : "";
    const isOther = loaded !== null && loaded.question !== question;
    const known = isOther && problem !== "" ? null : loaded; // if the request failed, the rows of another question are not shown
    const rowAt = (index: number): FunctionRow | undefined => {
        const page = Math.floor(index / PAGE_ROWS);
        const rows = known?.pages.get(page);
        if (!rows && known?.query === key && !wanted.current.has(page)) {
            load(page, abort.current.signal);
        }
        return rows?.[index % PAGE_ROWS];
    };
    return { loaded: known, problem, rowAt, isStale: isOther && problem === "" };
}

// Says how exact the total time of a row is. Returns "" if the time is not an estimate.
function errorOf({ name, total_ns: total, error_ns: error }: FunctionRow): string {
    return error ? `${name}: total ${estimated(total, true)} ± ${duration(error)} (standard error)` : "";
}

export function FunctionsView({ session, changes }: { session: Overview; changes: number }) {
    const parameters = route.value.parameters;
    const search = parameters.get("q") ?? "";
    const asked = parameters.get("sort") ?? "";
    const sort = sortKeys.has(asked) ? asked : "self"; // the address may contain anything
    const askedOrder = parameters.get("order") ?? "";
    const order = orders.has(askedOrder) ? askedOrder : sort === "name" ? "asc" : "desc";
    const chosen = selection.value;
    const isSelected = isPart(chosen) || chosen.functions !== "";
    const query = { sort, order, search };
    const all = useFunctions(isSelected ? "" : session.id, query, changes);
    const some = useSelectedFunctions(session.id, isSelected ? chosen : null, changes, query);
    const problem = isSelected ? some.answer.problem : all.problem;
    const totals = !isSelected ? all.loaded?.totals : some.answer.value ? some.totals : undefined;
    // True while nothing is loaded, or while the rows belong to another search or order.
    const isStale = (!totals && problem === "") || (!isSelected && all.isStale);
    const rowAt = isSelected ? (index: number) => some.rows[index] : all.rowAt;
    const onSort = (key: string) => {
        const flipped = key === sort ? (order === "desc" ? "asc" : "desc") : "";
        setParameters({ sort: key, order: flipped });
    };
    return (
        <section class="fill" aria-label="Functions">
            {problem ? <Problem message={problem} /> : null}
            <div class="tools">
                <input
                    type="search"
                    aria-label="Search functions"
                    placeholder="Search functions…  /"
                    value={search}
                    onInput={(event) => setParameters({ q: event.currentTarget.value }, true)}
                />
                <span class="dim" role="status">
                    {totals && !isStale
                        ? `${count(totals.matching)} of ${count(session.counts.functions)} functions, ${percent(totals.self_ns, totals.session_self_ns)} of ${isSelected ? "the time selected" : "all time"}, ${compact(totals.calls)} calls`
                        : isStale
                          ? "Loading…"
                          : ""}
                </span>
                {isSelected && may("analyst") ? (
                    <a class="sql-link" href={consoleAddress(functionsQuestion(chosen), valuesOf(session.id, chosen))}>
                        SQL
                    </a>
                ) : null}
            </div>
            <VirtualTable
                label="Functions"
                className="functions card"
                columns={columnsOf(totals?.session_self_ns ?? 0, session.id)}
                rowCount={totals?.matching ?? 0}
                rowAt={rowAt}
                question={JSON.stringify([query, chosen])}
                isStale={isStale}
                sort={sort}
                descending={order === "desc"}
                onSort={onSort}
                noteOf={errorOf}
                onOpen={(row) => navigate(addressOf(session.id, { view: "tree", function: row.id }))}
            />
        </section>
    );
}
