// Coverage: which functions of a set of sessions were entered, optionally compared with another
// set.
import { useEffect } from "preact/hooks";
import { useQuestion } from "../answers";
import type { RowOf } from "../api";
import { compact, count, fileName, percent } from "../format";
import { route, setParameters } from "../router";
import { setOnDevice } from "../selection";
import { DeviceBar } from "../widgets/device_chip";
import { RowTable, Panel } from "../widgets/panel";
import { SetFields, SetHelp } from "../widgets/session_sets";
import { Bar, Chip, Problem, Tile } from "../widgets/small";
import { CoverageDifference } from "./coverage_difference";

const LIMITS = { rows: 20000, ms: 30000 };
const SHOWN = 500;

type Row = RowOf<"web.coverage">;

const kinds = ["module", "namespace", "class", "function", "mark"] as const;
type Kind = (typeof kinds)[number];

const states: readonly (readonly [string, string, (row: Row) => boolean])[] = [
    ["", "all", () => true],
    ["missing", "not all entered", (row) => row.entered < row.functions],
    ["entered", "entered", (row) => row.entered > 0],
    ["unwatched", "not recorded", (row) => row.unwatched > 0],
];

function kindAsked(): Kind {
    const asked = route.value.parameters.get("by");
    return kinds.find((kind) => kind === asked) ?? "module";
}

function Totals({ rows }: { rows: readonly Row[] }) {
    const sum = (pick: (row: Row) => number) => rows.reduce((before, row) => before + pick(row), 0);
    const functions = sum((row) => row.functions);
    const entered = sum((row) => row.entered);
    return (
        <dl class="tiles">
            <Tile label="Functions">{count(functions)}</Tile>
            <Tile label="Entered">{`${count(entered)}, ${percent(entered, functions)}`}</Tile>
            <Tile label="Never entered">{count(functions - entered)}</Tile>
            <Tile label="Not recorded" hint="left out by the policy, or not hooked: they may have been entered">
                {count(sum((row) => row.unwatched))}
            </Tile>
            <Tile label="Calls">{compact(sum((row) => row.calls))}</Tile>
        </dl>
    );
}

function Name({ row, by }: { row: Row; by: Kind }) {
    if (by === "module") {
        return (
            <button
                type="button"
                class="link-button"
                title={row.name}
                onClick={() => setParameters({ by: "function", module: row.name })}
            >
                {fileName(row.name)}
            </button>
        );
    }
    return (
        <>
            {row.name} {row.module && by !== "mark" ? <span class="module">{fileName(row.module)}</span> : null}
        </>
    );
}

function Switches({ by, only }: { by: Kind; only: string }) {
    return (
        <div class="tools">
            <div class="switch" role="group" aria-label="By">
                {kinds.map((kind) => (
                    <button
                        type="button"
                        key={kind}
                        aria-pressed={kind === by}
                        onClick={() => setParameters({ by: kind === "module" ? "" : kind })}
                    >
                        {kind}
                    </button>
                ))}
            </div>
            <div class="switch" role="group" aria-label="Only">
                {states.map(([key, title]) => (
                    <button type="button" key={key} aria-pressed={key === only} onClick={() => setParameters({ only: key }, true)}>
                        {title}
                    </button>
                ))}
            </div>
            <input
                type="search"
                aria-label="Search names"
                placeholder="Search names…  /"
                value={route.value.parameters.get("q") ?? ""}
                onInput={(event) => setParameters({ q: event.currentTarget.value }, true)}
            />
        </div>
    );
}

function Table({ a }: { a: string }) {
    const parameters = route.value.parameters;
    const by = kindAsked();
    const module = by === "module" ? "" : (parameters.get("module") ?? "");
    const only = parameters.get("only") ?? "";
    const search = (parameters.get("q") ?? "").toLowerCase();
    const values = { a, by };
    const answer = useQuestion("web.coverage", values, 0, LIMITS);
    if (answer.problem || !answer.value) {
        return answer.problem ? <Problem message={answer.problem} /> : <p class="empty">Counting…</p>;
    }
    const passes = states.find(([key]) => key === only)?.[2] ?? (() => true);
    const ofModule = answer.rows.filter((row) => module === "" || row.module === module);
    const rows = ofModule.filter((row) => passes(row) && row.name.toLowerCase().includes(search));
    return (
        <>
            {by === "mark" || answer.value.truncated ? null : <Totals rows={ofModule} />}
            <Switches by={by} only={only} />
            {module ? (
                <p class="chips">
                    <Chip label={`Module: ${fileName(module)}`} onRemove={() => setParameters({ module: "" })} />
                </p>
            ) : null}
            <Panel title="Coverage" question="web.coverage" values={values}>
                {rows.length === 0 ? <p class="dim">None.</p> : null}
                <RowTable<Row>
                    label="Coverage"
                    rows={rows.slice(0, SHOWN)}
                    columns={[
                        { title: by[0]!.toUpperCase() + by.slice(1), mono: true, cell: (row) => <Name row={row} by={by} /> },
                        {
                            title: "Entered of all",
                            number: true,
                            cell: (row) => (
                                <>
                                    {percent(row.entered, row.functions)} <Bar part={row.entered} whole={row.functions} />
                                </>
                            ),
                        },
                        { title: "Entered", number: true, cell: (row) => count(row.entered) },
                        { title: "Functions", number: true, cell: (row) => count(row.functions) },
                        { title: "Not recorded", number: true, cell: (row) => count(row.unwatched) },
                        { title: "Calls", number: true, cell: (row) => <span title={count(row.calls)}>{compact(row.calls)}</span> },
                    ]}
                />
                {rows.length > SHOWN ? (
                    <p class="dim">
                        The first {count(SHOWN)} of {count(rows.length)}; use SQL for all rows.
                    </p>
                ) : null}
                {answer.value.truncated ? (
                    <p class="warn-text">Only the first {count(answer.rows.length)} rows were read.</p>
                ) : null}
            </Panel>
        </>
    );
}

export function CoveragePage() {
    useEffect(() => {
        document.title = "Coverage · Sojourn";
    }, []);
    const a = setOnDevice(route.value.parameters.get("a") ?? "");
    const b = setOnDevice(route.value.parameters.get("b") ?? "");
    return (
        <div class="page">
            <h1>Coverage</h1>
            <SetFields titles={["Sessions", "Compare with (optional)"]} action="Show" clears={["module"]} />
            <DeviceBar />
            {a ? (
                <>
                    {b ? <CoverageDifference key={`d ${a} ${b}`} a={a} b={b} /> : null}
                    <Table key={a} a={a} />
                </>
            ) : (
                <SetHelp>Choose the sessions to count functions of:</SetHelp>
            )}
        </div>
    );
}
