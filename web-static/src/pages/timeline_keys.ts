// The keys of a timeline, which work wherever the focus is. Letters are matched by their position
// on the keyboard.
import type { Window } from "../canvas/scale";
import { setParameters } from "../router";
import { scrollLevels } from "./timeline_data";
import type { Picture } from "./timeline_draw";
import type { Show } from "./timeline_view";

const SCROLLED_PIXELS = 90; // by an arrow key

export interface Keyed {
    bounds: Window;
    picture: Picture;
    show: Show;
    box: { current: HTMLDivElement | null }; // scrolls the tracks
    clear: () => void; // clears what is selected and hovered
}

// Shows the selected call, else the selected time, else everything.
function fit({ bounds, picture, show }: Keyed): void {
    const [area] = picture.areas;
    if (picture.chosen) {
        const length = Math.max(8, picture.chosen.right - picture.chosen.left);
        show(picture.chosen.left - length / 8, length * 1.25);
    } else {
        const { from, to } = area ?? bounds;
        show(from, to - from);
    }
}

// Selects the time of the selected call, else the time of the window.
function selectTime({ picture }: Keyed): void {
    const { chosen, view } = picture;
    const [from, to] = chosen ? [chosen.left, chosen.right] : [view.from, view.to];
    setParameters({ area: `${Math.max(0, Math.round(from))}-${Math.round(to) + (chosen ? 1 : 0)}` });
}

// Scrolls the levels of each deep track by half of its rows.
function scrollDeep({ picture }: Keyed, direction: number): void {
    const deep = picture.tracks.filter((track) => track.levels > track.rows || track.top > 0);
    deep.forEach((track) => scrollLevels(track, (direction * track.rows) / 2));
}

// Returns what a key does, or null. Arrows and Home act only if nothing else has the focus, because
// tables and lists use them.
function actionOf(event: KeyboardEvent, isFree: boolean, keyed: Keyed): (() => void) | null {
    const { bounds, picture, show, box } = keyed;
    const { from, to } = picture.view;
    const span = to - from;
    const move = (share: number) => () => show(from + span * share, span);
    const letters: Record<string, () => void> = {
        KeyW: () => show(from + span / 4, span / 2),
        KeyS: () => show(from - span / 2, span * 2),
        KeyA: move(-1 / 4),
        KeyD: move(1 / 4),
        KeyF: () => fit(keyed),
        KeyR: () => selectTime(keyed),
        BracketLeft: () => scrollDeep(keyed, -1),
        BracketRight: () => scrollDeep(keyed, 1),
        Escape: keyed.clear,
    };
    const others: Record<string, () => void> = {
        ArrowLeft: move(-1 / 4),
        ArrowRight: move(1 / 4),
        ArrowUp: () => (box.current!.scrollTop -= SCROLLED_PIXELS),
        ArrowDown: () => (box.current!.scrollTop += SCROLLED_PIXELS),
        Home: () => show(bounds.from, bounds.to - bounds.from),
    };
    return letters[event.code] ?? (isFree ? others[event.code] : null) ?? null;
}

// Handles a key. Returns false if the key is not one of the timeline's.
export function handleTimelineKey(event: KeyboardEvent, keyed: Keyed): boolean {
    const target = event.target instanceof Element ? event.target : document.body;
    const isFree = target === document.body || target.id === "main" || target.closest(".timeline") !== null;
    const action = actionOf(event, isFree, keyed);
    action?.();
    return action !== null;
}
