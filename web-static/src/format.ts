// Numbers as people read them.

const units: readonly (readonly [number, string])[] = [
    [3600e9, "h"],
    [60e9, "min"],
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
];

// duration gives three significant digits: "1.24 ms".
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

const whole = new Intl.NumberFormat("en");

export function count(value: number): string {
    return whole.format(value);
}

// counted is a number of things: "1 call", "2 calls".
export function counted(value: number, noun: string): string {
    return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

const compactFormat = new Intl.NumberFormat("en", {
    notation: "compact",
    maximumFractionDigits: 1,
});

export function compact(value: number): string {
    return value < 10000 ? whole.format(value) : compactFormat.format(value);
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

// change says how b compares with a: "+12.3 %", "2.4 times".
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

export function fileName(path: string): string {
    return path.slice(path.lastIndexOf("/") + 1) || path;
}

const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function dateTime(realtimeNs: string): string {
    return clock.format(new Date(Number(BigInt(realtimeNs) / 1000000n)));
}

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

// ago says how long ago a moment was: "3 minutes ago".
export function ago(realtimeNs: string, now = Date.now()): string {
    const seconds = (now - Number(BigInt(realtimeNs) / 1000000n)) / 1000;
    if (seconds < 60) {
        return seconds < 10 ? "just now" : relative.format(-Math.round(seconds), "second");
    }
    if (seconds < 3600) {
        return relative.format(-Math.round(seconds / 60), "minute");
    }
    if (seconds < 86400) {
        return relative.format(-Math.round(seconds / 3600), "hour");
    }
    return relative.format(-Math.round(seconds / 86400), "day");
}
