// The collector's JSON API (collector-server/http/openapi.json). Ids are strings: they pass 2^53.

export interface List<T> {
    items: T[];
    truncated: boolean;
}

export interface SessionPage extends List<Session> {
    totals: {
        sessions: number; // in the database
        matching: number;
        recording: number;
        devices: number;
        calls: number;
        most_calls: number;
        lost_calls: number;
    };
}

export interface Session {
    id: string;
    uuid: string;
    name: string;
    command: string;
    mode: string;
    state: string;
    cause: string;
    parent_session_id: string | null;
    is_pinned: boolean;
    tags: string; // JSON
    started_realtime_ns: string;
    ended_realtime_ns: string | null;
    duration_ns: number | null;
    stored_calls: number;
    stored_events: number;
    stored_blocks: number;
    stored_bytes: number;
    lost_calls: number;
    lost_events: number;
    sent_calls: number | null;
    clock_name: string;
    traced_cpu_ns: number | null;
    estimated_probe_ns: number | null;
    device_name: string;
    device_model: string;
    device_os: string;
    device_machine: string;
}

export interface ThreadRow {
    number: number;
    tid: number;
    name: string;
    is_main: boolean;
    calls: number;
    run_time_ns: number | null;
    max_depth: number;
    dropped_calls: number;
}

export interface ProcessRow {
    number: number;
    pid: number;
    executable: string;
    command: string;
    how: string;
    exit_code: number | null;
    exit_signal: number | null;
    disarm_reason: string;
}

export interface ModuleRow {
    number: number;
    path: string;
    machine: string;
    build: string;
    function_count: number;
    hooked_count: number;
}

export interface LossRow {
    reason: string;
    gaps: number;
    calls: number;
    events: number;
}

export interface Overview extends Session {
    counts: {
        functions: number;
        call_paths: number;
        threads: number;
        gaps: number;
        unhooked: number;
        untrusted_calls: number;
        quarantined_blocks: number;
    };
    processes: List<ProcessRow>;
    threads: List<ThreadRow>;
    modules: List<ModuleRow>;
    loss: List<LossRow>;
}

export interface FunctionRow {
    id: string;
    name: string;
    module: string;
    calls: number;
    total_ns: number;
    self_ns: number;
    mean_ns: number | null;
    min_ns: number | null;
    max_ns: number | null;
    p50_ns: number | null;
    p90_ns: number | null;
    p95_ns: number | null;
    p99_ns: number | null;
    unwound: number;
    untrusted: number;
}

export interface FunctionPage extends List<FunctionRow> {
    offset: number;
    totals: { matching: number; calls: number; self_ns: number; session_self_ns: number };
}

export interface PathNode {
    id: string;
    parent_id: string | null;
    function_id: string;
    name: string;
    module: string;
    depth: number;
    is_recursive: boolean;
    calls: number;
    total_ns: number;
    self_ns: number;
    known_ns: number;
    p50_ns: number | null;
    p95_ns: number | null;
    unwound: number;
    untrusted: number;
    child_count: number;
}

export interface TreePage {
    session_ns: number;
    items: PathNode[];
    rest: { paths: number; calls: number; known_ns: number; self_ns: number };
    focus?: PathNode[];
}

export interface GapRow {
    id: string;
    thread_number: number | null;
    thread_name: string | null;
    reason: string;
    calls: number;
    events: number;
    start_ns: number;
    end_ns: number;
}

export interface TimelineStep {
    stream_id: string;
    thread_number: number | null;
    thread_name: string | null;
    level: number;
    steps: number; // merged into this one
    start_ns: number;
    end_ns: number;
    calls: number;
    max_depth: number;
    path_id: string | null;
    function_id: string | null;
    function: string | null;
}

export interface TimelinePath {
    path_id: string;
    parent_path_id: string | null;
    depth: number;
    function_id: string;
    function: string | null;
}

export interface TimelineAnswer extends List<TimelineStep> {
    paths: TimelinePath[]; // those of the steps, and those above them
}

export interface UnhookedRow {
    id: string;
    name: string;
    module: string;
    offset: number;
    size_bytes: number;
    reason: string;
}

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
    const isText = ["sql", "document", "status", "tags"].includes(key); // to be edited, not a name
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

export interface SqlAnswer {
    columns: string[];
    rows: unknown[][]; // integers beyond 2^53 are decimal strings
    truncated: boolean;
    is_full: boolean;
    elapsed_us: number;
    warnings: string;
}

export interface ShippedQuery {
    name: string;
    title: string;
    question: string;
    parameters: string[]; // NAME = DEFAULT | meaning
    columns: string[];
    sql: string;
}

export interface CallsAnswer {
    rows: [string, string, number, number, number | null, number | null, boolean, number, number][];
    functions: Record<string, string>;
    truncated: boolean;
    is_too_many: boolean;
    calls_in_blocks: number;
    warnings: string;
}

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

export interface Device {
    id: string;
    name: string;
    model: string;
    os: string;
    build: string;
    machine: string;
    agent_version: string;
    tags: string;
    first_seen_realtime_ns: string;
    last_seen_realtime_ns: string;
    enrolled: string;
    namesakes: number;
    status: string; // JSON
}

export interface PolicyRule {
    id: string;
    scope: string;
    subject: string;
    app: string;
    document: string;
    set_by: string;
    set_realtime_ns: string;
}

export interface Command {
    id: string;
    device_id: string;
    device_name: string;
    kind: string;
    arguments: string;
    state: string;
    requested_by: string;
    created_realtime_ns: string;
    result: string | null;
    file_bytes: number | null;
}

export interface Facet {
    facet: string;
    value: string;
    label: string;
    sessions: number;
}

export interface SessionChange {
    sessions: string[];
    do: "pin" | "unpin" | "tag" | "untag" | "remove";
    key?: string;
    value?: string;
}

export interface ImportStep {
    do: "begin" | "append" | "finish" | "cancel";
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

async function post<T>(path: string, body: unknown): Promise<T> {
    const response = await fetch(`/api/v1/${path}`, {
        method: "POST",
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${token()}` },
        body: JSON.stringify(body),
    });
    const answer = parse(await response.text());
    if (!response.ok) {
        throw new Error(answer.error ?? `the server answered ${response.status}`);
    }
    return answer as T;
}

export const api = {
    devices: () => get<List<Device>>("devices", { limit: 1000 }),
    policies: () => get<List<PolicyRule>>("policies"),
    commands: () => get<List<Command>>("commands", { limit: 100 }),
    giveCommand: (command: CommandRequest) =>
        post<{ commands: { command: string; device_id: string; device: string }[] }>("commands", command),
    import: (step: ImportStep) =>
        post<{ import: string; bytes: number; sessions: string[]; known: number }>("imports", step),
    checkPolicy: (policy: unknown) =>
        post<{ name: string; version: number; mode: string }>("policies", { policy }),
    queries: () => get<List<ShippedQuery>>("queries"),
    calls: (id: string, parameters: Parameters, signal?: AbortSignal) =>
        get<CallsAnswer>(`sessions/${id}/calls`, parameters, signal),
    sessions: (filters: Record<string, string>, before?: string) =>
        get<SessionPage>("sessions", { ...filters, before }),
    facets: (filters: Record<string, string>, signal?: AbortSignal) =>
        get<List<Facet>>("sessions/facets", filters, signal),
    changeSessions: (change: SessionChange) =>
        post<{ before: { id: string; is_pinned: boolean; tags: string }[] }>("sessions", change),
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
