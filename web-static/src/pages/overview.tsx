import type { ComponentChildren } from "preact";
import type { List, Overview } from "../api";
import { compact, count, duration, fileName } from "../format";

interface ListTableProps<Row> {
    title: string;
    list: List<Row>;
    heads: readonly string[];
    row: (row: Row) => ComponentChildren[];
}

function ListTable<Row>({ title, list, heads, row }: ListTableProps<Row>) {
    return (
        <section class="card">
            <h2>{title}</h2>
            <div class="scroll-x" tabIndex={0} role="region" aria-label={title}>
                <table>
                    <thead>
                        <tr>
                            {heads.map((head) => (
                                <th scope="col" key={head}>
                                    {head}
                                </th>
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {list.items.map((item, index) => (
                            <tr key={index}>
                                {row(item).map((cell, column) => (
                                    <td key={column}>{cell}</td>
                                ))}
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
            {list.items.length === 0 ? <p class="dim">None.</p> : null}
            {list.truncated ? <p class="dim">The first {count(list.items.length)} are shown.</p> : null}
        </section>
    );
}

function ending(code: number | null, signal: number | null): string {
    return signal ? `signal ${signal}` : code === null ? "–" : `exit ${code}`;
}

export function OverviewView({ session }: { session: Overview }) {
    return (
        <div class="lists">
            <ListTable
                title="Threads"
                list={session.threads}
                heads={["Thread", "tid", "Calls", "Run time", "Deepest", "Lost"]}
                row={(thread) => [
                    <>
                        {thread.name || `thread ${thread.number}`}{" "}
                        {thread.is_main ? <span class="tag">main</span> : null}
                    </>,
                    thread.tid,
                    compact(thread.calls),
                    duration(thread.run_time_ns),
                    count(thread.max_depth),
                    thread.dropped_calls > 0 ? count(thread.dropped_calls) : "none",
                ]}
            />
            <ListTable
                title="Processes"
                list={session.processes}
                heads={["pid", "Program", "How", "End"]}
                row={(process) => [
                    process.pid,
                    <span title={process.command}>{fileName(process.executable)}</span>,
                    process.how,
                    `${ending(process.exit_code, process.exit_signal)}${process.disarm_reason ? ` · ${process.disarm_reason}` : ""}`,
                ]}
            />
            <ListTable
                title="Modules"
                list={session.modules}
                heads={["Module", "Build", "Hooked", "Functions"]}
                row={(module) => [
                    <span title={module.path}>{fileName(module.path)}</span>,
                    <span class="mono" title={module.build}>
                        {module.build.slice(0, 10)}
                    </span>,
                    count(module.hooked_count),
                    count(module.function_count),
                ]}
            />
        </div>
    );
}
