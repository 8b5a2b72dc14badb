// Draws bars in rows: the calls of a timeline and the frames of a flame graph.

export const ROW = 18;

export interface Bar {
    left: number; // in the unit of the axis: ns
    right: number;
    row: number;
    name: string;
    label?: string; // shown instead of the name
    hue?: string; // replaces the colour that belongs to the name
    striped?: boolean; // true if its time is not exact
    count?: number; // number of calls merged into it
}

// A colour in the byte order of a canvas: 0xAABBGGRR.
type Pixel = number;

const NAMES_MAX = 20000;
const pixels = new Map<string, Pixel>();
let reader: CanvasRenderingContext2D | null = null;

// Converts a colour. The browser parses any notation and returns it as #rrggbb.
function pixelOf(colour: string): Pixel {
    reader ??= document.createElement("canvas").getContext("2d")!;
    reader.fillStyle = colour;
    const rgb = parseInt(String(reader.fillStyle).slice(1), 16);
    return (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
}

function hueOf(name: string): string {
    let hash = 0;
    for (let i = 0; i < name.length; i++) {
        hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
    }
    return `hsl(${hash % 360} 62% ${70 + ((hash >> 9) % 10)}%)`;
}

// Returns the colour of a bar. A function has the same colour in every session and picture.
function pixelOfBar(bar: Bar): Pixel {
    const key = bar.hue ?? bar.name;
    let pixel = pixels.get(key);
    if (pixel === undefined) {
        pixel = pixelOf(bar.hue ?? hueOf(bar.name));
        if (pixels.size > NAMES_MAX) {
            pixels.clear();
        }
        pixels.set(key, pixel);
    }
    return pixel;
}

const INK = "#14172a"; // readable on every bar in both themes, because bars are light
const NARROWEST_TEXT = 34;

// Sizes a canvas in physical pixels. drawBars then writes each pixel.
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
    context.textBaseline = "middle";
    context.font = "11.5px system-ui, sans-serif";
    return context;
}

const TILE = 8;
const tiles = new Map<string, HTMLCanvasElement>();

// Returns a tile of slanting lines. Filling with a pattern costs as little as filling with a
// colour.
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

// Hatches an area: calls were lost there.
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

// Shades an area: the thread waited for the recorder, and no call was lost.
export function shade(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
    context.fillStyle = "rgb(128 128 128 / 30%)";
    context.fillRect(x, y, width, height);
}

// Stripes a bar: its time is not exact.
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

// Shortens a text to `room` pixels. It keeps the beginning and adds "…". Returns "" if fewer than 3
// letters fit.
export function fit(context: CanvasRenderingContext2D, text: string, room: number): string {
    if (widthOf(context, text) <= room) {
        return text;
    }
    let letters = Math.floor((text.length * room) / widthOf(context, text)) - 1;
    while (letters >= 3 && widthOf(context, `${text.slice(0, letters)}…`) > room) {
        letters--;
    }
    return letters < 3 ? "" : `${text.slice(0, letters)}…`;
}

export interface Axis {
    place: (value: number) => number;
    width: number;
    top: number;
    least?: number; // nothing is drawn above this y, because pinned rows are there
    chosen?: Bar | null;
    outline: string; // colour of the chosen bar's outline
    rows: number; // number of visible rows
    isFaded?: (bar: Bar) => boolean;
}

// One group of rows on a canvas.
export interface Layer {
    bars: readonly Bar[];
    axis: Axis;
}

// The pixels of the whole canvas, written at once.
interface Raster {
    image: ImageData;
    pixels: Uint32Array<ArrayBuffer>;
    wide: number;
    high: number;
    scale: number;
}

let kept: Raster | null = null;

// Returns cleared pixels of the canvas's size. Uses the previous pixels again if their size is the
// same.
function rasterOf(canvas: HTMLCanvasElement): Raster {
    const scale = window.devicePixelRatio || 1;
    const { width: wide, height: high } = canvas;
    if (kept?.wide === wide && kept.high === high) {
        kept.scale = scale;
        kept.pixels.fill(0);
        return kept;
    }
    const image = new ImageData(wide, high);
    kept = { image, pixels: new Uint32Array(image.data.buffer as ArrayBuffer), wide, high, scale };
    return kept;
}

const FADED = 0x38000000; // alpha

interface Found {
    bar: Bar;
    left: number; // in pixels
    right: number;
}

// Returns the first line of pixels of each row, and the bars that are wide enough for a name or
// stripes. A bar is skipped if the previous bar of its row covers its pixels.
function firstLines(layer: Layer, { wide, scale }: Raster, from: number, to: number) {
    const { place, width, isFaded } = layer.axis;
    const lines = new Uint32Array((to - from) * wide);
    const begun = new Int32Array(to - from).fill(-1);
    const ended = new Int32Array(to - from).fill(-1);
    const wideBars: Found[] = [];
    for (const bar of layer.bars) {
        const row = bar.row - from;
        const left = place(bar.left);
        const right = place(bar.right);
        const x = Math.max(0, Math.floor(left * scale));
        if (row < 0 || bar.row >= to || right < 0 || left > width || x >= wide) {
            continue;
        }
        const gap = right - left > 3 ? 1 : 0;
        const end = Math.min(wide, Math.max(x + 1, Math.round(right * scale) - gap));
        if (x >= begun[row]! && end <= ended[row]!) {
            continue;
        }
        begun[row] = x;
        ended[row] = end;
        const pixel = pixelOfBar(bar);
        lines.fill(isFaded?.(bar) ? (pixel & 0xffffff) | FADED : pixel, row * wide + x, row * wide + end);
        if (right - left >= NARROWEST_TEXT || (bar.striped && right - left > 2)) {
            wideBars.push({ bar, left: Math.max(left, -2), right: Math.min(right, width + 2) });
        }
    }
    return { lines, wideBars };
}

// Copies the first line of each row to its other lines.
function fillRows(raster: Raster, lines: Uint32Array, { top, least = 0 }: Axis, from: number, to: number): void {
    const { pixels, wide, high, scale } = raster;
    const begin = Math.round(least * scale);
    for (let row = from; row < to; row++) {
        const line = lines.subarray((row - from) * wide, (row - from + 1) * wide);
        const first = Math.max(begin, Math.round((top + row * ROW) * scale));
        const last = Math.min(high, Math.round((top + (row + 1) * ROW - 1) * scale));
        for (let y = first; y < last; y++) {
            pixels.set(line, y * wide);
        }
    }
}

function drawText(context: CanvasRenderingContext2D, { bar, left, right }: Found, { top, width, isFaded }: Axis): void {
    const start = Math.max(left, 0);
    const text = fit(context, bar.label ?? bar.name, Math.min(right, width) - start - 8);
    if (text !== "") {
        context.globalAlpha = isFaded?.(bar) ? 0.22 : 1;
        context.fillText(text, start + 4, top + bar.row * ROW + ROW / 2);
    }
}

function drawChosen(context: CanvasRenderingContext2D, { chosen, place, top, outline }: Axis): void {
    if (chosen) {
        const x = place(chosen.left);
        context.strokeStyle = outline;
        context.lineWidth = 2;
        context.strokeRect(x, top + chosen.row * ROW, Math.max(3, place(chosen.right) - x), ROW - 1);
    }
}

// Draws all layers of a canvas and overwrites what was there. Tens of thousands of bars are written
// as pixels in one go, which is much faster than as many rectangles.
export function drawBars(context: CanvasRenderingContext2D, layers: readonly Layer[]): void {
    const raster = rasterOf(context.canvas);
    const high = raster.high / raster.scale;
    const found: { layer: Layer; wideBars: Found[] }[] = [];
    for (const layer of layers) {
        const { top, rows, least = 0 } = layer.axis;
        const from = Math.min(rows, Math.max(0, Math.floor((least - top) / ROW)));
        const to = Math.min(rows, Math.max(from, Math.ceil((high - top) / ROW)));
        const { lines, wideBars } = firstLines(layer, raster, from, to);
        fillRows(raster, lines, layer.axis, from, to);
        found.push({ layer, wideBars });
    }
    context.putImageData(raster.image, 0, 0);
    for (const { layer, wideBars } of found) {
        belowLine(context, layer.axis.least ?? 0, () => drawDetails(context, layer.axis, wideBars));
    }
}

function drawDetails(context: CanvasRenderingContext2D, axis: Axis, wideBars: readonly Found[]): void {
    for (const { bar, left, right } of wideBars) {
        if (bar.striped) {
            stripe(context, left, axis.top + bar.row * ROW, right - left);
        }
    }
    context.fillStyle = INK;
    wideBars.filter(({ left, right }) => right - left >= NARROWEST_TEXT).forEach((one) => drawText(context, one, axis));
    context.globalAlpha = 1;
    drawChosen(context, axis);
}

// Calls `draw` with everything above y = `least` clipped. 0 clips nothing.
export function belowLine(context: CanvasRenderingContext2D, least: number, draw: () => void): void {
    if (least <= 0) {
        draw();
        return;
    }
    context.save();
    context.beginPath();
    context.rect(0, least, context.canvas.width, context.canvas.height);
    context.clip();
    draw();
    context.restore();
}

// Returns the bar at a point. If no bar is there, returns the nearest one of that row within 3
// pixels, or null.
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
