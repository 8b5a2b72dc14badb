// Draws a result as lines over its first numeric column. If the first column has names, draws bars
// over the names.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { follow } from "./chart_size";
import type { SqlAnswer } from "../api";
import { compact, duration } from "../format";
import { themeKey } from "../store";

const LINES_MAX = 6;
const palette = ["--bar", "--warn", "--good", "--bad", "--accent", "--dim"];

// Returns which columns are drawn. If the first column is numeric, it is the x axis.
function chartLayout({ columns, rows }: SqlAnswer) {
    const numeric = columns.map((_, at) => at).filter((at) => rows.some((row) => typeof row[at] === "number"));
    const hasNames = numeric[0] !== 0;
    return { numeric, hasNames, lines: numeric.slice(hasNames ? 0 : 1, LINES_MAX + (hasNames ? 0 : 1)) };
}

function numberOf(value: unknown): number | null {
    return typeof value === "number" ? value : null;
}

function formatOf(column: string): (value: number) => string {
    return column.endsWith("_ns") ? (value) => duration(value) : (value) => compact(value);
}

export function LineChart({ answer }: { answer: SqlAnswer }) {
    const box = useRef<HTMLDivElement>(null);
    useEffect(() => {
        const style = getComputedStyle(box.current!);
        const read = (name: string) => style.getPropertyValue(name).trim();
        const { columns, rows } = answer;
        const { numeric, hasNames, lines } = chartLayout(answer);
        const across = rows.map((row, index) => (hasNames ? index : (numberOf(row[numeric[0]!]) ?? index)));
        const order = across.map((_, index) => index).sort((a, b) => across[a]! - across[b]!);
        const axis = {
            stroke: read("--dim"),
            grid: { stroke: read("--line"), width: 1 },
            ticks: { stroke: read("--line"), width: 1 },
        };
        const across_name = hasNames ? "row" : columns[numeric[0]!]!;
        const colours = palette.map(read);
        const chart = new uPlot(
            {
                width: box.current!.clientWidth,
                height: 320,
                scales: { x: { time: false } },
                legend: { show: false }, // the legend sets style attributes, which the page's content security policy forbids
                axes: [
                    {
                        ...axis,
                        values: (_: uPlot, ticks: number[]) =>
                            ticks.map((tick) =>
                                hasNames ? String(rows[tick]?.[0] ?? "").slice(0, 14) : formatOf(across_name)(tick),
                            ),
                    },
                    {
                        ...axis,
                        size: 70,
                        values: (_: uPlot, ticks: number[]) => ticks.map(formatOf(columns[lines[0]!]!)),
                    },
                ],
                series: [
                    { label: across_name },
                    ...lines.map((at, line) => ({
                        label: columns[at]!,
                        stroke: colours[line]!,
                        width: 1.5,
                        ...(hasNames ? { paths: uPlot.paths.bars!({ size: [0.6, 60] }) } : {}),
                        points: { show: !hasNames && rows.length < 200 },
                    })),
                ],
            },
            [order.map((index) => across[index]!), ...lines.map((at) => order.map((index) => numberOf(rows[index]![at])))],
            box.current!,
        );
        return follow(chart, box.current!);
    }, [answer, themeKey.value]);
    return (
        <>
            <ul class="key">
                {chartLayout(answer).lines.map((at, line) => (
                    <li key={at} style={{ "--colour": `var(${palette[line]!})` }}>
                        {answer.columns[at]}
                    </li>
                ))}
            </ul>
            <div class="chart" ref={box} role="img" aria-label={`Chart of ${answer.columns.join(", ")}; the table has its numbers`} />
        </>
    );
}
