// The notes on a session, and a form to write one about the selected time or the whole session.
import { useState } from "preact/hooks";
import { useQuestion } from "../answers";
import { api, type RowOf } from "../api";
import { duration } from "../format";
import { addressOf, selection } from "../selection";
import { changedHere } from "../store";
import { RowTable, Panel } from "../widgets/panel";
import { signedIn, SignIn } from "../widgets/sign_in";
import { Problem } from "../widgets/small";

const LENGTH_MAX = 900;

type Note = RowOf<"web.notes">;

function Writer({ session }: { session: string }) {
    const [text, setText] = useState("");
    const [said, setSaid] = useState("");
    const [last, setLast] = useState("");
    const area = selection.value.area;
    const send = async (what: "note" | "unnote", value: string) => {
        try {
            const time = what === "note" && area ? { from_ns: area.from, to_ns: area.to } : {};
            await api.changeSessions({ sessions: [session], do: what, value, ...time });
            setSaid(what === "note" ? "Note saved." : "Note removed.");
            setLast(what === "note" ? value : "");
            setText(what === "note" ? "" : value);
            changedHere(session);
        } catch (failure) {
            setSaid((failure as Error).message);
        }
    };
    return (
        <form
            class="tools"
            onSubmit={(event) => {
                event.preventDefault();
                void send("note", text.trim());
            }}
        >
            <input
                class="text"
                type="text"
                aria-label="Note"
                placeholder={area ? "A note on the selected time" : "A note on the session"}
                maxLength={LENGTH_MAX}
                value={text}
                onInput={(event) => setText(event.currentTarget.value)}
            />
            <button class="quiet" type="submit" disabled={text.trim() === ""}>
                Write
            </button>
            <span role="status">{said}</span>
            {last ? (
                <button class="quiet" type="button" onClick={() => void send("unnote", last)}>
                    Undo
                </button>
            ) : null}
        </form>
    );
}

export function Notes({ session, changes }: { session: string; changes: number }) {
    const answer = useQuestion("web.notes", { session }, changes);
    return (
        <Panel title="Notes" question="web.notes" values={{ session }}>
            {answer.problem ? <Problem message={answer.problem} /> : null}
            {answer.value && answer.rows.length === 0 ? <p class="dim">None.</p> : null}
            {answer.rows.length > 0 ? (
                <RowTable<Note>
                    label="Notes"
                    rows={answer.rows}
                    columns={[
                        { title: "Note", cell: (row) => row.note },
                        {
                            title: "About",
                            cell: (row) =>
                                row.start_ns === null || row.end_ns === null ? (
                                    "whole session"
                                ) : (
                                    <a href={addressOf(session, { view: "timeline", from: row.start_ns, to: row.end_ns + 1 })}>
                                        {duration(row.end_ns - row.start_ns)} from {duration(row.start_ns)}
                                    </a>
                                ),
                        },
                        { title: "By", cell: (row) => row.author || "–" },
                        { title: "When", cell: (row) => row.written },
                    ]}
                />
            ) : null}
            {signedIn.value ? (
                <Writer session={session} />
            ) : (
                <details>
                    <summary>Sign in to write a note</summary>
                    <SignIn />
                </details>
            )}
        </Panel>
    );
}
