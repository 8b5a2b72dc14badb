// Small parts that several pages show.
import type { ComponentChildren } from "preact";
import { percent } from "../format";

const stateMarks: Record<string, string> = {
    recording: "●",
    completed: "✓",
    interrupted: "◼",
    crashed: "✕",
    killed: "✕",
    lost: "?",
};

export function StatePill({ state }: { state: string }) {
    return (
        <span class={`pill state-${state}`}>
            <span aria-hidden="true">{stateMarks[state] ?? "·"}</span> {state}
        </span>
    );
}

export function Bar({ part, whole }: { part: number; whole: number }) {
    const share = whole > 0 ? Math.min(100, (100 * part) / whole) : 0;
    return (
        <span class="bar" aria-hidden="true" title={percent(part, whole)}>
            <span style={{ width: `${share.toFixed(2)}%` }} />
        </span>
    );
}

export function Tile({ label, children, hint }: TileProps) {
    return (
        <div class="tile" title={hint}>
            <dt>{label}</dt>
            <dd>{children}</dd>
        </div>
    );
}

interface TileProps {
    label: string;
    children: ComponentChildren;
    hint?: string;
}

export function Problem({ message }: { message: string }) {
    return (
        <p class="banner bad" role="alert">
            {message}
        </p>
    );
}

// Chip is one condition of what a page shows, and the way to be rid of it.
export function Chip({ label, onRemove }: { label: string; onRemove: () => void }) {
    return (
        <span class="chip">
            {label}
            <button type="button" aria-label={`Remove: ${label}`} onClick={onRemove}>
                ×
            </button>
        </span>
    );
}

interface Choice {
    value: string;
    text: string;
}

// Adder adds one more condition.
export function Adder({ label, choices, onAdd }: { label: string; choices: Choice[]; onAdd: (value: string) => void }) {
    if (choices.length === 0) {
        return null;
    }
    return (
        <select
            class="adder"
            aria-label={`Select a ${label}`}
            value=""
            onChange={(event) => onAdd(event.currentTarget.value)}
        >
            <option value="">{`+ ${label}`}</option>
            {choices.map(({ value, text }) => (
                <option key={value} value={value}>
                    {text}
                </option>
            ))}
        </select>
    );
}
