// The collector's JSON API (collector-server/http/openapi.json). Ids are strings: they pass 2^53.

import type { Answers, Schemas } from "./api_types"; // made of it when the dashboard is built

type Rows<Path extends keyof Answers> = Answers[Path] extends { items: (infer Row)[] } ? Row : never;

export interface List<T> {
    items: T[];
    truncated: boolean;
}

export type Session = Schemas["Session"];
export type SessionPage = Answers["get /api/v1/sessions"];
export type Overview = Answers["get /api/v1/sessions/{id}"];
export type LossRow = Overview["loss"]["items"][number];
export type FunctionRow = Schemas["Function"];
export type FunctionPage = Answers["get /api/v1/sessions/{id}/functions"];
export type PathNode = Omit<Schemas["PathNode"], "min_ns" | "max_ns">; // no page shows those
export type TreePage = Omit<Answers["get /api/v1/sessions/{id}/call-tree"], "items" | "focus"> & {
    items: PathNode[];
    focus?: PathNode[]; // when it was asked for
};
export type GapRow = Rows<"get /api/v1/sessions/{id}/gaps">;
export type TimelineAnswer = Answers["get /api/v1/sessions/{id}/timeline"];
export type TimelineStep = TimelineAnswer["items"][number];
export type TimelinePath = TimelineAnswer["paths"][number];
export type UnhookedRow = Rows<"get /api/v1/sessions/{id}/unhooked">;

type Parameters = Record<string, string | number | undefined>;

const NAME_LENGTH_MAX = 400;

// parse reads what the server sends. Names come from traced programs: characters that turn the
// direction of text around are spelled out, and what no page has room for is cut, with its length.
export function parse(text: string) {
    const inert = text.replace(
        /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
        (letter) => `⟨U+${letter.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`,
    );
    const isLong = new RegExp(`[^"]{${NAME_LENGTH_MAX}}`).test(inert);
    return JSON.parse(inert, isLong ? shortened : undefined);
}

function shortened(key: string, value: unknown): unknown {
    const isText = ["sql", "document", "status", "tags", "result"].includes(key); // to be edited, not a name
    return typeof value === "string" && value.length > NAME_LENGTH_MAX && !isText
        ? `${[...value.slice(0, NAME_LENGTH_MAX)].slice(0, -1).join("")}… (${value.length} characters)`
        : value;
}

async function get<T>(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
        if (value !== undefined && value !== "") {
            query.set(name, String(value));
        }
    }
    const text = query.toString();
    const url = `/api/v1/${path}${text ? `?${text}` : ""}`;
    const response = await fetch(url, signal ? { signal } : {});
    const body = parse(await response.text());
    if (!response.ok) {
        throw new Error(body.error ?? `the server answered ${response.status}`);
    }
    return body as T;
}

export type SqlAnswer = Answers["get /api/v1/sql"]; // integers beyond 2^53 are decimal strings

export type ShippedQuery = Rows<"get /api/v1/queries">; // parameters: NAME = DEFAULT | meaning

export type CallsAnswer = Omit<Answers["get /api/v1/sessions/{id}/calls"], "rows"> & {
    rows: [string, string, number, number, number | null, number | null, boolean, number, number, boolean][];
};

// askSql runs one statement; `values` are its parameters.
export function askSql(
    sql: string,
    values: Record<string, string | number> = {},
    limits: Parameters = {},
    signal?: AbortSignal,
): Promise<SqlAnswer> {
    const bound = Object.entries(values).map(([name, value]) => [`p.${name}`, value]);
    return get<SqlAnswer>("sql", { sql, ...limits, ...Object.fromEntries(bound) }, signal);
}

// rowsOf makes an object of each row; ids stay what they are.
export function rowsOf<Row>(answer: SqlAnswer): Row[] {
    return answer.rows.map(
        (row) => Object.fromEntries(answer.columns.map((name, at) => [name, row[at]])) as Row,
    );
}

export type Device = Schemas["Device"];

export type PolicyRule = Schemas["PolicyRule"];

export type Command = Schemas["Command"];

export type Facet = Rows<"get /api/v1/sessions/facets">;

export interface SessionChange {
    sessions: string[];
    do: "pin" | "unpin" | "tag" | "untag" | "note" | "unnote" | "remove";
    key?: string;
    value?: string;
    from_ns?: number;
    to_ns?: number;
}

export interface ImportStep {
    do: "begin" | "append" | "finish" | "progress" | "cancel";
    import?: string;
    offset?: number;
    hex?: string;
}

export interface CommandRequest {
    devices: string;
    kind: string;
    arguments: unknown;
}

// token is the collector's, where somebody signed in in this tab.
export function token(): string {
    return sessionStorage.getItem("token") ?? "";
}

async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    const response = await fetch(`/api/v1/${path}`, {
        method: "POST",
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${token()}` },
        body: JSON.stringify(body),
        ...(signal ? { signal } : {}),
    });
    const answer = parse(await response.text());
    if (!response.ok) {
        throw new Error(answer.error ?? `the server answered ${response.status}`);
    }
    return answer as T;
}

export type Health = Answers["get /api/v1/health"];

export const api = {
    health: () => get<Health>("health"),
    devices: () => get<List<Device>>("devices", { limit: 1000 }),
    policies: () => get<List<PolicyRule>>("policies"),
    commands: () => get<List<Command>>("commands", { limit: 100 }),
    giveCommand: (command: CommandRequest) =>
        post<Answers["post /api/v1/commands"]>("commands", command),
    import: (step: ImportStep, signal?: AbortSignal) =>
        post<Answers["post /api/v1/imports"]>("imports", step, signal),
    checkPolicy: (policy: unknown) =>
        post<Answers["post /api/v1/policies"]>("policies", { policy }),
    queries: () => get<List<ShippedQuery>>("queries"),
    calls: (id: string, parameters: Parameters, signal?: AbortSignal) =>
        get<CallsAnswer>(`sessions/${id}/calls`, parameters, signal),
    sessions: (filters: Record<string, string>, before?: string) =>
        get<SessionPage>("sessions", { ...filters, before }),
    facets: (filters: Record<string, string>, signal?: AbortSignal) =>
        get<List<Facet>>("sessions/facets", filters, signal),
    changeSessions: (change: SessionChange) =>
        post<Answers["post /api/v1/sessions"]>("sessions", change),
    overview: (id: string) => get<Overview>(`sessions/${id}`),
    functions: (id: string, parameters: Parameters, signal?: AbortSignal) =>
        get<FunctionPage>(`sessions/${id}/functions`, parameters, signal),
    callTree: (id: string, parameters: Parameters) =>
        get<TreePage>(`sessions/${id}/call-tree`, parameters),
    timeline: (id: string, parameters: Parameters, signal?: AbortSignal) =>
        get<TimelineAnswer>(`sessions/${id}/timeline`, parameters, signal),
    gaps: (id: string, offset = 0) =>
        get<List<GapRow>>(`sessions/${id}/gaps`, { limit: 500, offset }),
    unhooked: (id: string, offset = 0) =>
        get<List<UnhookedRow>>(`sessions/${id}/unhooked`, { limit: 500, offset }),
};
