// The actions for sessions that are ticked in the list: pin, tag, remove, and their undo.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { api, type SessionChange } from "../api";
import { count } from "../format";
import { setParameters } from "../router";
import { onDevice } from "../selection";
import { reloadSessions, sessions } from "../store";
import { isAdmin, signedIn, SignIn } from "../widgets/sign_in";

export const ticked = signal<ReadonlySet<string>>(new Set());

// A removed session cannot be restored, so the removal waits. Until then the user can cancel it.
const REMOVAL_DELAY_MS = 10000;
const REMOVED_AT_ONCE = 50; // the server's limit for one request

interface Done {
    text: string;
    isBad?: boolean;
    undo?: () => Promise<void>;
}

export const done = signal<Done | null>(null);

export function tick(id: string, isTicked: boolean): void {
    const next = new Set(ticked.value);
    if (isTicked) {
        next.add(id);
    } else {
        next.delete(id);
    }
    ticked.value = next;
}

function say(ids: readonly string[]): string {
    return ids.length === 1 ? `Session ${ids[0]}` : `${count(ids.length)} sessions`;
}

function fail(failure: unknown): void {
    done.value = { text: (failure as Error).message, isBad: true };
    reloadSessions();
}

async function send(change: SessionChange) {
    const answer = await api.changeSessions(change);
    reloadSessions();
    return answer.before;
}

async function setPinned(ids: string[], isPinned: boolean): Promise<void> {
    const before = await send({ sessions: ids, do: isPinned ? "pin" : "unpin" });
    const others = before.filter((row) => row.is_pinned !== isPinned).map((row) => row.id);
    done.value = {
        text: `${say(ids)} ${isPinned ? "pinned" : "unpinned"}.`,
        ...(others.length > 0 ? { undo: () => setPinned(others, !isPinned) } : {}),
    };
}

// Restores the previous value of a tag in each session.
async function restoreTag(key: string, before: { id: string; tags: string }[]): Promise<void> {
    const old = new Map<string | undefined, string[]>();
    for (const { id, tags } of before) {
        const value = (JSON.parse(tags) as Record<string, string>)[key];
        old.set(value, [...(old.get(value) ?? []), id]);
    }
    for (const [value, ids] of old) {
        await send(value === undefined ? { sessions: ids, do: "untag", key } : { sessions: ids, do: "tag", key, value });
    }
    done.value = { text: "Undone." };
}

async function setTag(ids: string[], key: string, value: string | null): Promise<void> {
    const change = value === null ? { do: "untag" as const, key } : { do: "tag" as const, key, value };
    const before = await send({ sessions: ids, ...change });
    done.value = {
        text: `${say(ids)} ${value === null ? "untagged" : `tagged ${key}=${value}`}.`,
        undo: () => restoreTag(key, before),
    };
}

async function removeAll(ids: string[]): Promise<void> {
    for (let at = 0; at < ids.length; at += REMOVED_AT_ONCE) {
        await send({ sessions: ids.slice(at, at + REMOVED_AT_ONCE), do: "remove" });
    }
}

function removeLater(ids: string[]): void {
    const timer = setTimeout(() => {
        removeAll(ids).then(() => {
            ticked.value = new Set();
            done.value = { text: `${say(ids)} removed.` };
        }, fail);
    }, REMOVAL_DELAY_MS);
    done.value = {
        text: `${say(ids)} will be removed in ${REMOVAL_DELAY_MS / 1000} seconds, if this page stays open.`,
        undo: async () => {
            clearTimeout(timer);
            done.value = { text: "Nothing was removed." };
        },
    };
}

function Outcome() {
    const shown = done.value;
    return (
        <span role="status" class={shown?.isBad ? "warn-text" : ""}>
            {shown?.text}{" "}
            {shown?.undo ? (
                <button type="button" class="quiet" onClick={() => void shown.undo!().catch(fail)}>
                    Undo
                </button>
            ) : null}
        </span>
    );
}

export function Actions() {
    const [tag, setTagText] = useState("");
    const ids = [...ticked.value].filter((id) => sessions.value?.some((session) => session.id === id));
    if (ids.length === 0) {
        return done.value ? (
            <p class="chips">
                <Outcome />
            </p>
        ) : null;
    }
    const run = (work: Promise<void>) => void work.catch(fail);
    const [key, ...rest] = tag.split("=");
    return (
        <div class="chips actions card" role="group" aria-label="Actions for the ticked sessions">
            <strong>{say(ids)}</strong>
            <button type="button" class="quiet" onClick={() => setParameters({ a: ids.join(",") }, true)}>
                Set A
            </button>
            <button type="button" class="quiet" onClick={() => setParameters({ b: ids.join(",") }, true)}>
                Set B
            </button>
            <a href={onDevice(`/timeline?sessions=${ids.join(",")}`)}>Timeline</a>
            <a href={`/coverage?a=${ids.join(",")}`}>Coverage</a>
            {signedIn.value ? (
                <>
                    <button type="button" class="quiet" onClick={() => run(setPinned(ids, true))}>
                        Pin
                    </button>
                    <button type="button" class="quiet" onClick={() => run(setPinned(ids, false))}>
                        Unpin
                    </button>
                    <input
                        class="adder"
                        type="text"
                        aria-label="Tag"
                        placeholder="key=value"
                        value={tag}
                        onInput={(event) => setTagText(event.currentTarget.value)}
                    />
                    <button type="button" class="quiet" disabled={!key} onClick={() => run(setTag(ids, key!, rest.join("=")))}>
                        Tag
                    </button>
                    <button type="button" class="quiet" disabled={!key} onClick={() => run(setTag(ids, key!, null))}>
                        Untag
                    </button>
                    {isAdmin.value ? (
                        <button type="button" class="quiet" onClick={() => removeLater(ids)}>
                            Remove
                        </button>
                    ) : null}
                </>
            ) : (
                <details>
                    <summary>Sign in to pin, tag and remove</summary>
                    <SignIn />
                </details>
            )}
            <button type="button" class="quiet" onClick={() => (ticked.value = new Set())}>
                Untick all
            </button>
            <Outcome />
        </div>
    );
}
