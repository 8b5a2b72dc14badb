// The chips of the selection, and the controls that add to it.
import { useQuestion } from "../answers";
import type { RowOf } from "../api";
import { duration } from "../format";
import { route, setParameters } from "../router";
import { clearSelection, selection, selectionNames } from "../selection";
import { DeviceChip } from "./device_chip";
import { Adder, Chip } from "./small";

type ThreadName = RowOf<"web.threads_to_select">;

function Chips({ names }: { names: readonly ThreadName[] }) {
    const { area, threads, mark, functions } = selection.value;
    const nameOf = (id: string) => {
        const thread = names.find((one) => String(one.thread_id) === id);
        return thread ? `${thread.name} (${thread.tid})` : `thread_id ${id}`;
    };
    const without = (id: string) => threads.filter((other) => other !== id).join(",");
    return (
        <>
            {area ? (
                <Chip
                    label={`Time: ${duration(area.to - area.from)} from ${duration(area.from)}`}
                    onRemove={() => setParameters({ area: "" })}
                />
            ) : null}
            {threads.map((id) => (
                <Chip
                    key={id}
                    label={`Thread: ${nameOf(id)}`}
                    onRemove={() => setParameters({ threads: without(id) })}
                />
            ))}
            {mark ? <Chip label={`Mark: ${mark}`} onRemove={() => setParameters({ mark: "" })} /> : null}
            {functions ? (
                <Chip label={`Functions: ${functions}`} onRemove={() => setParameters({ functions: "" })} />
            ) : null}
        </>
    );
}

export function SelectionBar({ session, changes }: { session: string; changes: number }) {
    const chosen = selection.value;
    const threads = useQuestion("web.threads_to_select", { session }, changes);
    const marks = useQuestion("web.marks_to_select", { session }, changes);
    const isEmpty = selectionNames.every((name) => !route.value.parameters.get(name));
    return (
        <div class="chips selection" role="group" aria-label="Selection">
            <span class="dim">{isEmpty ? "All calls" : "Only calls of"}</span>
            <DeviceChip />
            <Chips names={threads.rows} />
            <Adder
                label="thread"
                choices={threads.rows
                    .filter((thread) => !chosen.threads.includes(String(thread.thread_id)))
                    .map((thread) => ({
                        value: String(thread.thread_id),
                        text: `${thread.name} (${thread.tid})${thread.is_main ? ", main" : ""}`,
                    }))}
                onAdd={(id) => id && setParameters({ threads: [...chosen.threads, id].join(",") })}
            />
            <Adder
                label="mark"
                choices={marks.rows.map(({ name, times }) => ({
                    value: name,
                    text: times > 1 ? `${name}, ${times} times` : name,
                }))}
                onAdd={(mark) => mark && setParameters({ mark })}
            />
            <input
                class="adder"
                type="text"
                aria-label="Select functions by name"
                placeholder="+ functions, as net_*"
                maxLength={200}
                onKeyDown={(event) => {
                    const field = event.currentTarget;
                    if (event.key === "Enter" && field.value.trim() !== "") {
                        setParameters({ functions: field.value.trim() });
                        field.value = "";
                    }
                }}
            />
            {isEmpty ? null : (
                <button type="button" class="quiet" onClick={clearSelection}>
                    Clear
                </button>
            )}
        </div>
    );
}
