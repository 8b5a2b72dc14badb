// Draws the tracks of a timeline.
import type { GapRow, TimelineStep } from "../api";

export const TRACK_HEIGHT = 44;
const TRACK_GAP = 6;

export interface Window {
    from: number; // ns since the session's start
    to: number;
}

interface Picture {
    steps: readonly TimelineStep[];
    gaps: readonly GapRow[];
    streams: readonly string[];
    view: Window;
    chosen: TimelineStep | null;
    width: number;
}

export function streamName(step: TimelineStep): string {
    return (
        step.thread_name ||
        (step.thread_number === null ? `stream ${step.stream_id}` : `thread ${step.thread_number}`)
    );
}

export function trackOf(y: number): number {
    return Math.floor(y / TRACK_HEIGHT);
}

// The same function has the same colour in every session.
function colourOf(name: string | null): string {
    let hash = 0;
    for (const letter of name ?? "") {
        hash = (hash * 31 + letter.codePointAt(0)!) >>> 0;
    }
    return name === null ? "rgb(128 132 150 / 60%)" : `hsl(${hash % 360} 55% 55%)`;
}

function hatch(context: CanvasRenderingContext2D, x: number, y: number, width: number): void {
    context.save();
    context.beginPath();
    context.rect(x, y, width, TRACK_HEIGHT - TRACK_GAP);
    context.clip();
    context.strokeStyle = "#c2410c";
    for (let at = x - TRACK_HEIGHT; at < x + width; at += 5) {
        context.moveTo(at, y + TRACK_HEIGHT);
        context.lineTo(at + TRACK_HEIGHT, y);
    }
    context.stroke();
    context.restore();
}

// The thread of each track, on a plate of its own: bars have any colour.
function writeNames(context: CanvasRenderingContext2D, { steps, streams }: Picture): void {
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "top";
    streams.forEach((stream, track) => {
        const name = streamName(steps.find((step) => step.stream_id === stream)!);
        context.fillStyle = "rgb(255 255 255 / 85%)";
        context.fillRect(2, track * TRACK_HEIGHT + 2, context.measureText(name).width + 8, 18);
        context.fillStyle = "#1a1d2b";
        context.fillText(name, 6, track * TRACK_HEIGHT + 5);
    });
}

export function drawTimeline(canvas: HTMLCanvasElement, picture: Picture): void {
    const { steps, gaps, streams, view, width } = picture;
    const scale = window.devicePixelRatio || 1;
    const context = canvas.getContext("2d")!;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(streams.length * TRACK_HEIGHT * scale);
    context.scale(scale, scale);
    const deepest = Math.max(1, ...steps.map((step) => step.max_depth));
    const place = (ns: number) => ((ns - view.from) / (view.to - view.from)) * width;
    const full = TRACK_HEIGHT - TRACK_GAP;
    for (const step of steps) {
        const height = Math.max(3, (step.max_depth / deepest) * full);
        const bottom = streams.indexOf(step.stream_id) * TRACK_HEIGHT + full;
        const left = place(step.start_ns);
        context.fillStyle = colourOf(step.function);
        context.fillRect(left, bottom - height, Math.max(1, place(step.end_ns) - left), height);
    }
    for (const gap of gaps) {
        const step = steps.find((each) => each.thread_number === gap.thread_number);
        const left = Math.max(0, place(gap.start_ns));
        const right = Math.min(width, place(gap.end_ns));
        if (step && right >= left) {
            const top = streams.indexOf(step.stream_id) * TRACK_HEIGHT;
            hatch(context, left, top, Math.max(3, right - left));
        }
    }
    writeNames(context, picture);
    const { chosen } = picture;
    if (chosen && streams.includes(chosen.stream_id)) {
        const left = place(chosen.start_ns);
        context.strokeStyle = getComputedStyle(canvas).color;
        context.lineWidth = 2;
        const top = streams.indexOf(chosen.stream_id) * TRACK_HEIGHT + 1;
        context.strokeRect(left, top, Math.max(2, place(chosen.end_ns) - left), full - 2);
    }
}
