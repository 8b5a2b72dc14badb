// A scrolling box that contains only the visible rows. Every row has the same height.
import type { RefObject } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export const ROW_HEIGHT = 32;
const HEADER_HEIGHT = 36;
const EXTRA_ROWS = 8;

export interface RowWindow {
    box: RefObject<HTMLDivElement | null>;
    first: number; // first row to draw
    last: number; // one past the last row to draw
    pageRows: number;
    onScroll: () => void;
    reveal: (row: number) => void;
}

// Returns which of `rowCount` rows are visible in the box.
export function useRowWindow(rowCount: number): RowWindow {
    const box = useRef<HTMLDivElement>(null);
    const [top, setTop] = useState(0);
    const [height, setHeight] = useState(600);
    const onScroll = useCallback(() => setTop(box.current?.scrollTop ?? 0), []);

    useLayoutEffect(() => {
        const element = box.current;
        if (!element) {
            return undefined;
        }
        const observer = new ResizeObserver(() => setHeight(element.clientHeight));
        observer.observe(element);
        return () => observer.disconnect();
    }, []);
    useEffect(onScroll, [rowCount, onScroll]);

    const pageRows = Math.max(1, Math.floor((height - HEADER_HEIGHT) / ROW_HEIGHT));
    const reveal = useCallback((row: number) => {
        const element = box.current;
        if (!element) {
            return;
        }
        const start = row * ROW_HEIGHT;
        const viewHeight = element.clientHeight - HEADER_HEIGHT;
        if (start < element.scrollTop) {
            element.scrollTop = start;
        } else if (start + ROW_HEIGHT > element.scrollTop + viewHeight) {
            element.scrollTop = start + ROW_HEIGHT - viewHeight;
        }
        setTop(element.scrollTop);
    }, []);

    const seen = Math.floor(top / ROW_HEIGHT);
    return {
        box,
        first: Math.max(0, seen - EXTRA_ROWS),
        last: Math.min(rowCount, seen + pageRows + EXTRA_ROWS + 1),
        pageRows,
        onScroll,
        reveal,
    };
}

// Returns the row that a key moves to, or null if the key does not move.
export function rowAfterKey(
    key: string,
    row: number,
    rowCount: number,
    pageRows: number,
): number | null {
    const steps: Record<string, number> = {
        ArrowDown: row + 1,
        ArrowUp: row - 1,
        PageDown: row + pageRows,
        PageUp: row - pageRows,
        Home: 0,
        End: rowCount - 1,
    };
    const next = steps[key];
    return next === undefined ? null : Math.max(0, Math.min(rowCount - 1, next));
}
