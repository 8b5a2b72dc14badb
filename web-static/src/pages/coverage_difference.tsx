// Functions that one set of sessions entered and the other did not.
import { useSql } from "../answers";
import { compact, count, fileName } from "../format";
import { route, setParameters } from "../router";
import { Panel, RowTable } from "../widgets/panel";
import { Problem } from "../widgets/small";

const SHOWN = 300;

// Matches functions by name and file name, so that builds in different folders can be compared.
const ONE = (set: string) => `SELECT name, replace(module, rtrim(module, replace(module, '/', '')), '') AS file,
      max(entered) AS entered, min(unwatched) AS unwatched, sum(calls) AS calls
    FROM coverage(${set}, 'function') GROUP BY 1, 2`;

const DIFFERENCE_SQL = `WITH one AS MATERIALIZED (${ONE(":a")}),
  two AS MATERIALIZED (${ONE(":b")})
SELECT * FROM (SELECT 'A' AS side, one.name, one.file, one.calls, CASE WHEN two.name IS NULL THEN 'not there'
    WHEN two.unwatched THEN 'not recorded' ELSE 'not entered' END AS other
  FROM one LEFT JOIN two USING (name, file) WHERE one.entered AND NOT coalesce(two.entered, 0)
UNION ALL SELECT 'B', two.name, two.file, two.calls, CASE WHEN one.name IS NULL THEN 'not there'
    WHEN one.unwatched THEN 'not recorded' ELSE 'not entered' END
  FROM two LEFT JOIN one USING (name, file) WHERE two.entered AND NOT coalesce(one.entered, 0))
ORDER BY side, other, calls DESC, name`;

interface Row {
    side: "A" | "B";
    name: string;
    file: string;
    calls: number;
    other: string;
}

export function CoverageDifference({ a, b }: { a: string; b: string }) {
    const values = { a, b };
    const answer = useSql<Row>(DIFFERENCE_SQL, values, 0, { rows: 20000, ms: 30000 });
    const side = route.value.parameters.get("side") ?? "";
    const rows = answer.rows.filter((row) => side === "" || row.side === side);
    const of = (wanted: string) => answer.rows.filter((row) => row.side === wanted).length;
    return (
        <Panel title="Functions that only one set entered" sql={DIFFERENCE_SQL} values={values}>
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
