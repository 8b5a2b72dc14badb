// Places the tracks of a timeline on its canvas and draws them.
import { type Bar, barAt, belowLine, drawBars, hatch, type Layer, prepare, ROW, shade } from "../canvas/bars";
import { placeOf, ticksOf, type Window } from "../canvas/scale";
import { type CallBar, cutOf, type GapMark, type Mark, type Track, trackName } from "./timeline_data";

export const RULER = 34;
const HEAD = 20;
const FOOT = 8;

export interface Picture {
    tracks: readonly Track[]; // pinned tracks come first
    pinned: number; // the first `pinned` tracks do not scroll (see keptOf)
    gaps: readonly GapMark[];
    marks: readonly Mark[];
    view: Window;
    areas: readonly Window[]; // the selected times
    chosen: CallBar | null;
    search: string;
    width: number;
    height: number; // visible height
    scroll: number; // scroll offset from the top
}

function heightOf(track: Track): number {
    return HEAD + track.rows * ROW + FOOT;
}

export function heightOfAll(tracks: readonly Track[]): number {
    return RULER + tracks.reduce((sum, track) => sum + heightOf(track), 0);
}

// Returns how many pinned tracks stay in place. Returns 0 if the other tracks would have less than
// a quarter of the height.
export function keptOf(tracks: readonly Track[], pinned: number, height: number): number {
    return heightOfAll(tracks.slice(0, pinned)) <= (height * 3) / 4 ? pinned : 0;
}

interface Place {
    track: Track;
    top: number; // y of its first row
    least: number; // nothing is drawn above this y
}

// Returns where the tracks are on the canvas. Pinned tracks do not scroll.
function placesOf({ tracks, pinned, scroll }: Picture): Place[] {
    const border = pinned > 0 ? heightOfAll(tracks.slice(0, pinned)) : 0;
    let top = RULER;
    return tracks.map((track, index) => {
        const isPinned = index < pinned;
        const place = { track, top: top + HEAD - (isPinned ? 0 : scroll), least: isPinned ? 0 : border };
        top += heightOf(track);
        return place;
    });
}

export interface Hit {
    track: Track;
    bar: CallBar | null;
}

// Returns the track and the bar at a point, or null if no track is there.
export function hitOf(picture: Picture, x: number, y: number): Hit | null {
    const found = placesOf(picture).find(
        ({ track, top, least }) => y >= Math.max(RULER, least, top - HEAD) && y < top - HEAD + heightOf(track),
    );
    if (!found) {
        return null;
    }
    const axis = { place: placeOf(picture.view, picture.width), top: found.top };
    const bars = found.track.bars.filter((bar) => bar.row < found.track.rows);
    return { track: found.track, bar: barAt(bars, axis, x, y) };
}

const BAR_WIDTH = 12; // the width of the scroll bar for the levels of a deep track
const THUMB_LEAST = 12;

interface LevelBar {
    track: Track;
    top: number; // y of its upper end
    height: number;
    thumb: { top: number; height: number };
}

function levelBarOf({ track, top }: Place): LevelBar | null {
    if (track.levels <= track.rows) {
        return null;
    }
    const height = track.rows * ROW;
    const thumb = Math.min(height, Math.max(THUMB_LEAST, (height * track.rows) / track.levels));
    const share = track.top / Math.max(1, track.levels - track.rows);
    return { track, top, height, thumb: { top: top + (height - thumb) * Math.min(1, share), height: thumb } };
}

// Returns the scroll bar for levels at a point, or null.
export function levelBarAt(picture: Picture, x: number, y: number): LevelBar | null {
    const hit = x >= picture.width - BAR_WIDTH ? hitOf(picture, x, y) : null;
    const place = hit && placesOf(picture).find(({ track }) => track === hit.track);
    return place ? levelBarOf(place) : null;
}

// Returns the first row that a track draws if the middle of its thumb is at y.
export function rowAt({ track, top, height, thumb }: LevelBar, y: number): number {
    const travel = Math.max(1, height - thumb.height);
    return ((y - top - thumb.height / 2) / travel) * (track.levels - track.rows);
}

function drawLevelBar(context: CanvasRenderingContext2D, picture: Picture, place: Place, colours: Colours): void {
    const bar = levelBarOf(place);
    if (bar) {
        const left = picture.width - BAR_WIDTH;
        context.fillStyle = colours.line;
        context.fillRect(left, bar.top, BAR_WIDTH, bar.height);
        context.fillStyle = colours.accent;
        context.fillRect(left + 2, bar.thumb.top, BAR_WIDTH - 4, bar.thumb.height);
    }
}

export interface Colours {
    text: string;
    dim: string;
    line: string;
    accent: string;
    card: string;
}

// Reads the colours from the style sheet. Called once for each theme, not for each frame.
export function coloursOf(canvas: HTMLCanvasElement): Colours {
    const style = getComputedStyle(canvas);
    const read = (name: string) => style.getPropertyValue(name).trim();
    return {
        text: read("--text"),
        dim: read("--dim"),
        line: read("--line"),
        accent: read("--accent"),
        card: read("--card"),
    };
}

// The lines of the ruler are drawn below the bars, and its labels above everything that scrolls.
function drawRuler(context: CanvasRenderingContext2D, picture: Picture, colours: Colours): void {
    const place = placeOf(picture.view, picture.width);
    const ticks = ticksOf(picture.view, picture.width).map((tick) => ({ ...tick, x: Math.round(place(tick.at)) }));
    context.globalCompositeOperation = "destination-over";
    context.fillStyle = colours.line;
    ticks.forEach(({ x }) => context.fillRect(x, 18, 1, picture.height));
    context.globalCompositeOperation = "source-over";
    context.fillStyle = colours.card;
    context.fillRect(0, 0, picture.width, RULER - 2);
    context.fillStyle = colours.line;
    ticks.forEach(({ x }) => context.fillRect(x, 18, 1, RULER - 18));
    context.fillStyle = colours.dim;
    ticks.forEach(({ x, label }) => context.fillText(label, x + 3, 9));
}

// Returns where the tracks of a session are visible. Tracks of other sessions may lie between them.
function seenOf(places: readonly Place[], session: number): { top: number; bottom: number }[] {
    return places
        .filter(({ track }) => track.stream.session_id === session)
        .map(({ track, top, least }) => ({ top: Math.max(20, least, top - HEAD), bottom: top - HEAD + heightOf(track) }))
        .filter(({ top, bottom }) => bottom > top);
}

// A mark's name is drawn only if it does not overlap the previous name.
function drawMarks(context: CanvasRenderingContext2D, picture: Picture, places: readonly Place[], colours: Colours): void {
    const place = placeOf(picture.view, picture.width);
    const known = new Map<number, ReturnType<typeof seenOf>>();
    let free = 0;
    context.fillStyle = colours.accent;
    for (const mark of picture.marks) {
        const x = Math.round(place(mark.at_ns));
        if (x < 0 || x > picture.width) {
            continue;
        }
        const seen = known.get(mark.session_id) ?? seenOf(places, mark.session_id);
        known.set(mark.session_id, seen);
        context.globalAlpha = mark.is_end ? 0.4 : 0.9;
        seen.forEach(({ top, bottom }) => context.fillRect(x, top, 1, bottom - top));
        context.globalAlpha = 1;
        if (x >= free && !mark.is_end) {
            const name = mark.name.slice(0, 40);
            context.fillText(name, x + 3, 26);
            free = x + 14 + context.measureText(name).width;
        }
    }
}

// Returns the left and the right edge of a gap in pixels.
function span(gap: GapMark, place: (ns: number) => number, width: number): [number, number] {
    const left = Math.max(-2, place(gap.start_ns));
    return [left, Math.min(width + 2, Math.max(left + 3, place(gap.end_ns)))];
}

// Marks the time of lost calls whose thread is not known, above all tracks.
function drawGapsOfProcess(context: CanvasRenderingContext2D, picture: Picture): void {
    const place = placeOf(picture.view, picture.width);
    for (const gap of picture.gaps.filter(({ stream_id, is_wait }) => stream_id === null && !is_wait)) {
        const [left, right] = span(gap, place, picture.width);
        if (right > 0 && left < picture.width) {
            hatch(context, left, 0, right - left, 5);
        }
    }
}

function drawGaps(context: CanvasRenderingContext2D, picture: Picture, { track, top }: Place): void {
    const place = placeOf(picture.view, picture.width);
    const drawn = [-Infinity, -Infinity]; // right edge of the last gap, for losses and waits: gaps are sorted, so one that ends within it is drawn already
    for (const gap of picture.gaps) {
        const [left, right] = span(gap, place, picture.width);
        if (gap.stream_id === track.stream.stream_id && right > drawn[gap.is_wait]! && right > 0 && left < picture.width) {
            (gap.is_wait ? shade : hatch)(context, left, top, right - left, track.rows * ROW);
            drawn[gap.is_wait] = right;
        }
    }
}

// Writes the name of a track, and what its bars do not show.
function drawHead(context: CanvasRenderingContext2D, picture: Picture, { track, top }: Place, colours: Colours): void {
    const name = trackName(track.stream);
    const how = track.problem || (track.isCalls ? "" : "  ≈ open calls at the start of each step");
    const said = `${track.stream.clock}${how}${cutOf(track)}`;
    const nameWidth = context.measureText(name).width;
    context.fillStyle = colours.line;
    context.fillRect(0, top - HEAD, picture.width, 1);
    context.fillStyle = colours.card;
    context.fillRect(0, top - HEAD + 2, nameWidth + context.measureText(said).width + 14, HEAD - 4);
    context.fillStyle = colours.text;
    context.fillText(name, 4, top - HEAD / 2);
    context.fillStyle = colours.dim;
    context.fillText(said, 4 + nameWidth, top - HEAD / 2);
}

function layerOf(picture: Picture, { track, top, least }: Place, colours: Colours): Layer {
    const search = picture.search.toLowerCase();
    const isFaded = (bar: Bar) => !bar.name.toLowerCase().includes(search);
    const chosen = picture.chosen && track.bars.includes(picture.chosen) ? picture.chosen : null;
    const place = placeOf(picture.view, picture.width);
    const axis = { place, width: picture.width, top, least, rows: track.rows, chosen, outline: colours.text };
    return { bars: track.bars, axis: search === "" ? axis : { ...axis, isFaded } };
}

export function drawTimeline(canvas: HTMLCanvasElement, picture: Picture, colours: Colours): void {
    const context = prepare(canvas, picture.width, picture.height);
    const places = placesOf(picture);
    const seen = places.filter(({ track, top, least }) => top + heightOf(track) > least && top - HEAD < picture.height);
    drawBars(context, seen.map((place) => layerOf(picture, place, colours)));
    for (const place of seen) {
        belowLine(context, place.least, () => {
            drawGaps(context, picture, place);
            drawHead(context, picture, place, colours);
            drawLevelBar(context, picture, place, colours);
        });
    }
    if (picture.pinned > 0) {
        context.fillStyle = colours.accent;
        context.fillRect(0, heightOfAll(picture.tracks.slice(0, picture.pinned)) - 2, picture.width, 1);
    }
    drawRuler(context, picture, colours);
    drawGapsOfProcess(context, picture);
    drawMarks(context, picture, seen, colours);
    drawSelected(context, picture, colours);
}

function drawSelected(context: CanvasRenderingContext2D, picture: Picture, colours: Colours): void {
    const place = placeOf(picture.view, picture.width);
    context.fillStyle = colours.accent;
    for (const area of picture.areas) {
        const left = Math.max(-2, place(area.from));
        const right = Math.min(picture.width + 2, place(area.to));
        if (right >= left) {
            context.globalAlpha = 0.16;
            context.fillRect(left, 0, right - left, picture.height);
            context.globalAlpha = 1;
            context.fillRect(left, 0, 1, picture.height);
            context.fillRect(right, 0, 1, picture.height);
        }
    }
}
