// Maps times to pixels, and computes the ticks of a ruler.
import { duration } from "../format";

export interface Window {
    from: number; // ns since the start of the session
    to: number;
}

export function placeOf(view: Window, width: number): (ns: number) => number {
    const factor = width / (view.to - view.from);
    return (ns) => (ns - view.from) * factor;
}

export interface Tick {
    at: number;
    label: string;
}

// Returns round times, about one per `tickWidth` pixels. If labels from the session's start would
// all look alike, labels count from the window's start.
export function ticksOf(view: Window, width: number, tickWidth = 110): Tick[] {
    const span = view.to - view.from;
    const wanted = span / Math.max(1, Math.floor(width / tickWidth));
    const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= wanted)!;
    const isNarrow = view.from / step > 900;
    const origin = isNarrow ? view.from : 0;
    const ticks: Tick[] = [];
    for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
        ticks.push({ at, label: `${isNarrow ? "+" : ""}${duration(at - origin)}` });
    }
    return ticks;
}
