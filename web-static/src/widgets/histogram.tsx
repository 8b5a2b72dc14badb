// Draws the durations of one function, in one set of sessions or in two, one over the other.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { follow } from "./chart_size";
import { type SqlRows, useQuestion } from "../answers";
import type { RowOf } from "../api";
import { count, counted, duration, estimated, percent } from "../format";
import { themeKey } from "../store";
import { RowTable } from "./panel";
import { Problem } from "./small";

const PATIENCE_MS = 30000;

type Bin = RowOf<"web.durations_of_set">;

// Merges the bins into quarter octaves of duration, so that both sides have the same bins.
function octaves(bins: readonly Bin[]): Map<number, number> {
    const sums = new Map<number, number>();
    for (const bin of bins) {
        const octave = Math.floor(Math.log2(Math.max(1, (bin.low + bin.high) / 2)) * 4);
        sums.set(octave, (sums.get(octave) ?? 0) + bin.count);
    }
    return sums;
}

export interface Side {
    title: string;
    bins: readonly Bin[];
}

export function DurationChart({ sides, onSelect }: {
    sides: readonly Side[];
    onSelect?: (least: number, most: number) => void;
}) {
    const box = useRef<HTMLDivElement>(null);
    useEffect(() => {
        const style = getComputedStyle(box.current!);
        const colours = [style.getPropertyValue("--bar").trim(), style.getPropertyValue("--warn").trim()];
        const dim = style.getPropertyValue("--dim").trim();
        const line = style.getPropertyValue("--line").trim();
        const sums = sides.map((side) => octaves(side.bins));
        const all = sums.flatMap((side) => [...side.keys()]);
        const first = Math.min(...all);
        const last = Math.max(...all);
        const xs = Array.from({ length: last - first + 3 }, (_, i) => 2 ** ((first + i - 1) / 4));
        const shares = sums.map((side) => {
            const whole = [...side.values()].reduce((sum, value) => sum + value, 0);
            return xs.map((_, i) => (100 * (side.get(first + i - 1) ?? 0)) / Math.max(1, whole));
        });
        const axis = { stroke: dim, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
        const chart = new uPlot(
            {
                width: box.current!.clientWidth,
                height: 200,
                scales: { x: { time: false, distr: 3, log: 2 } },
                legend: { show: false },
                cursor: onSelect ? { drag: { x: true, y: false, setScale: false }, points: { show: false } } : { show: false },
                hooks: {
                    setSelect: [
                        (plot: uPlot) => {
                            const { left, width } = plot.select;
                            if (onSelect && width > 2) {
                                onSelect(Math.floor(plot.posToVal(left, "x")), Math.ceil(plot.posToVal(left + width, "x")));
                            }
                        },
                    ],
                },
                axes: [
                    { ...axis, values: (_: uPlot, ticks: (number | null)[]) => ticks.map((ns) => (ns === null ? "" : duration(ns))), space: 70 },
                    { ...axis, values: (_: uPlot, ticks: number[]) => ticks.map((share) => `${share} %`), size: 58 },
                ],
                series: [
                    {},
                    ...sides.map((side, at) => ({
                        label: side.title,
                        stroke: colours[at] ?? dim,
                        width: 2,
                        fill: `color-mix(in srgb, ${colours[at] ?? dim} 18%, transparent)`,
                        paths: uPlot.paths.stepped!({ align: 1 }),
                        points: { show: false },
                    })),
                ],
            },
            [xs, ...shares] as uPlot.AlignedData,
            box.current!,
        );
        return follow(chart, box.current!);
    }, [JSON.stringify(sides), themeKey.value]);
    return (
        <>
            <div class="chart" ref={box} aria-hidden="true" />
            <ChartTwin sides={sides} />
        </>
    );
}

// The numbers of the chart as a table.
function ChartTwin({ sides }: { sides: readonly Side[] }) {
    const sums = sides.map((side) => octaves(side.bins));
    const bins = [...new Set(sums.flatMap((side) => [...side.keys()]))].sort((a, b) => a - b);
    const wholes = sums.map((side) => [...side.values()].reduce((sum, value) => sum + value, 0));
    return (
        <details class="twin">
            <summary>The same as a table</summary>
            <RowTable<number>
                label="Durations, as a table"
                rows={bins}
                columns={[
                    { title: "From", number: true, cell: (bin) => duration(2 ** (bin / 4)) },
                    { title: "To", number: true, cell: (bin) => duration(2 ** ((bin + 1) / 4)) },
                    ...sides.flatMap((side, at) => [
                        { title: `Calls, ${side.title}`, number: true, cell: (bin: number) => count(sums[at]!.get(bin) ?? 0) },
                        { title: `Share, ${side.title}`, number: true, cell: (bin: number) => percent(sums[at]!.get(bin) ?? 0, wholes[at]!) },
                    ]),
                ]}
            />
        </details>
    );
}

interface HistogramsProperties {
    a: string;
    b: string;
    row: {
        name: string;
        function_id_a: number | null;
        function_id_b: number | null;
        error_ns_a: number | null; // standard error of the total; NULL if it is not an estimate
        error_ns_b: number | null;
    };
}

function useBins(fn: number | null, set: string) {
    return useQuestion(fn !== null ? "web.durations_of_set" : "", { a: set, function: fn ?? 0 }, 0, { ms: PATIENCE_MS });
}

function summary(fn: number | null, { value, rows: bins }: SqlRows<Bin>, errorNs: number | null): string {
    if (fn !== null && !value) {
        return "loading…";
    }
    const whole = bins.reduce((sum, bin) => sum + bin.count, 0);
    let seen = 0;
    const half = bins.find((bin) => (seen += bin.count) * 2 >= whole);
    const error = errorNs ? `, total ± ${duration(errorNs)} (standard error)` : "";
    return half ? `${counted(whole, "call")}, half of them up to ${estimated(half.high, errorNs !== null)}${error}` : "no calls";
}

export function Histograms({ a, b, row }: HistogramsProperties) {
    const before = useBins(row.function_id_a, a);
    const after = useBins(row.function_id_b, b);
    const problem = before.problem || after.problem;
    if (problem) {
        return <Problem message={problem} />;
    }
    const sides = [
        { title: "A", bins: before.rows },
        { title: "B", bins: after.rows },
    ].filter((side) => side.bins.length > 0);
    return (
        <figure class="durations">
            <figcaption>
                Durations of <span class="mono">{row.name}</span>. <strong>A</strong>: {summary(row.function_id_a, before, row.error_ns_a)}.{" "}
                <strong class="warn-text">B</strong>: {summary(row.function_id_b, after, row.error_ns_b)}.
            </figcaption>
            {sides.length > 0 ? <DurationChart sides={sides} /> : null}
        </figure>
    );
}
