// Where a time lies on a canvas, and the marks of its ruler.
import { duration } from "../format";

export interface Window {
    from: number; // ns since the session's start
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

// ticksOf gives round times, about one in `room` pixels. Their labels count from the window's start
// when it is too narrow for labels from the session's start to differ.
export function ticksOf(view: Window, width: number, room = 110): Tick[] {
    const span = view.to - view.from;
    const wanted = span / Math.max(1, Math.floor(width / room));
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
