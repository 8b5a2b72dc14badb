// One function of a session: the durations of its calls, the calls of a chosen duration, its
// callers and callees.
import { useEffect } from "preact/hooks";
import { useSql, type Values } from "../answers";
import type { Overview } from "../api";
import { compact, count, counted, duration, estimated, percent } from "../format";
import { anyUntimedSql, estimateSql, isDoubtful, isUntimed, selfEstimateSql, selfUntimedSql } from "../estimates";
import { route, setParameters } from "../router";
import { DurationChart } from "../widgets/histogram";
import { Panel, SqlPanel } from "../widgets/panel";
import { Chip, Problem, Time } from "../widgets/small";
import { addressOf, isPart, isPicked, PART_MS, pickedSql, quantileSql, type Selection, selection, valuesOf } from "../selection";
import { callAddress, valueName } from "./call_details";

const STAT_SQL = `SELECT f.name, m.path AS module, s.calls, s.total_ns, s.self_ns, s.min_ns, s.max_ns, s.unwound, s.untrusted,
       histogram_quantile(s.histogram, 0.5, s.session_id, s.min_ns, s.max_ns) AS p50_ns,
       histogram_quantile(s.histogram, 0.9, s.session_id, s.min_ns, s.max_ns) AS p90_ns,
       histogram_quantile(s.histogram, 0.95, s.session_id, s.min_ns, s.max_ns) AS p95_ns,
       histogram_quantile(s.histogram, 0.99, s.session_id, s.min_ns, s.max_ns) AS p99_ns,
       coalesce(s.untimed_calls, 0) AS untimed_calls, s.error_ns, ${selfEstimateSql(":function")}, l.file, l.line
FROM function_stats s JOIN functions f USING (function_id) JOIN modules m USING (module_id)
LEFT JOIN function_lines l USING (function_id)
WHERE s.session_id = :session AND s.function_id = :function`;

// The sums of a selection, made from its single calls.
function partStatSql(chosen: Selection): string {
    return `${pickedSql(chosen)},
  sums AS (SELECT sum(a.calls) AS calls, sum(a.total_ns) AS total_ns, sum(a.self_ns) AS self_ns,
      min(a.min_ns) AS min_ns, max(a.max_ns) AS max_ns
    FROM picked p JOIN call_aggregate(:session, p.from_ns, p.to_ns, p.stream_id) a WHERE a.function_id = :function),
  spread AS (${mergedSql})
SELECT f.name, m.path AS module, s.calls, s.total_ns, s.self_ns, s.min_ns, s.max_ns, 0 AS unwound, 0 AS untrusted,
       ${quantileSql("0.5")} AS p50_ns, ${quantileSql("0.9")} AS p90_ns,
       ${quantileSql("0.95")} AS p95_ns, ${quantileSql("0.99")} AS p99_ns,
       (SELECT coalesce(max(u.untimed_calls), 0) FROM function_stats u
        WHERE u.session_id = :session AND u.function_id = :function) AS untimed_calls, NULL AS error_ns,
       ${selfEstimateSql(":function")}, l.file, l.line
FROM sums s, spread h JOIN functions f ON f.function_id = :function LEFT JOIN modules m USING (module_id)
LEFT JOIN function_lines l ON l.function_id = f.function_id WHERE s.calls > 0`;
}

const mergedSql = `SELECT histogram_merge(g.histogram) AS histogram
    FROM (SELECT DISTINCT thread_id, from_ns, to_ns FROM picked) p
    JOIN call_groups('function', :session, p.from_ns, p.to_ns, p.thread_id, :function) g`;

function partBinsSql(chosen: Selection): string {
    return `${pickedSql(chosen)}
SELECT h.low, h.high, h.count FROM (${mergedSql}) s, histogram(s.histogram) h`;
}

const BINS_SQL = `SELECT h.low, h.high, h.count FROM function_stats s, histogram(s.histogram, s.session_id) h
WHERE s.session_id = :session AND s.function_id = :function`;

function callsSql(chosen: Selection): string {
    return `${pickedSql(chosen)}
SELECT c.call_id, t.name AS thread, c.start_ns, c.duration_ns, c.self_ns, c.ending, c.flags,
       ${selfUntimedSql("c.flags", ":function")}
FROM calls c LEFT JOIN threads t ON t.thread_id = c.thread_id
WHERE c.session_id = :session AND c.function_id = :function AND c.duration_ns >= :least AND c.duration_ns <= :most
  AND ${isPicked(chosen, "c.stream_id", "c.start_ns")}
LIMIT 100`;
}

const CALLERS_SQL = `SELECT e.caller_function_id AS function_id, coalesce(f.name, 'nothing recorded') AS name,
       e.calls, e.total_ns, ${estimateSql(":function")}
FROM call_edges e LEFT JOIN functions f ON f.function_id = e.caller_function_id
WHERE e.session_id = :session AND e.callee_function_id = :function ORDER BY e.total_ns DESC LIMIT 50`;

const CALLEES_SQL = `SELECT e.callee_function_id AS function_id, f.name, e.calls, e.total_ns,
       ${estimateSql("e.callee_function_id")}
FROM call_edges e LEFT JOIN functions f ON f.function_id = e.callee_function_id
WHERE e.session_id = :session AND e.caller_function_id = :function ORDER BY e.total_ns DESC LIMIT 50`;

// Callers or callees of a selection, made from its single calls.
function partEdgesSql(chosen: Selection, side: "callers" | "callees"): string {
    const [key, asked] = side === "callers" ? ["caller", ":function"] : ["function", "NULL, :function"];
    const other = side === "callers" ? "g.caller_function_id" : "g.function_id";
    return `${pickedSql(chosen)}
SELECT ${other} AS function_id, coalesce(f.name, 'nothing recorded') AS name, sum(g.calls) AS calls,
       sum(g.duration_ns) AS total_ns, ${estimateSql(side === "callers" ? ":function" : "g.function_id")}
FROM (SELECT DISTINCT thread_id, from_ns, to_ns FROM picked) p
JOIN call_groups('${key}', :session, p.from_ns, p.to_ns, p.thread_id, ${asked}) g
LEFT JOIN functions f ON f.function_id = ${other} GROUP BY 1 ORDER BY 4 DESC LIMIT 50`;
}

// For each recorded value: the number of calls with it, their durations, and the slowest call.
function byValueSql(chosen: Selection): string {
    return `${pickedSql(chosen)},
kept AS MATERIALIZED (SELECT DISTINCT a.call_id, a.position, a.kind, a.value, a.note, c.duration_ns,
    c.cpu_ns, c.start_ns, c.flags FROM calls c JOIN arguments a ON a.session_id = c.session_id AND a.call_id = c.call_id
  WHERE c.session_id = :session AND c.function_id = :function AND ${isPicked(chosen, "c.stream_id", "c.start_ns")})
SELECT k.position, (SELECT max(t.name) FROM value_types t WHERE t.session_id = :session AND t.function_id = :function
    AND t.position = k.position) AS name, k.kind, k.value, k.note, count(*) AS calls, sum(k.duration_ns) AS total_ns,
  percentile(k.duration_ns, 50) AS p50_ns, max(k.duration_ns) AS duration_ns, sum(k.cpu_ns) AS cpu_ns, k.call_id, k.start_ns,
  ${anyUntimedSql("k.flags")}
FROM kept k GROUP BY k.position, k.kind, k.value, k.note ORDER BY k.position = 0, k.position, k.kind, total_ns DESC LIMIT 200`;
}

interface ValueRow {
    position: number;
    name: string | null;
    kind: string;
    value: unknown;
    note: string | null;
    calls: number;
    total_ns: number | null;
    p50_ns: number | null;
    duration_ns: number | null;
    cpu_ns: number | null;
    call_id: number | string;
    start_ns: number;
    is_estimate: number;
}

interface Stat {
    name: string;
    module: string;
    calls: number;
    total_ns: number;
    self_ns: number;
    min_ns: number | null;
    max_ns: number | null;
    unwound: number;
    untrusted: number;
    untimed_calls: number;
    error_ns: number | null; // standard error of total_ns
    is_self_estimate: number;
    p50_ns: number | null;
    p90_ns: number | null;
    p95_ns: number | null;
    p99_ns: number | null;
    file: string | null;
    line: number | null;
}

interface CallRow {
    call_id: number;
    thread: string | null;
    start_ns: number;
    duration_ns: number;
    self_ns: number;
    is_self_estimate: number;
    ending: string;
    flags: number;
}

interface EdgeRow {
    function_id: number;
    name: string;
    calls: number;
    total_ns: number;
    is_estimate: number;
}

const quantiles = ["min", "p50", "p90", "p95", "p99", "max"] as const;

// Returns the range of durations around a percentile, which is at most 3.1 % off
// (proto/callgraph/histogram.h). The longest call is exact, except that its ticks were rounded to
// ns.
function around(ns: number, key: string): string {
    return key === "max" ? `${Math.max(0, ns - 1)}-${ns + 1}` : `${Math.floor(ns * 0.968)}-${Math.ceil(ns * 1.032)}`;
}

function Edges({ side, session, values, changes }: {
    side: "callers" | "callees";
    session: string;
    values: Values;
    changes: number;
}) {
    const whole = side === "callers" ? CALLERS_SQL : CALLEES_SQL;
    const sql = isPart(selection.value) ? partEdgesSql(selection.value, side) : whole;
    const answer = useSql<EdgeRow>(sql, values, changes, { ms: PART_MS });
    const sum = answer.rows.reduce((before, row) => before + row.total_ns, 0);
    return (
        <SqlPanel
            title={side === "callers" ? "Callers" : "Callees"}
            sql={sql}
            values={values}
            answer={answer}
            none="None recorded."
            columns={[
                {
                    title: "Function",
                    mono: true,
                    cell: (row) =>
                        row.function_id ? (
                            <a href={addressOf(session, { view: "function", function: row.function_id })}>{row.name}</a>
                        ) : (
                            <span class="dim">{row.name}</span>
                        ),
                },
                { title: "Calls", number: true, cell: (row) => count(row.calls) },
                { title: "Total", number: true, cell: (row) => <Time ns={row.total_ns} isEstimate={row.is_estimate} /> },
                { title: "Share", number: true, cell: (row) => percent(row.total_ns, sum) },
            ]}
        />
    );
}

function Calls({ session, fn, range }: { session: string; fn: string; range: string }) {
    const [least, most] = range.split("-");
    const chosen = selection.value;
    const values = { ...valuesOf(session, chosen), function: fn, least: least!, most: most! };
    const sql = callsSql(chosen);
    const answer = useSql<CallRow>(sql, values, 0, { ms: PART_MS });
    const time = (row: CallRow, ns: number) => <Time ns={ns} isEstimate={isUntimed(row.flags)} />;
    return (
        <>
            <p class="chips">
                <Chip
                    label={`${duration(Number(least))} to ${duration(Number(most))}`}
                    onRemove={() => setParameters({ range: "" })}
                />
            </p>
            <SqlPanel
                title="Calls of this duration, in order of entry, at most 100"
                sql={sql}
                values={values}
                answer={answer}
                none="No call has this duration."
                columns={[
                    { title: "Began", number: true, cell: (row) => <a href={callAddress(session, row)}>{time(row, row.start_ns)}</a> },
                    { title: "Thread", cell: (row) => row.thread ?? "–" },
                    { title: "Took", number: true, cell: (row) => time(row, row.duration_ns) },
                    { title: "Self", number: true, cell: (row) => <Time ns={row.self_ns} isEstimate={row.is_self_estimate} /> },
                    { title: "Ending", cell: (row) => `${row.ending}${isDoubtful(row.flags) ? " ▲" : ""}` },
                    { title: "", cell: (row) => <a href={addressOf(session, { view: "why", call: row.call_id })}>why?</a> },
                ]}
            />
        </>
    );
}

// The calls of a function by recorded value. Shows nothing if no values were recorded.
function ByValue({ session, fn }: { session: string; fn: string }) {
    const chosen = selection.value;
    const values = { ...valuesOf(session, { ...chosen, functions: "" }), function: fn };
    const sql = byValueSql(chosen);
    const any = useSql<{ one: number }>("SELECT 1 AS one FROM arguments WHERE session_id = :session LIMIT 1", { session });
    const answer = useSql<ValueRow>(any.rows.length > 0 ? sql : "", values, 0, { ms: PART_MS });
    if (answer.rows.length === 0 && !answer.problem) {
        return null;
    }
    return (
        <SqlPanel
            title="By value"
            sql={sql}
            values={values}
            answer={answer}
            columns={[
                { title: "Name", cell: valueName },
                {
                    title: "Value",
                    mono: true,
                    cell: (row) => (row.value === null ? (row.note ?? "–") : String(row.value)),
                },
                { title: "Calls", number: true, cell: (row) => count(row.calls) },
                { title: "Total", number: true, cell: (row) => <Time ns={row.total_ns} isEstimate={row.is_estimate} /> },
                { title: "Median", number: true, cell: (row) => <Time ns={row.p50_ns} isEstimate={row.is_estimate} /> },
                {
                    title: "Longest",
                    number: true,
                    cell: (row) => (
                        <a href={callAddress(session, row)}>
                            <Time ns={row.duration_ns} isEstimate={row.is_estimate} />
                        </a>
                    ),
                },
                { title: "CPU time", number: true, cell: (row) => (row.cpu_ns === null ? "" : duration(row.cpu_ns)) },
            ]}
        />
    );
}

// Says how exact the sums are if some calls were counted without a clock.
function doubtOf({ untimed_calls: untimed, error_ns: error }: Stat): string {
    return error === null
        ? " · times are estimates"
        : ` · ${compact(untimed)} counted without a clock: the total is an estimate, ± ${duration(error)} (standard error)`;
}

export function FunctionView({ session, changes }: { session: Overview; changes: number }) {
    const asked = route.value.parameters.get("function") ?? "";
    const fn = /^[0-9]{1,15}$/.test(asked) ? asked : "";
    const range = /^[0-9]{1,15}-[0-9]{1,15}$/.exec(route.value.parameters.get("range") ?? "")?.[0] ?? "";
    const chosen = selection.value;
    const values = { ...valuesOf(session.id, { ...chosen, functions: "" }), function: fn };
    const statSql = isPart(chosen) ? partStatSql(chosen) : STAT_SQL;
    const binsSql = isPart(chosen) ? partBinsSql(chosen) : BINS_SQL;
    const limits = { ms: PART_MS };
    const stat = useSql<Stat>(fn ? statSql : "", values, changes, limits);
    const bins = useSql<{ low: number; high: number; count: number }>(fn ? binsSql : "", values, changes, limits);
    const known = stat.rows[0];
    useEffect(() => {
        if (known) {
            document.title = `${known.name} · Sojourn`;
        }
    }, [known?.name]);
    if (stat.problem || !known) {
        const none = stat.value || !fn ? isPart(chosen) ? "No call of this function began in the selection." : "This session has no calls of this function." : "Loading…";
        return stat.problem ? <Problem message={stat.problem} /> : <p class="empty">{none}</p>;
    }
    return (
        <section class="lists" aria-label="Function">
            <Panel title={known.name} sql={statSql} values={values}>
                <p class="dim">
                    {known.module}
                    {known.file ? ` · ${known.file}:${known.line}` : ""} · {counted(known.calls, "call")},{" "}
                    <Time ns={known.total_ns} isEstimate={known.untimed_calls} error={known.error_ns} /> total,{" "}
                    <Time ns={known.self_ns} isEstimate={known.is_self_estimate} error={known.error_ns} /> self
                    {known.untimed_calls > 0 ? doubtOf(known) : ""}
                    {known.unwound ? ` · ${count(known.unwound)} unwound` : ""}
                    {known.untrusted ? ` · ${compact(known.untrusted)} not exact` : ""} ·{" "}
                    <a href={addressOf(session.id, { view: "tree", function: fn })}>call tree</a> ·{" "}
                    <a href={addressOf(session.id, { view: "flame", mode: "around", function: fn })}>flame graph</a>
                </p>
                <div class="switch" role="group" aria-label="Calls near">
                    {quantiles.map((key) => {
                        const ns = known[`${key}_ns`];
                        return ns === null ? null : (
                            <button
                                type="button"
                                key={key}
                                aria-pressed={range === around(ns, key)}
                                onClick={() => setParameters({ range: around(ns, key) })}
                            >
                                {key} {estimated(ns, known.untimed_calls)}
                            </button>
                        );
                    })}
                </div>
                {bins.rows.length > 0 ? (
                    <DurationChart
                        sides={[{ title: known.name, bins: bins.rows }]}
                        onSelect={(least, most) => setParameters({ range: `${least}-${most}` })}
                    />
                ) : null}
                <p class="dim">Share of the calls by duration. To list calls, drag over the chart or choose a percentile.</p>
            </Panel>
            {range ? <Calls session={session.id} fn={fn} range={range} /> : null}
            <ByValue session={session.id} fn={fn} />
            <div class="columns">
                <Edges side="callers" session={session.id} values={values} changes={changes} />
                <Edges side="callees" session={session.id} values={values} changes={changes} />
            </div>
        </section>
    );
}
