import { useEffect, useRef, useState } from "preact/hooks";
import { api, type GapRow, type List, type Overview, type UnhookedRow } from "../api";
import { bytes, count, counted, duration, fileName } from "../format";
import { Problem } from "../widgets/small";

// Loads a list in pages. `more` loads the next page.
function useList<Row>(load: (offset: number) => Promise<List<Row>>, key: string) {
    const [list, setList] = useState<List<Row> | null>(null); // null until it is loaded
    const [problem, setProblem] = useState("");
    const turn = useRef(0);
    // Appends the next page to `before`. An answer is dropped if another request was made
    // meanwhile.
    const ask = (before: readonly Row[]) => {
        const mine = ++turn.current;
        const ifWanted = <T,>(use: (value: T) => void) => (value: T) => mine === turn.current && use(value);
        load(before.length).then(
            ifWanted((next: List<Row>) => {
                setList({ items: [...before, ...next.items], truncated: next.truncated });
                setProblem("");
            }),
            ifWanted((failure: Error) => setProblem(failure.message)),
        );
    };
    useEffect(() => ask([]), [key]);
    return { list, problem, more: () => ask(list?.items ?? []) };
}

function GapTable({ name, rows }: { name: string; rows: readonly GapRow[] }) {
    return (
        <div class="scroll-x" tabIndex={0} role="region" aria-label={name}>
            <table>
                <thead>
                    <tr>
                        <th scope="col">Thread</th>
                        <th scope="col">Reason</th>
                        <th scope="col">Calls</th>
                        <th scope="col">From</th>
                        <th scope="col">Lasted</th>
                    </tr>
                </thead>
                <tbody>
                    {rows.map((gap) => (
                        <tr key={gap.id}>
                            <td>{gap.thread_name || (gap.thread_number === null ? "–" : `thread ${gap.thread_number}`)}</td>
                            <td>{gap.is_wait ? "waited for the recorder" : gap.reason.replaceAll("_", " ")}</td>
                            <td>{gap.is_wait ? "none lost" : count(gap.calls)}</td>
                            <td>{duration(gap.start_ns)}</td>
                            <td>{duration(gap.end_ns - gap.start_ns)}</td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}

// The server lists losses before waits.
function Gaps({ session, changes }: { session: Overview; changes: number }) {
    const { list, problem, more } = useList<GapRow>(
        (offset) => api.gaps(session.id, offset),
        `${session.id} ${changes}`,
    );
    if (problem || !list) {
        return problem ? <Problem message={problem} /> : <p class="empty">Loading…</p>;
    }
    const lost = list.items.filter((gap) => !gap.is_wait);
    const waits = list.items.filter((gap) => gap.is_wait);
    return (
        <section class="card">
            <h2>Gaps: calls that were lost</h2>
            {lost.length === 0 ? <p class="dim">None.</p> : <GapTable name="Gaps" rows={lost} />}
            {session.counts.waits > 0 ? (
                <>
                    <h2>
                        {counted(session.counts.waits, "wait")} for the recorder, {duration(session.counts.waits_ns)} in all: nothing was lost
                    </h2>
                    <GapTable name="Waits for the recorder" rows={waits} />
                </>
            ) : null}
            {list.truncated ? (
                <button type="button" class="quiet" onClick={more}>
                    Show more
                </button>
            ) : null}
        </section>
    );
}

function Unhooked({ session, changes }: { session: Overview; changes: number }) {
    const { list, problem, more } = useList<UnhookedRow>(
        (offset) => api.unhooked(session.id, offset),
        `${session.id} ${changes}`,
    );
    if (problem || !list) {
        return problem ? <Problem message={problem} /> : <p class="empty">Loading…</p>;
    }
    return (
        <section class="card">
            <h2>{counted(session.counts.unhooked, "function")} that {session.counts.unhooked === 1 ? "was" : "were"} not instrumented, and why</h2>
            <div class="scroll-x" tabIndex={0} role="region" aria-label="Functions not instrumented">
                <table>
                    <thead>
                        <tr>
                            <th scope="col">Function</th>
                            <th scope="col">Module</th>
                            <th scope="col">Size</th>
                            <th scope="col">Reason</th>
                        </tr>
                    </thead>
                    <tbody>
                        {list.items.map((row) => (
                            <tr key={row.id}>
                                <td class="mono">{row.name}</td>
                                <td title={row.module}>{fileName(row.module)}</td>
                                <td>{bytes(row.size_bytes)}</td>
                                <td>{row.reason}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
            {list.truncated ? (
                <button type="button" class="quiet" onClick={more}>
                    Show more
                </button>
            ) : null}
        </section>
    );
}

export function MissingView({ session, changes }: { session: Overview; changes: number }) {
    return (
        <div class="lists">
            <Gaps session={session} changes={changes} />
            <Unhooked session={session} changes={changes} />
        </div>
    );
}
