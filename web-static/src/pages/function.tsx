// One function of a session: the durations of its calls, the calls of a chosen duration, its
// callers and callees.
import { useEffect } from "preact/hooks";
import { useQuestion } from "../answers";
import type { Overview, RowOf } from "../api";
import { compact, count, counted, duration, estimated, percent } from "../format";
import { isDoubtful, isUntimed } from "../estimates";
import { route, setParameters } from "../router";
import { DurationChart } from "../widgets/histogram";
import { Panel, SqlPanel } from "../widgets/panel";
import { Chip, Problem, Time } from "../widgets/small";
import { addressOf, isPart, PART_MS, selection, type SelectedValues, valuesOf } from "../selection";
import { callAddress, valueName } from "./call_details";

type Stat = RowOf<"web.function">;

type CallRow = RowOf<"web.calls_of_duration">;

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
    values: SelectedValues & { function: string };
    changes: number;
}) {
    const question = isPart(selection.value) ? (`web.selected_${side}` as const) : (`web.${side}` as const);
    const answer = useQuestion(question, values, changes, { ms: PART_MS });
    const sum = answer.rows.reduce((before, row) => before + row.total_ns, 0);
    return (
        <SqlPanel
            title={side === "callers" ? "Callers" : "Callees"}
            question={question}
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
    const answer = useQuestion("web.calls_of_duration", values, 0, { ms: PART_MS });
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
                question="web.calls_of_duration"
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
    const any = useQuestion("web.has_values", { session });
    const answer = useQuestion(any.rows.length > 0 ? "web.calls_by_value" : "", values, 0, { ms: PART_MS });
    if (answer.rows.length === 0 && !answer.problem) {
        return null;
    }
    return (
        <SqlPanel
            title="By value"
            question="web.calls_by_value"
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
    const question = isPart(chosen) ? "web.selected_function" : "web.function";
    const limits = { ms: PART_MS };
    const stat = useQuestion(fn ? question : "", values, changes, limits);
    const bins = useQuestion(fn ? (isPart(chosen) ? "web.selected_durations" : "web.durations") : "", values, changes, limits);
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
            <Panel title={known.name} question={question} values={values}>
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
