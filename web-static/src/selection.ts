// The selection: device, time, threads, mark and functions. It is part of the address. All panels
// of a session show only the selected calls.
import { computed } from "@preact/signals";
import type { Window } from "./canvas/scale";
import { route, setParameters } from "./router";

export interface Selection {
    device: string; // device_id; other devices' sessions show no calls
    area: Window | null;
    threads: string[]; // thread_id
    mark: string; // selects each time from the mark's begin to its end
    functions: string; // part of a function name; with * or ?, a pattern for the whole name
}

export const selectionNames = ["device", "area", "threads", "mark", "functions"] as const;

function readArea(text: string | null): Window | null {
    const ends = /^([0-9]{1,15})-([0-9]{1,15})$/.exec(text ?? "");
    const area = ends && { from: Number(ends[1]), to: Number(ends[2]) };
    return area && area.to > area.from ? area : null;
}

export function deviceOf(parameters: URLSearchParams): string {
    const id = parameters.get("device") ?? "";
    return /^[0-9]{1,15}$/.test(id) ? id : "";
}

export function readSelection(parameters: URLSearchParams): Selection {
    return {
        device: deviceOf(parameters),
        area: readArea(parameters.get("area")),
        threads: (parameters.get("threads") ?? "").split(",").filter((id) => /^[0-9]{1,15}$/.test(id)),
        mark: parameters.get("mark") ?? "",
        functions: parameters.get("functions") ?? "",
    };
}

export const selection = computed(() => readSelection(route.value.parameters));

// Returns the address of a view of a session, with the current selection.
export function addressOf(session: string, parameters: Record<string, string | number>): string {
    const address = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
        if (value !== "") {
            address.set(name, String(value));
        }
    }
    for (const name of selectionNames) {
        const isKept = name === "device" || route.value.session === session;
        const value = isKept ? route.value.parameters.get(name) : null;
        if (value) {
            address.set(name, value);
        }
    }
    return `/sessions/${session}?${address.toString()}`;
}

// Adds the selected device to an address.
export function onDevice(address: string): string {
    const device = selection.value.device;
    return device === "" ? address : `${address}${address.includes("?") ? "&" : "?"}device=${device}`;
}

// Restricts a set of sessions, given as text, to the selected device.
export function setOnDevice(set: string): string {
    const device = selection.value.device;
    return device === "" || set === "" ? set : set.split(",").map((group) => `${group}+device-id:${device}`).join(",");
}

export function clearSelection(): void {
    setParameters(Object.fromEntries(selectionNames.map((name) => [name, ""])));
}

// True if the selection leaves out calls by time, thread or mark. Sums are then made from single
// calls.
export function isPart({ area, threads, mark }: Selection): boolean {
    return area !== null || threads.length > 0 || mark !== "";
}

// The parameters of questions about a selection. Times are half open: [from, to).
export type SelectedValues = {
    session: string;
    from?: number;
    to?: number;
    threads?: string; // JSON array of thread_id
    mark?: string;
    functions?: string;
};

export function valuesOf(session: string, chosen: Selection): SelectedValues {
    return {
        session,
        ...(chosen.area ? { from: chosen.area.from, to: chosen.area.to } : {}),
        ...(chosen.threads.length > 0 ? { threads: `[${chosen.threads.join(",")}]` } : {}),
        ...(chosen.mark ? { mark: chosen.mark } : {}),
        ...(chosen.functions ? { functions: chosen.functions } : {}),
    };
}

export const PART_MS = 20000; // limit for questions that read single calls, which takes longer than stored sums
