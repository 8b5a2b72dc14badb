// Functions that one set of sessions entered and the other did not.
import { useQuestion } from "../answers";
import type { RowOf } from "../api";
import { compact, count, fileName } from "../format";
import { route, setParameters } from "../router";
import { Panel, RowTable } from "../widgets/panel";
import { Problem } from "../widgets/small";

const SHOWN = 300;

type Row = RowOf<"web.coverage_difference">;

export function CoverageDifference({ a, b }: { a: string; b: string }) {
    const values = { a, b };
    const answer = useQuestion("web.coverage_difference", values, 0, { rows: 20000, ms: 30000 });
    const side = route.value.parameters.get("side") ?? "";
    const rows = answer.rows.filter((row) => side === "" || row.side === side);
    const of = (wanted: string) => answer.rows.filter((row) => row.side === wanted).length;
    return (
        <Panel title="Functions that only one set entered" question="web.coverage_difference" values={values}>
            {answer.problem ? <Problem message={answer.problem} /> : null}
            {!answer.value && !answer.problem ? <p class="dim">Counting…</p> : null}
            {answer.value && answer.rows.length === 0 ? <p class="dim">Both entered the same functions.</p> : null}
            {answer.rows.length > 0 ? (
                <>
                    <div class="switch" role="group" aria-label="Entered in">
                        {(["", "A", "B"] as const).map((key) => (
                            <button
                                type="button"
                                key={key}
                                aria-pressed={side === key}
                                onClick={() => setParameters({ side: key }, true)}
                            >
                                {key === "" ? `both ${count(answer.rows.length)}` : `only ${key} ${count(of(key))}`}
                            </button>
                        ))}
                    </div>
                    <RowTable<Row>
                        label="Functions that only one set entered"
                        rows={rows.slice(0, SHOWN)}
                        columns={[
                            { title: "Entered in", cell: (row) => `only ${row.side}` },
                            {
                                title: "Function",
                                mono: true,
                                cell: (row) => (
                                    <>
                                        {row.name} <span class="module">{fileName(row.file)}</span>
                                    </>
                                ),
                            },
                            { title: "Calls", number: true, cell: (row) => <span title={count(row.calls)}>{compact(row.calls)}</span> },
                            { title: "In the other set", cell: (row) => row.other },
                        ]}
                    />
                    {rows.length > SHOWN ? (
                        <p class="dim">
                            The first {count(SHOWN)} of {count(rows.length)}; use SQL for all rows.
                        </p>
                    ) : null}
                </>
            ) : null}
        </Panel>
    );
}
