// A table of any length. Its rows are loaded in pages when they become visible.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { ROW_HEIGHT, rowAfterKey, useRowWindow } from "./window";

export interface Column<Row> {
    key: string;
    title: string;
    hint?: string;
    className: string;
    cell: (row: Row) => ComponentChildren;
    sortable: boolean;
}

interface Properties<Row> {
    label: string;
    columns: readonly Column<Row>[];
    rowCount: number;
    rowAt: (index: number) => Row | undefined; // undefined while the row is loading
    question: string; // key of the query; when it changes, the first row is selected
    isStale?: boolean; // true while the rows belong to another query, or none are loaded
    sort: string;
    descending: boolean;
    onSort: (key: string) => void;
    onOpen: (row: Row) => void;
    noteOf: (row: Row) => string; // text about the selected row, shown below the table; "" for none
    className: string;
}

function HeaderCell<Row>({ column, table }: { column: Column<Row>; table: Properties<Row> }) {
    const sorted = column.key === table.sort;
    const order = sorted ? (table.descending ? "descending" : "ascending") : undefined;
    return (
        <div
            role="columnheader"
            class={`cell ${column.className}`}
            {...(order ? { "aria-sort": order } : {})}
        >
            {column.sortable ? (
                <button
                    type="button"
                    class="sort"
                    title={column.hint}
                    onClick={() => table.onSort(column.key)}
                >
                    {column.title}
                    <span aria-hidden="true">{sorted ? (table.descending ? " ↓" : " ↑") : ""}</span>
                </button>
            ) : (
                <span title={column.hint}>{column.title}</span>
            )}
        </div>
    );
}

export function VirtualTable<Row>(table: Properties<Row>) {
    const view = useRowWindow(table.rowCount);
    const [selected, setSelected] = useState({ question: table.question, index: 0 });
    const select = (index: number) => setSelected({ question: table.question, index });
    const [isEntered, setEntered] = useState(false);
    const at = selected.question === table.question ? Math.min(selected.index, Math.max(0, table.rowCount - 1)) : 0;
    const isStale = table.isStale ?? false;
    useEffect(() => view.reveal(at), [table.question]);
    // Enter opens a row of the current query: it waits until that row is loaded.
    useEffect(() => {
        if (!isEntered || isStale) {
            return;
        }
        const row = table.rowAt(at);
        if (row) {
            table.onOpen(row);
        }
        setEntered(row === undefined && table.rowCount > 0); // still loading
    });

    const onKeyDown = (event: KeyboardEvent) => {
        if (event.target !== event.currentTarget) {
            return;
        }
        setEntered(event.key === "Enter");
        const next = rowAfterKey(event.key, at, table.rowCount, view.pageRows);
        if (next !== null) {
            event.preventDefault();
            select(next);
            view.reveal(next);
        }
    };

    const selectedRow = !isStale && at >= view.first && at < view.last ? table.rowAt(at) : undefined;
    const note = selectedRow ? table.noteOf(selectedRow) : "";
    const noteId = useId();
    const rows = [];
    for (let index = view.first; index < view.last; index++) {
        const row = table.rowAt(index);
        rows.push(
            <div
                key={index}
                id={`row-${index}`}
                role="row"
                aria-rowindex={index + 2}
                aria-selected={index === at}
                class={`row ${index === at ? "selected" : ""}`}
                style={{ transform: `translateY(${index * ROW_HEIGHT}px)` }}
                onClick={() => select(index)}
                onDblClick={() => row && table.onOpen(row)}
            >
                {table.columns.map((column) => (
                    <div role="gridcell" class={`cell ${column.className}`} key={column.key}>
                        {row ? column.cell(row) : <span class="loading">·</span>}
                    </div>
                ))}
            </div>,
        );
    }
    return (
        <>
            <div
                ref={view.box}
                class={`grid ${table.className} ${isStale ? "stale" : ""}`}
                role="grid"
                aria-label={table.label}
                aria-busy={isStale}
                aria-rowcount={table.rowCount + 1}
                aria-describedby={note ? noteId : undefined}
                aria-activedescendant={table.rowCount > 0 ? `row-${at}` : undefined}
                tabIndex={0}
                onScroll={view.onScroll}
                onKeyDown={onKeyDown}
                onBlur={() => setEntered(false)}
            >
                <div role="row" class="row head" aria-rowindex={1}>
                    {table.columns.map((column) => (
                        <HeaderCell key={column.key} column={column} table={table} />
                    ))}
                </div>
                <div
                    class="rows"
                    role="rowgroup"
                    style={{ height: `${table.rowCount * ROW_HEIGHT}px` }}
                >
                    {rows}
                </div>
            </div>
            {note ? (
                <p id={noteId} class="dim">
                    {note}
                </p>
            ) : null}
        </>
    );
}
