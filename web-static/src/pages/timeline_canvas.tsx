// The canvas of a timeline: draws the tracks, and moves, zooms and selects by gestures and keys.
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Window } from "../canvas/scale";
import { takeKeys } from "../keys";
import { route, setParameters } from "../router";
import { selection } from "../selection";
import { themeKey } from "../store";
import type { GapMark, Mark, Track } from "./timeline_data";
import { type Colours, coloursOf, drawTimeline, heightOfAll, keptOf, type Picture } from "./timeline_draw";
import { useGestures } from "./timeline_gestures";
import { handleTimelineKey } from "./timeline_keys";
import { type Hovered, HoveredLine, Tip } from "./timeline_tip";
import type { Show } from "./timeline_view";

interface CanvasProperties {
    bounds: Window;
    view: Window;
    show: Show;
    tracks: readonly Track[]; // pinned tracks come first
    pinned: number; // number of pinned tracks
    gaps: readonly GapMark[];
    marks: readonly Mark[];
    selected: readonly Window[];
    width: number;
    setWidth: (width: number) => void;
    isCurrent: boolean;
}

interface Seen {
    height: number; // height of the visible part of the tracks
    scroll: number; // scroll offset from the top
}

// Returns the visible part of the tracks. The canvas has only this height, however many tracks
// there are.
function useSeen(box: { current: HTMLDivElement | null }, setWidth: (width: number) => void): Seen {
    const [seen, setSeen] = useState<Seen>({ height: 0, scroll: 0 });
    useEffect(() => {
        const tracks = box.current!;
        const measure = () => {
            setWidth(Math.max(50, tracks.clientWidth));
            setSeen({ height: tracks.clientHeight, scroll: tracks.scrollTop });
        };
        measure();
        const observer = new ResizeObserver(measure);
        observer.observe(tracks);
        tracks.addEventListener("scroll", measure, { passive: true });
        return () => observer.disconnect();
    }, []);
    return seen;
}

// Draws a picture in the next frame. Colours are read again only when the theme changes.
function useDrawn(canvas: { current: HTMLCanvasElement | null }, picture: Picture): void {
    const known = useRef<{ themeKey: string; colours: Colours } | null>(null);
    const now = themeKey.value;
    useLayoutEffect(() => {
        const frame = requestAnimationFrame(() => {
            if (canvas.current && picture.height > 0) {
                known.current = known.current?.themeKey === now ? known.current : { themeKey: now, colours: coloursOf(canvas.current) };
                drawTimeline(canvas.current, picture, known.current.colours);
            }
        });
        return () => cancelAnimationFrame(frame);
    });
}

export function TimelineCanvas(properties: CanvasProperties) {
    const { bounds, view, tracks, gaps, marks, selected, width, setWidth, isCurrent } = properties;
    const canvas = useRef<HTMLCanvasElement>(null);
    const box = useRef<HTMLDivElement>(null);
    const [band, setBand] = useState<Window | null>(null);
    const hovered = useSignal<Hovered | null>(null);
    const { height, scroll } = useSeen(box, setWidth);
    const pinned = keptOf(tracks, properties.pinned, height);
    const parameters = route.value.parameters;
    const areas = band ? [band] : selected;
    const call = parameters.get("call");
    const chosen = call
        ? (tracks.flatMap((track) => track.bars).find((bar) => bar.call === call && !bar.count) ?? null)
        : null;
    const search = parameters.get("q") || selection.value.functions.replace(/^\*|\*$/g, "");
    const picture: Picture = { tracks, pinned, gaps, marks, view, areas, chosen, search, width, height, scroll };
    useDrawn(canvas, picture);
    const show: Show = (from, length) => {
        hovered.value = null; // another call comes below the pointer
        properties.show(from, length);
    };
    const gestures = useGestures({
        ...{ canvas, box, picture, show, setBand },
        setHit: (hit, event) => (hovered.value = hit && { hit, x: event.clientX, y: event.clientY }),
    });
    const clear = () => {
        hovered.value = null;
        setParameters({ area: "", call: "" });
    };
    const onKey = useRef<(event: KeyboardEvent) => boolean>(() => false);
    onKey.current = (event) => handleTimelineKey(event, { bounds, picture, show, box, clear });
    useEffect(() => takeKeys((event) => onKey.current(event)), []);
    return (
        <div
            class="timeline card"
            tabIndex={0}
            role="group"
            aria-label="Timeline"
            data-from={view.from}
            data-to={view.to}
            data-selected={areas.length}
        >
            <div class="tracks" ref={box} tabIndex={0} role="group" aria-label="Tracks">
                <div style={{ height: `${heightOfAll(tracks)}px` }}>
                    <canvas
                        ref={canvas}
                        aria-hidden="true"
                        class={isCurrent ? "" : "stale"}
                        style={{ height: `${height}px` }}
                        {...gestures}
                    />
                </div>
            </div>
            <HoveredLine hovered={hovered} view={view} />
            <Tip hovered={hovered} />
        </div>
    );
}
