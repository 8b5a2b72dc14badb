// The selection: device, time, threads, mark and functions. It is part of the address. All panels
// of a session show only the selected calls.
import { computed } from "@preact/signals";
import type { Values } from "./answers";
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

// Returns the parameters of the SQL below. Times are half open: [from, to).
export function valuesOf(session: string, chosen: Selection): Values {
    return {
        session,
        ...(chosen.area ? { from: chosen.area.from, to: chosen.area.to } : {}),
        ...(chosen.mark ? { mark: chosen.mark } : {}),
        ...(chosen.functions ? { functions: chosen.functions } : {}),
    };
}

// The times between a mark's begin and its end. Overlapping times are merged.
const MARKED = `begun(a, z) AS (SELECT b.at_ns, coalesce((SELECT min(e.at_ns) FROM marks e
      WHERE e.session_id = b.session_id AND e.name = b.name AND e.is_end AND e.at_ns >= b.at_ns), 1 << 60)
    FROM marks b WHERE b.session_id = :session AND b.name = :mark AND NOT b.is_end),
  split AS (SELECT a, z, a > coalesce(max(z) OVER (ORDER BY a, z ROWS BETWEEN UNBOUNDED PRECEDING
      AND 1 PRECEDING), -1) AS is_new FROM begun),
  numbered AS (SELECT a, z, sum(is_new) OVER (ORDER BY a, z ROWS UNBOUNDED PRECEDING) AS island FROM split),
  spans AS (SELECT min(a) AS a, max(z) AS z FROM numbered GROUP BY island)`;
const ALWAYS = "spans(a, z) AS (SELECT 0, 1 << 60)";

// Returns a WITH clause that defines the selected times as table `picked`: stream_id, thread_id,
// from_ns, to_ns.
export function pickedSql(chosen: Selection): string {
    const from = chosen.area ? "max(a, :from)" : "a";
    const to = chosen.area ? "min(z, :to)" : "z";
    const threads = chosen.threads.length > 0 ? ` AND s.thread_id IN (${chosen.threads.join(", ")})` : "";
    return `WITH ${chosen.mark ? MARKED : ALWAYS},
  picked AS (SELECT s.stream_id, s.thread_id, ${from} AS from_ns, ${to} AS to_ns FROM streams s, spans
    WHERE s.session_id = :session AND ${from} < ${to}${threads})`;
}

// Returns a condition on the function name.
export function matches(chosen: Selection, name: string): string {
    if (!chosen.functions) {
        return "1";
    }
    return /[*?]/.test(chosen.functions)
        ? `${name} GLOB :functions`
        : `instr(lower(${name}), lower(:functions)) > 0`;
}

// Returns a condition: true if something that began at `start` in `stream` is selected.
export function isPicked(chosen: Selection, stream: string, start: string): string {
    return isPart(chosen)
        ? `EXISTS (SELECT 1 FROM picked WHERE stream_id = ${stream} AND ${start} >= from_ns AND ${start} < to_ns)`
        : "1";
}

// Returns the arguments of call_tree() and flame(). The statement must define `picked`.
export function treeArguments(chosen: Selection): string {
    const part = isPart(chosen)
        ? "(SELECT json_group_array(json_array(stream_id, from_ns, to_ns)) FROM picked)"
        : "NULL";
    const functions = chosen.functions
        ? `(SELECT json_group_array(function_id) FROM function_stats JOIN functions f USING (function_id)
    WHERE function_stats.session_id = :session AND ${matches(chosen, "f.name")})`
        : "NULL";
    return `:session, ${part}, ${functions}`;
}

// Returns a percentile of the merged histogram `h`, limited to the exact minimum and maximum of
// `s`.
export function quantileSql(part: string): string {
    return `max(s.min_ns, min(s.max_ns, histogram_quantile(h.histogram, ${part})))`;
}

export const PART_MS = 20000; // limit for questions that read single calls, which takes longer than stored sums
