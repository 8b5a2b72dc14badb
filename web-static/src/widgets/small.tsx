// Small components that several pages use.
import type { ComponentChildren } from "preact";
import { count, counted, estimated, estimateHint, percent } from "../format";

const stateMarks: Record<string, string> = {
    recording: "●",
    completed: "✓",
    interrupted: "◼",
    crashed: "✕",
    killed: "✕",
    lost: "?",
    "lost contact": "?",
};

export function StatePill({ state }: { state: string }) {
    return (
        <span class={`pill state-${state}`}>
            <span aria-hidden="true">{stateMarks[state] ?? "·"}</span> {state}
        </span>
    );
}

// Marks calls that were open when recording ended. Their times are counted up to that moment.
export function OpenTag({ calls = 0 }: { calls?: number }) {
    return (
        <span class="tag" title="open when recording ended: counted up to that end">
            {calls > 0 ? `${count(calls)} open` : "open"}
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

// A duration, with ~ if it is an estimate. `error` is the standard error of a total, in ns.
export function Time({ ns, isEstimate, error = null }: {
    ns: number | null | undefined;
    isEstimate: boolean | number;
    error?: number | null;
}) {
    const text = estimated(ns, isEstimate);
    return text.startsWith("~") ? <span title={estimateHint(error)}>{text}</span> : <>{text}</>;
}

// Explains ~ on the page of a session that has estimates.
export function EstimatesNote({ untimed, calls }: { untimed: number; calls: number }) {
    return untimed === 0 ? null : (
        <p class="banner neutral" role="note">
            <strong>~ marks estimates.</strong> {counted(untimed, "call")} of {count(calls)}{" "}
            {untimed === 1 ? "was" : "were"} counted without a clock. Order, counts and callers are exact; times are
            estimates from the calls that were timed, and so is the self time of their callers.
        </p>
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

// One condition of what a page shows, with a button to remove it.
export function Chip({ label, hint, onRemove }: { label: string; hint?: string; onRemove: () => void }) {
    return (
        <span class="chip" title={hint}>
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

// A menu that adds one more condition.
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
