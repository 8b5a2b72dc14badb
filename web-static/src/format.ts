// Formats numbers for readers, without Intl. The first use of Intl loads tables for all languages,
// which takes longer than drawing the first page.

const units: readonly (readonly [number, string])[] = [
    [3600e9, "h"],
    [60e9, "min"],
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
];

// Formats a duration with three significant digits: "1.24 ms".
export function duration(ns: number | null | undefined): string {
    if (ns === null || ns === undefined) {
        return "–";
    }
    for (const [size, unit] of units) {
        if (ns >= size) {
            const value = ns / size;
            return `${value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)} ${unit}`;
        }
    }
    return `${Math.round(ns)} ns`;
}

// Formats a duration, with ~ in front if it is an estimate.
export function estimated(ns: number | null | undefined, isEstimate: boolean | number): string {
    return `${isEstimate && ns !== null && ns !== undefined ? "~" : ""}${duration(ns)}`;
}

// Explains ~ in front of a time, with the standard error of a total if it is known.
export function estimateHint(errorNs: number | null = null): string {
    const error = errorNs === null ? "" : `; total ± ${duration(errorNs)} (standard error)`;
    return `estimate: calls counted without a clock${error}`;
}

// Formats a number with thousands separators and at most three decimals.
export function count(value: number): string {
    const [whole, part] = String(Math.round(value * 1000) / 1000).split(".");
    const parted = whole!.replace(/\B(?=(\d{3})+$)/g, ",");
    return part ? `${parted}.${part}` : parted;
}

// Formats a number of things: "1 call", "2 calls", "0 processes". The rules are those of
// sj_counted_text.
export function counted(value: number, noun: string): string {
    const plural = /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : /(s|x|ch)$/.test(noun) ? `${noun}es` : `${noun}s`;
    return `${count(value)} ${value === 1 ? noun : plural}`;
}

// Formats a count of any size: "9,876", "12.3K", "1.2B".
export function compact(value: number): string {
    if (value < 10000) {
        return count(value);
    }
    for (const [size, unit] of [[1e3, "K"], [1e6, "M"], [1e9, "B"]] as const) {
        const tenths = Math.round((value * 10) / size);
        if (tenths < 10000) {
            return `${tenths / 10}${unit}`;
        }
    }
    return `${count(Math.round((value * 10) / 1e12) / 10)}T`;
}

export function bytes(value: number): string {
    return value < 1024
        ? `${value} B`
        : value < 1 << 20
          ? `${(value / 1024).toFixed(1)} KiB`
          : value < 1 << 30
            ? `${(value / (1 << 20)).toFixed(1)} MiB`
            : `${(value / 2 ** 30).toFixed(2)} GiB`;
}

export function percent(part: number, whole_: number): string {
    if (whole_ <= 0) {
        return "–";
    }
    const share = (100 * part) / whole_;
    return share > 0 && share < 0.1 ? "<0.1 %" : `${share.toFixed(1)} %`;
}

// Formats how B compares with A: "+12.3 %", "2.4 times".
export function change(ratio: number | null): string {
    if (ratio === null) {
        return "–";
    }
    if (ratio >= 2) {
        return `${ratio.toFixed(ratio < 10 ? 1 : 0)} times`;
    }
    const more = (ratio - 1) * 100;
    return `${more > 0 ? "+" : more < 0 ? "−" : ""}${Math.abs(more).toFixed(1)} %`;
}

// Formats how a time or a number changed. Returns "new" if it was 0 before, because no ratio exists
// then.
export function changeOf(row: { ratio: number | null; compared_a: number; compared_b: number }): string {
    return row.ratio === null && row.compared_a === 0 && row.compared_b > 0 ? "new" : change(row.ratio);
}

export function fileName(path: string): string {
    return path.slice(path.lastIndexOf("/") + 1) || path;
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// Formats a time by this browser's clock: "26 Nov 2026, 16:42:25".
export function dateTime(realtimeNs: string): string {
    const at = new Date(Number(BigInt(realtimeNs) / 1000000n));
    const two = (value: number) => String(value).padStart(2, "0");
    const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
    return `${at.getDate()} ${months[at.getMonth()]} ${at.getFullYear()}, ${time}`;
}

const before = (value: number, unit: string) => `${counted(Math.round(value), unit)} ago`;

// Formats how long ago a time was: "3 minutes ago".
export function ago(realtimeNs: string, now = Date.now()): string {
    const seconds = (now - Number(BigInt(realtimeNs) / 1000000n)) / 1000;
    if (seconds < 60) {
        return seconds < 10 ? "just now" : before(seconds, "second");
    }
    if (seconds < 3600) {
        return before(seconds / 60, "minute");
    }
    if (seconds < 86400) {
        return before(seconds / 3600, "hour");
    }
    return seconds < 1.5 * 86400 ? "yesterday" : before(seconds / 86400, "day");
}
