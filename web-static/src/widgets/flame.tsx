// A flame graph, callers above callees, and a table of its frames. The width of a frame is a sum. A
// click zooms to a frame.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Bar, barAt, drawBars, prepare, ROW } from "../canvas/bars";
import { count, counted } from "../format";
import { themeKey } from "../store";
import { type ListColumn, RowTable } from "./panel";

export interface Frame extends Bar {
    key: string;
    parent: string; // key of the parent; "" for a root
    hint: string; // one line of text about the frame
}

const ROWS_MAX = 120; // the most rows of a picture; if a deep frame is chosen, the picture starts ROWS_ABOVE rows above it
const ROWS_ABOVE = 20;
const TWIN_ROWS = 100;

interface FlameProperties<T extends Frame> {
    label: string;
    frames: readonly T[];
    chosen: string; // key of the frame that fills the width; "" if all do
    search: string;
    onChoose: (frame: T | null) => void;
    columns: readonly ListColumn<T>[]; // columns of the table
}

// Returns the frame that a key chooses: null for no frame, undefined if the key does nothing.
function keysFrom<T extends Frame>(
    event: KeyboardEvent,
    frames: readonly T[],
    chosen: T | null,
): T | null | undefined {
    const children = frames
        .filter((frame) => frame.parent === (chosen?.key ?? ""))
        .sort((a, b) => b.right - b.left - (a.right - a.left));
    if (event.key === "ArrowDown") {
        return children[0];
    }
    if (event.key === "ArrowUp" || event.key === "Escape") {
        return frames.find((frame) => frame.key === chosen?.parent) ?? null;
    }
    if (chosen && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
        const siblings = frames
            .filter((frame) => frame.parent === chosen.parent)
            .sort((a, b) => a.left - b.left);
        return siblings[siblings.indexOf(chosen) + (event.key === "ArrowLeft" ? -1 : 1)];
    }
    return undefined;
}

export function Flame<T extends Frame>(properties: FlameProperties<T>) {
    const { label, frames, chosen, search, onChoose, columns } = properties;
    const canvas = useRef<HTMLCanvasElement>(null);
    const [width, setWidth] = useState(1000);
    const [said, setSaid] = useState("");
    const focus = frames.find((frame) => frame.key === chosen) ?? null;
    const from = focus?.left ?? frames.reduce((least, frame) => Math.min(least, frame.left), Infinity);
    const to = focus?.right ?? frames.reduce((most, frame) => Math.max(most, frame.right), 0);
    const factor = width / Math.max(1, to - from);
    const place = (value: number) => (value - from) * factor;
    const wanted = search.toLowerCase();
    void themeKey.value; // subscribes to the theme: a change draws the graph again
    const seen = frames.filter((frame) => frame.right > from && frame.left < to);
    const first = Math.max(0, (focus?.row ?? 0) - ROWS_ABOVE);
    const drawn = seen
        .filter((frame) => frame.row >= first && frame.row < first + ROWS_MAX)
        .map((frame) => (first === 0 ? frame : { ...frame, row: frame.row - first }));
    const deeper = seen.filter((frame) => frame.row >= first + ROWS_MAX).length;
    const isFaded = (bar: Bar) =>
        (wanted !== "" && !bar.name.toLowerCase().includes(wanted)) || (focus !== null && bar.row < focus.row - first);
    const rows = drawn.reduce((most, frame) => Math.max(most, frame.row), 0) + 1;
    useEffect(() => {
        const observer = new ResizeObserver(() =>
            setWidth(Math.max(50, Math.floor(canvas.current?.clientWidth ?? 0))),
        );
        observer.observe(canvas.current!);
        return () => observer.disconnect();
    }, []);
    useEffect(() => {
        const frame = requestAnimationFrame(() => {
            if (!canvas.current) {
                return; // removed meanwhile
            }
            const context = prepare(canvas.current, width, rows * ROW);
            const outline = getComputedStyle(canvas.current).getPropertyValue("--text").trim();
            drawBars(context, [{ bars: drawn, axis: { place, width, top: 0, rows, chosen: null, outline, isFaded } }]);
        });
        return () => cancelAnimationFrame(frame);
    });
    const at = (event: MouseEvent) => barAt(drawn, { place, top: 0 }, event.offsetX, event.offsetY);
    const onKeyDown = (event: KeyboardEvent) => {
        const next = keysFrom(event, frames, focus);
        if (next !== undefined) {
            event.preventDefault();
            setSaid(next?.hint ?? "");
            onChoose(next);
        }
    };
    return (
        <>
            <div class="flame card" tabIndex={0} role="group" aria-label={label} onKeyDown={onKeyDown}>
                <div class="tracks">
                    <canvas
                        ref={canvas}
                        aria-hidden="true"
                        style={{ height: `${rows * ROW}px` }}
                        onMouseMove={(event) => setSaid(at(event)?.hint ?? "")}
                        onClick={(event) => {
                            const hit = at(event);
                            onChoose(hit && hit.key === chosen ? null : hit);
                        }}
                    />
                </div>
                <p class="dim" role="status">
                    {said || focus?.hint || `${counted(seen.length, "frame")}; click a frame or use the arrow keys to zoom`}
                </p>
            </div>
            {deeper > 0 ? (
                <p class="warn-text">
                    {counted(deeper, "frame")} {deeper === 1 ? "lies" : "lie"} below the {ROWS_MAX} levels that are drawn; a
                    click on a low frame shows what is below it.
                </p>
            ) : null}
            <details class="card panel twin">
                <summary>
                    <h2>The same as a table</h2>
                </summary>
                <RowTable
                    label={`${label}, as a table`}
                    rows={[...seen].sort((a, b) => b.right - b.left - (a.right - a.left)).slice(0, TWIN_ROWS)}
                    columns={columns}
                />
                {seen.length > TWIN_ROWS ? (
                    <p class="dim">The {TWIN_ROWS} widest of {count(seen.length)} frames.</p>
                ) : null}
            </details>
        </>
    );
}
