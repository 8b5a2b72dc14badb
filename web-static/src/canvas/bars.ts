// Draws bars in rows: the calls of a timeline and the frames of a flame graph.

export const ROW = 18;

export interface Bar {
    left: number; // in the unit of the axis: ns
    right: number;
    row: number;
    name: string;
    label?: string; // instead of the name
    hue?: string; // instead of the name's own colour
    striped?: boolean; // its time is not exact
    count?: number; // of calls merged into it
}

const colours = new Map<string, string>();

// The same function has the same colour in every session and picture.
export function colourOf(name: string): string {
    const known = colours.get(name);
    if (known) {
        return known;
    }
    let hash = 0;
    for (let i = 0; i < name.length; i++) {
        hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
    }
    const colour = `hsl(${hash % 360} 62% ${70 + ((hash >> 9) % 10)}%)`;
    if (colours.size > 20000) {
        colours.clear();
    }
    colours.set(name, colour);
    return colour;
}

const INK = "#14172a"; // on every bar, in both themes: bars are light
const NARROWEST_TEXT = 34;

// prepare sizes a canvas for the screen's pixels and clears it.
export function prepare(canvas: HTMLCanvasElement, width: number, height: number) {
    const scale = window.devicePixelRatio || 1;
    const context = canvas.getContext("2d")!;
    const wide = Math.max(1, Math.round(width * scale));
    const high = Math.max(1, Math.round(height * scale));
    if (canvas.width !== wide || canvas.height !== high) {
        canvas.width = wide;
        canvas.height = high;
    }
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.textBaseline = "middle";
    context.font = "11.5px system-ui, sans-serif";
    return context;
}

const TILE = 8;
const tiles = new Map<string, HTMLCanvasElement>();

// A tile of slanting lines: filling with it costs as much as filling with a colour.
function tileOf(colour: string, lineWidth: number): HTMLCanvasElement {
    const key = `${colour} ${lineWidth}`;
    const known = tiles.get(key);
    if (known) {
        return known;
    }
    const tile = document.createElement("canvas");
    tile.width = TILE;
    tile.height = TILE;
    const context = tile.getContext("2d")!;
    context.strokeStyle = colour;
    context.lineWidth = lineWidth;
    for (const x of [-TILE, 0, TILE]) {
        context.moveTo(x - 1, TILE + 1);
        context.lineTo(x + TILE + 1, -1);
    }
    context.stroke();
    tiles.set(key, tile);
    return tile;
}

// hatch fills a place where nothing is known.
export function hatch(
    context: CanvasRenderingContext2D,
    x: number,
    y: number,
    width: number,
    height: number,
): void {
    context.fillStyle = context.createPattern(tileOf("#d9480f", 1.3), "repeat")!;
    context.fillRect(x, y, width, height);
}

function stripe(context: CanvasRenderingContext2D, x: number, y: number, width: number): void {
    context.fillStyle = context.createPattern(tileOf("rgb(20 23 42 / 38%)", 2), "repeat")!;
    context.fillRect(x, y, width, ROW - 1);
}

const widths = new Map<string, number>();

function widthOf(context: CanvasRenderingContext2D, text: string): number {
    let width = widths.get(text);
    if (width === undefined) {
        width = context.measureText(text).width;
        if (widths.size > 5000) {
            widths.clear();
        }
        widths.set(text, width);
    }
    return width;
}

// fit shortens a text to a width by its beginning, where names say least.
export function fit(context: CanvasRenderingContext2D, text: string, room: number): string {
    if (widthOf(context, text) <= room) {
        return text;
    }
    const letters = Math.floor((text.length * room) / widthOf(context, text)) - 1;
    return letters < 3 ? "" : `${text.slice(0, letters)}…`;
}

export interface Axis {
    place: (value: number) => number;
    width: number;
    top: number;
    chosen?: Bar | null;
    outline: string; // colour of the chosen bar's edge
    rows: number; // shown
    isFaded?: (bar: Bar) => boolean;
}

// A bar that lies in the pixels of the one drawn before in its row does not show.
export function drawBars(context: CanvasRenderingContext2D, bars: readonly Bar[], axis: Axis): void {
    const drawn = Array.from({ length: axis.rows }, () => ({ from: 0, to: -Infinity }));
    for (const bar of bars) {
        const x = Math.max(-2, axis.place(bar.left));
        const end = Math.min(axis.width + 2, axis.place(bar.right));
        const before = drawn[bar.row];
        if (end < 0 || x > axis.width || !before || (x >= before.from && end <= before.to)) {
            continue;
        }
        const width = Math.max(1, end - x - (end - x > 3 ? 0.5 : 0));
        const y = axis.top + bar.row * ROW;
        before.from = x;
        before.to = x + width;
        context.globalAlpha = axis.isFaded?.(bar) ? 0.22 : 1;
        context.fillStyle = bar.hue ?? colourOf(bar.name);
        context.fillRect(x, y, width, ROW - 1);
        if (bar.striped && width > 2) {
            stripe(context, x, y, width);
        }
        if (width >= NARROWEST_TEXT) {
            const start = Math.max(x, 0);
            const room = Math.min(end, axis.width) - start - 8;
            const text = fit(context, bar.label ?? bar.name, room);
            context.fillStyle = INK;
            context.fillText(text, start + 4, y + ROW / 2);
        }
    }
    context.globalAlpha = 1;
    if (axis.chosen) {
        const x = axis.place(axis.chosen.left);
        const width = Math.max(3, axis.place(axis.chosen.right) - x);
        context.strokeStyle = axis.outline;
        context.lineWidth = 2;
        context.strokeRect(x, axis.top + axis.chosen.row * ROW, width, ROW - 1);
    }
}

// barAt finds the bar below a point; of several narrow ones the nearest within some pixels.
export function barAt<T extends Bar>(
    bars: readonly T[],
    axis: Pick<Axis, "place" | "top">,
    x: number,
    y: number,
): T | null {
    const row = Math.floor((y - axis.top) / ROW);
    let best: T | null = null;
    let distance = 3;
    for (const bar of bars) {
        if (bar.row !== row) {
            continue;
        }
        const left = axis.place(bar.left);
        const right = Math.max(left + 1, axis.place(bar.right));
        const away = x < left ? left - x : x > right ? x - right : 0;
        if (away < distance) {
            best = bar;
            distance = away;
        }
    }
    return best;
}
