// The collector's JSON API (collector-server/http/openapi.json). Ids are strings, because they can
// exceed 2^53.

import type { Answers, Schemas } from "./api_types"; // generated from openapi.json by the build
import { parse } from "./parse";
import type { Questions } from "./questions"; // generated from schema/queries/web by the build
import { bearer, refuse, token } from "./token";

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
export type PathNode = Omit<Schemas["PathNode"], "min_ns" | "max_ns">; // no page shows these two
export type TreePage = Omit<Answers["get /api/v1/sessions/{id}/call-tree"], "items" | "focus"> & {
    items: PathNode[];
    focus?: PathNode[]; // only if the request asked for a path
};
export type GapRow = Rows<"get /api/v1/sessions/{id}/gaps">;
export type TimelineStep = TimelineAnswer["items"][number];
export type TimelinePath = TimelineAnswer["paths"][number];
export type UnhookedRow = Rows<"get /api/v1/sessions/{id}/unhooked">;

type Parameters = Record<string, string | number | undefined>;

// Sends a request with this tab's token. If the server rejects the token, the page asks the user
// for one.
async function ask(path: string, init: RequestInit = {}): Promise<Response> {
    const shown = token.value;
    const response = await fetch(`/api/v1/${path}`, { ...init, headers: { ...init.headers, ...bearer(shown) } });
    if (response.status === 401) {
        refuse(shown);
    }
    return response;
}

async function read<T>(response: Response): Promise<T> {
    const body = parse(await response.text());
    if (!response.ok) {
        throw new Error(body.error ?? `the server answered ${response.status}`);
    }
    return body as T;
}

async function get<T>(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
        if (value !== undefined && value !== "") {
            query.set(name, String(value));
        }
    }
    const text = query.toString();
    return read<T>(await ask(`${path}${text ? `?${text}` : ""}`, signal ? { signal } : {}));
}

// Downloads a file. A link cannot do this, because the browser does not send the token with a link.
export async function fetchFile(path: string): Promise<{ name: string; content: Blob }> {
    const response = await ask(path);
    if (!response.ok) {
        return read(response);
    }
    const name = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1] ?? "download";
    return { name, content: await response.blob() };
}

export type SqlAnswer = Answers["get /api/v1/sql"]; // integers above 2^53 are decimal strings

export type ShippedQuery = Rows<"get /api/v1/queries">; // each parameter is "NAME = DEFAULT | meaning"

type TimelineReply = Answers["get /api/v1/sessions/{id}/timeline"];

// The columns of a bar: call, function, depth, start, end, self, is unwound, flags, calls, is open, levels, row.
export type CallRow = [string, string, number, number, number | null, number | null, boolean, number, number, boolean, number, number];

export type CallsOfStream = Omit<TimelineReply["tracks"][number], "rows"> & { rows: CallRow[] };

// The steps of a timeline, and the single calls of the streams that the request names.
export type TimelineAnswer = Omit<TimelineReply, "tracks"> & { tracks: CallsOfStream[] };

export type QuestionName = keyof Questions;
export type ValuesOf<Name extends QuestionName> = Questions[Name]["values"];
export type RowOf<Name extends QuestionName> = Questions[Name]["row"];

// The values of a statement's parameters; undefined: no value.
export type Values = Parameters;

const bound = (values: Values) => Object.fromEntries(Object.entries(values).map(([name, value]) => [`p.${name}`, value]));

// Runs one SQL statement of the user. `values` are its parameters.
export function askSql(sql: string, values: Values, limits: Parameters, signal: AbortSignal): Promise<SqlAnswer> {
    return get<SqlAnswer>("sql", { sql, ...limits, ...bound(values) }, signal);
}

// Asks a question of schema/queries/web.
export function askQuestion<Name extends QuestionName>(
    query: Name,
    values: ValuesOf<Name>,
    limits: Parameters = {},
    signal?: AbortSignal,
): Promise<SqlAnswer> {
    return get<SqlAnswer>("sql", { query, ...limits, ...bound(values) }, signal);
}

// Converts each row to an object. Ids keep their type.
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

async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    const headers = { "Content-Type": "application/json" };
    return read<T>(await ask(path, { method: "POST", headers, body: JSON.stringify(body), ...(signal ? { signal } : {}) }));
}

export type Health = Answers["get /api/v1/health"];

export const api = {
    health: () => get<Health>("health"),
    devices: () => get<List<Device>>("devices", { limit: 1000 }),
    policies: () => get<List<PolicyRule>>("policies"),
    commands: () => get<List<Command>>("commands", { limit: 100 }),
    sendCommand: (command: CommandRequest) =>
        post<Answers["post /api/v1/commands"]>("commands", command),
    import: (step: ImportStep, signal?: AbortSignal) =>
        post<Answers["post /api/v1/imports"]>("imports", step, signal),
    checkPolicy: (policy: unknown) =>
        post<Answers["post /api/v1/policies"]>("policies", { policy }),
    queries: (name?: string) => get<List<ShippedQuery>>("queries", { name }),
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
