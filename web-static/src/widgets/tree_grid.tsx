// A tree with columns, after the ARIA treegrid pattern: it is one tab stop, and arrow keys move
// between its rows.
import type { ComponentChildren } from "preact";
import type { TreeRow } from "../pages/tree_model";
import { ROW_HEIGHT, rowAfterKey, useRowWindow } from "./window";
import { useEffect } from "preact/hooks";

export interface TreeColumn {
    key: string;
    title: string;
    hint?: string;
    className: string;
    cell: (row: TreeRow) => ComponentChildren;
}

interface Properties {
    label: string;
    columns: readonly TreeColumn[];
    rows: readonly TreeRow[];
    selected: string;
    className: string;
    onSelect: (key: string) => void;
    onToggle: (row: TreeRow, open: boolean) => void;
    onActivate: (row: TreeRow) => void;
    onHottest: (row: TreeRow) => void;
}

function isExpandable(row: TreeRow): boolean {
    return row.node !== null && row.node.child_count > 0;
}

function handleTreeKey(tree: Properties, at: number, key: string): boolean {
    const row = tree.rows[at];
    if (!row) {
        return false;
    }
    if (key === "ArrowRight" && isExpandable(row)) {
        if (!row.open) {
            tree.onToggle(row, true);
        } else {
            tree.onSelect(tree.rows[at + 1]?.key ?? row.key);
        }
    } else if (key === "ArrowLeft" && row.open) {
        tree.onToggle(row, false);
    } else if (key === "ArrowLeft" && row.parent !== "") {
        tree.onSelect(row.parent);
    } else if (key === "Enter" || key === " ") {
        tree.onActivate(row);
    } else if (key === "h") {
        tree.onHottest(row);
    } else {
        return key === "ArrowRight" || key === "ArrowLeft";
    }
    return true;
}

function Row({ tree, row, index, at }: { tree: Properties; row: TreeRow; index: number; at: number }) {
    return (
        <div
            id={`node-${row.key}`}
            role="row"
            aria-level={row.level}
            aria-posinset={row.position}
            aria-setsize={row.setSize}
            aria-rowindex={index + 2}
            aria-selected={index === at}
            {...(isExpandable(row) ? { "aria-expanded": row.open } : {})}
            class={`row ${index === at ? "selected" : ""} ${row.node ? "" : "more"}`}
            style={{ transform: `translateY(${index * ROW_HEIGHT}px)` }}
            onClick={() => {
                tree.onSelect(row.key);
                if (!row.node) {
                    tree.onActivate(row);
                }
            }}
            onDblClick={() => row.node && tree.onActivate(row)}
        >
            {tree.columns.map((column) => (
                <div role="gridcell" class={`cell ${column.className}`} key={column.key}>
                    {column.cell(row)}
                </div>
            ))}
        </div>
    );
}

export function TreeGrid(tree: Properties) {
    const view = useRowWindow(tree.rows.length);
    const found = tree.rows.findIndex((row) => row.key === tree.selected);
    const at = Math.max(0, found);
    useEffect(() => view.reveal(at), [tree.selected, at]);

    const onKeyDown = (event: KeyboardEvent) => {
        if (event.ctrlKey || event.metaKey || event.altKey) {
            return;
        }
        const next = rowAfterKey(event.key, at, tree.rows.length, view.pageRows);
        if (next !== null) {
            tree.onSelect(tree.rows[next]?.key ?? "");
        }
        if (next !== null || handleTreeKey(tree, at, event.key)) {
            event.preventDefault();
        }
    };
    return (
        <div
            ref={view.box}
            class={`grid ${tree.className}`}
            role="treegrid"
            aria-label={tree.label}
            aria-rowcount={tree.rows.length + 1}
            aria-activedescendant={tree.rows[at] ? `node-${tree.rows[at].key}` : undefined}
            tabIndex={0}
            onScroll={view.onScroll}
            onKeyDown={onKeyDown}
        >
            <div role="row" class="row head" aria-rowindex={1}>
                {tree.columns.map((column) => (
                    <div role="columnheader" class={`cell ${column.className}`} key={column.key}>
                        <span title={column.hint}>{column.title}</span>
                    </div>
                ))}
            </div>
            <div
                class="rows"
                role="rowgroup"
                style={{ height: `${tree.rows.length * ROW_HEIGHT}px` }}
            >
                {tree.rows.slice(view.first, view.last).map((row, offset) => (
                    <Row key={row.key} tree={tree} row={row} index={view.first + offset} at={at} />
                ))}
            </div>
        </div>
    );
}
