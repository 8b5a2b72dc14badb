// Where the tracks of a timeline lie on its canvas, and how they are drawn.
import { type Bar, barAt, drawBars, hatch, prepare, ROW } from "../canvas/bars";
import { placeOf, ticksOf, type Window } from "../canvas/scale";
import { type CallBar, type GapMark, type Mark, type Track, trackName } from "./timeline_data";

export const RULER = 34;
const HEAD = 20;
const FOOT = 8;

export interface Picture {
    tracks: readonly Track[];
    gaps: readonly GapMark[];
    marks: readonly Mark[];
    view: Window;
    areas: readonly Window[]; // selected
    chosen: CallBar | null;
    search: string;
    width: number;
}

function heightOf(track: Track): number {
    return HEAD + track.rows * ROW + FOOT;
}

export function heightOfAll(tracks: readonly Track[]): number {
    return RULER + tracks.reduce((sum, track) => sum + heightOf(track), 0);
}

interface Place {
    track: Track;
    top: number; // of its first row
}

function placesOf(tracks: readonly Track[]): Place[] {
    let top = RULER;
    return tracks.map((track) => {
        const place = { track, top: top + HEAD };
        top += heightOf(track);
        return place;
    });
}

export interface Hit {
    track: Track;
    bar: CallBar | null;
}

export function hitOf(picture: Picture, x: number, y: number): Hit | null {
    const found = placesOf(picture.tracks).find(
        ({ track, top }) => y >= top - HEAD && y < top - HEAD + heightOf(track),
    );
    if (!found) {
        return null;
    }
    const axis = { place: placeOf(picture.view, picture.width), top: found.top };
    const bars = found.track.bars.filter((bar) => bar.row < found.track.rows);
    return { track: found.track, bar: barAt(bars, axis, x, y) };
}

interface Colours {
    text: string;
    dim: string;
    line: string;
    accent: string;
    card: string;
}

function coloursOf(canvas: HTMLCanvasElement): Colours {
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

function drawRuler(context: CanvasRenderingContext2D, picture: Picture, height: number, colours: Colours) {
    const place = placeOf(picture.view, picture.width);
    context.lineWidth = 1;
    for (const tick of ticksOf(picture.view, picture.width)) {
        const x = Math.round(place(tick.at)) + 0.5;
        context.strokeStyle = colours.line;
        context.beginPath();
        context.moveTo(x, 18);
        context.lineTo(x, height);
        context.stroke();
        context.fillStyle = colours.dim;
        context.fillText(tick.label, x + 3, 9);
    }
}

// The names of marks stand where there is room for them.
function drawMarks(context: CanvasRenderingContext2D, picture: Picture, height: number, colours: Colours) {
    const place = placeOf(picture.view, picture.width);
    let free = 0;
    for (const mark of picture.marks) {
        const x = Math.round(place(mark.at_ns)) + 0.5;
        if (x < 0 || x > picture.width) {
            continue;
        }
        context.strokeStyle = colours.accent;
        context.globalAlpha = mark.is_end ? 0.4 : 0.9;
        context.beginPath();
        context.moveTo(x, 20);
        context.lineTo(x, height);
        context.stroke();
        context.globalAlpha = 1;
        if (x >= free && !mark.is_end) {
            context.fillStyle = colours.accent;
            context.fillText(mark.name.slice(0, 40), x + 3, 26);
            free = x + 14 + context.measureText(mark.name.slice(0, 40)).width;
        }
    }
}

function drawTrack(
    context: CanvasRenderingContext2D,
    picture: Picture,
    { track, top }: Place,
    colours: Colours,
): void {
    const place = placeOf(picture.view, picture.width);
    const search = picture.search.toLowerCase();
    const isFaded = (bar: Bar) => search !== "" && !bar.name.toLowerCase().includes(search);
    context.fillStyle = colours.line;
    context.fillRect(0, top - HEAD, picture.width, 1);
    const chosen = picture.chosen && track.bars.includes(picture.chosen) ? picture.chosen : null;
    const { rows, bars } = track;
    drawBars(context, bars, { place, width: picture.width, top, rows, chosen, outline: colours.text, isFaded });
    let drawn = -Infinity; // gaps come in order: those within the last one's pixels are drawn
    for (const gap of picture.gaps) {
        const left = Math.max(-2, place(gap.start_ns));
        const right = Math.min(picture.width + 2, Math.max(left + 3, place(gap.end_ns)));
        const isHere = gap.stream_id === null || gap.stream_id === track.stream.stream_id;
        if (isHere && right > drawn && right > 0 && left < picture.width) {
            hatch(context, left, top, right - left, track.rows * ROW);
            drawn = right;
        }
    }
    const name = trackName(track.stream);
    const how = track.problem || (track.isCalls ? "" : "  ≈ what was open where steps begin");
    context.fillStyle = colours.card;
    context.fillRect(0, top - HEAD + 2, context.measureText(name + how).width + 14, HEAD - 4);
    context.fillStyle = colours.text;
    context.fillText(name, 4, top - HEAD / 2);
    context.fillStyle = colours.dim;
    context.fillText(how, 4 + context.measureText(name).width, top - HEAD / 2);
}

export function drawTimeline(canvas: HTMLCanvasElement, picture: Picture): void {
    const height = heightOfAll(picture.tracks);
    const context = prepare(canvas, picture.width, height);
    const colours = coloursOf(canvas);
    drawRuler(context, picture, height, colours);
    for (const place of placesOf(picture.tracks)) {
        drawTrack(context, picture, place, colours);
    }
    drawMarks(context, picture, height, colours);
    drawSelected(context, picture, height, colours);
}

function drawSelected(context: CanvasRenderingContext2D, picture: Picture, height: number, colours: Colours): void {
    const place = placeOf(picture.view, picture.width);
    context.fillStyle = colours.accent;
    for (const area of picture.areas) {
        const left = Math.max(-2, place(area.from));
        const right = Math.min(picture.width + 2, place(area.to));
        if (right >= left) {
            context.globalAlpha = 0.16;
            context.fillRect(left, 0, right - left, height);
            context.globalAlpha = 1;
            context.fillRect(left, 0, 1, height);
            context.fillRect(right, 0, 1, height);
        }
    }
}
