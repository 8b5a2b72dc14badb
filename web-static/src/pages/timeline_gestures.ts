// The gestures of the mouse, a pen and fingers on the canvas of a timeline: a drag moves, a drag
// with Shift or on the ruler selects a time, a click selects a call, a double click, the wheel and
// two fingers zoom.
import { useRef } from "preact/hooks";
import type { Window } from "../canvas/scale";
import { setParameters } from "../router";
import { scrollLevels, setTop } from "./timeline_data";
import { type Hit, hitOf, levelBarAt, type Picture, rowAt, RULER } from "./timeline_draw";
import type { Show } from "./timeline_view";

const CLICK_PIXELS = 3; // a press that moves no farther is a click
const NOTCH_PIXELS = 300; // so much wheel doubles the window or halves it
const PINCH_PIXELS = 100; // the same for the pinch of a touchpad, which sends small steps
const WHEEL_MAX = 200; // the most pixels that one event counts
const WHEEL_LEVELS = 10; // rows that a notch of the wheel with Alt scrolls the levels of a track
const LINE_PIXELS = 33; // a line of a wheel that counts lines

interface Point {
    x: number;
    y: number;
}

// The state at the start of a press. A drag is measured from it.
interface Press extends Point {
    view: Window;
    scroll: number;
    selects: boolean;
    levels: ReturnType<typeof levelBarAt>; // the scroll bar for levels that is dragged
    hasMoved: boolean;
}

export interface Surface {
    canvas: { current: HTMLCanvasElement | null };
    box: { current: HTMLDivElement | null }; // scrolls the tracks
    picture: Picture;
    show: Show;
    setBand: (band: Window | null) => void; // the time that a drag selects so far
    setHit: (hit: Hit | null, event: PointerEvent) => void;
}

const lengthOf = (view: Window) => view.to - view.from;

function timeAt({ view, width }: Picture, x: number): number {
    return view.from + (x / width) * lengthOf(view);
}

// Returns the time between two places on the canvas.
function bandOf(picture: Picture, x: number, other: number): Window {
    const [from, to] = [timeAt(picture, x), timeAt(picture, other)].sort((a, b) => a - b);
    return { from: Math.max(0, Math.round(from!)), to: Math.round(to!) + 1 };
}

// Changes the length of the window by a factor. The time below `x` stays there.
function zoomAt({ picture, show }: Surface, x: number, factor: number): void {
    const time = timeAt(picture, x);
    show(time - (time - picture.view.from) * factor, lengthOf(picture.view) * factor);
}

// Zooms to a bar with an eighth of its length on each side, or to half the window if that is
// shorter. A double click thus never zooms out.
function zoomTo(surface: Surface, x: number, hit: Hit | null): void {
    const bar = hit?.bar;
    const length = bar ? (bar.right - bar.left) * 1.25 : Infinity;
    if (bar && length <= lengthOf(surface.picture.view) / 2) {
        surface.show(bar.left - length / 10, length);
    } else {
        zoomAt(surface, x, 1 / 2);
    }
}

// Moves the window so that the times which two fingers touched stay below the fingers' middle.
function pinch({ picture, show }: Surface, view: Window, before: readonly Point[], now: readonly Point[]): void {
    const apart = ([a, b]: readonly Point[]) => Math.max(10, Math.hypot(a!.x - b!.x, a!.y - b!.y));
    const middle = ([a, b]: readonly Point[]) => (a!.x + b!.x) / 2;
    const length = (lengthOf(view) * apart(before)) / apart(now);
    const time = timeAt({ ...picture, view }, middle(before));
    show(time - (middle(now) / picture.width) * length, length);
}

// Zooms. With Shift, it scrolls the tracks, with Alt the levels of one track. A sideways movement moves in time.
function onWheel(surface: Surface, event: WheelEvent): void {
    const { picture, show, box } = surface;
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1;
    event.preventDefault();
    const deep = event.altKey ? hitOf(picture, event.offsetX, event.offsetY)?.track : undefined;
    if (deep) {
        scrollLevels(deep, Math.sign(event.deltaY) * WHEEL_LEVELS);
    } else if (event.shiftKey) {
        box.current!.scrollTop += (event.deltaY || event.deltaX) * unit; // some browsers turn the axis with Shift
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        show(timeAt(picture, event.deltaX * unit), lengthOf(picture.view));
    } else {
        const pixels = Math.max(-WHEEL_MAX, Math.min(WHEEL_MAX, event.deltaY * unit));
        zoomAt(surface, event.offsetX, 2 ** (pixels / (event.ctrlKey || event.metaKey ? PINCH_PIXELS : NOTCH_PIXELS)));
    }
}

// Selects a time, or moves the window and scrolls, as far as the pointer has moved.
function drag(surface: Surface, start: Press, event: PointerEvent): void {
    const { picture, show, setBand, box } = surface;
    if (start.levels) {
        setTop(start.levels.track, rowAt(start.levels, event.offsetY));
        return;
    }
    start.hasMoved ||= Math.hypot(event.offsetX - start.x, event.offsetY - start.y) > CLICK_PIXELS;
    if (!start.hasMoved) {
        return;
    }
    if (start.selects) {
        setBand(bandOf(picture, start.x, event.offsetX));
        return;
    }
    if (event.pointerType !== "touch") {
        box.current!.scrollTop = start.scroll - (event.offsetY - start.y); // the browser itself scrolls for a finger
    }
    const length = lengthOf(start.view);
    show(start.view.from - ((event.offsetX - start.x) / picture.width) * length, length);
}

// The fingers that touch the canvas, and where the first two of them began.
class Fingers {
    private readonly places = new Map<number, Point>();
    private begin: { places: Point[]; view: Window } | null = null;

    get count(): number {
        return this.places.size;
    }

    put(event: PointerEvent, view: Window): void {
        this.places.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
        this.begin = this.count === 2 ? { places: [...this.places.values()], view } : null;
    }

    move(event: PointerEvent, surface: Surface): void {
        this.places.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
        if (this.begin) {
            pinch(surface, this.begin.view, this.begin.places, [...this.places.values()]);
        }
    }

    lift(event: PointerEvent): void {
        this.places.delete(event.pointerId);
        this.begin = null;
    }
}

// Returns the handlers of the canvas's events.
export function useGestures(surface: Surface) {
    const { canvas, picture, setBand, setHit } = surface;
    const press = useRef<Press | null>(null);
    const fingers = useRef(new Fingers()).current;
    const hitAt = (event: MouseEvent) => hitOf(picture, event.offsetX, event.offsetY);
    const end = (event: PointerEvent) => {
        const start = press.current;
        fingers.lift(event);
        press.current = null;
        setBand(null);
        return start;
    };
    return {
        onPointerDown: (event: PointerEvent) => {
            if (event.button !== 0) {
                return;
            }
            fingers.put(event, picture.view);
            canvas.current!.setPointerCapture(event.pointerId);
            const selects = event.shiftKey || event.offsetY < RULER;
            const levels = levelBarAt(picture, event.offsetX, event.offsetY);
            const start = { x: event.offsetX, y: event.offsetY, view: picture.view, levels };
            if (levels) {
                setTop(levels.track, rowAt(levels, event.offsetY));
            }
            press.current = fingers.count > 1 ? null : { ...start, scroll: picture.scroll, selects, hasMoved: false };
        },
        onPointerMove: (event: PointerEvent) => {
            if (fingers.count > 1) {
                fingers.move(event, surface);
            } else if (press.current) {
                drag(surface, press.current, event);
            } else if (fingers.count === 0) {
                setHit(hitAt(event), event);
            }
        },
        onPointerUp: (event: PointerEvent) => {
            const start = end(event);
            if (start?.hasMoved && start.selects) {
                const { from, to } = bandOf(picture, start.x, event.offsetX);
                setParameters({ area: `${from}-${to}`, call: "" });
            } else if (start && !start.hasMoved && !start.levels) {
                const hit = hitAt(event);
                setHit(hit, event);
                setParameters({ call: hit?.bar?.call ?? "" });
            }
        },
        onPointerCancel: end,
        onPointerLeave: (event: PointerEvent) => setHit(null, event),
        onDblClick: (event: MouseEvent) => zoomTo(surface, event.offsetX, hitAt(event)),
        onWheel: (event: WheelEvent) => onWheel(surface, event),
    };
}
