import { useEffect, useState } from "preact/hooks";
import type { Session, SessionPage } from "../api";
import { ago, compact, count, counted, dateTime, duration } from "../format";
import { route, setParameters } from "../router";
import {
    changesMade,
    loadedFilters,
    loadOlderSessions,
    olderSessions,
    sessions,
    sessionsError,
    sessionTotals,
    showSessions,
} from "../store";
import { Actions, tick, ticked } from "./session_actions";
import { Facets, filtersOf } from "./session_facets";
import { Import, ImportState, importDropped } from "./session_import";
import { onDevice } from "../selection";
import { Engine } from "../widgets/engine";
import { Bar, Chip, Problem, StatePill, Tile } from "../widgets/small";

function Lost({ session }: { session: Session }) {
    return session.lost_calls > 0 ? (
        <span class="warn-text" title={`${count(session.lost_calls)} calls were lost`}>
            ▲ {compact(session.lost_calls)}
        </span>
    ) : session.missing_blocks > 0 ? (
        <span class="warn-text" title="sent by the device and not stored">
            ▲ {counted(session.missing_blocks, "block")}
        </span>
    ) : (
        <span class="dim">none</span>
    );
}

// The sets A and B of a comparison are session ids in the address.
function chosenOn(side: "a" | "b"): string[] {
    return (route.value.parameters.get(side) ?? "").split(",").filter((id) => /^[0-9]+$/.test(id));
}

function Side({ session, side, title }: { session: Session; side: "a" | "b"; title: string }) {
    const chosen = chosenOn(side);
    const isChosen = chosen.includes(session.id);
    const toggle = () => {
        const next = isChosen ? chosen.filter((id) => id !== session.id) : [...chosen, session.id];
        setParameters({ [side]: next.join(",") }, true);
    };
    return (
        <button
            type="button"
            class="side"
            aria-pressed={isChosen}
            aria-label={`${title} in set ${side.toUpperCase()}`}
            onClick={toggle}
        >
            {side.toUpperCase()}
        </button>
    );
}

function CompareBar() {
    const a = chosenOn("a");
    const b = chosenOn("b");
    if (a.length + b.length === 0) {
        return null;
    }
    return (
        <p class="chips">
            {a.length > 0 ? (
                <Chip label={`A: ${a.join(", ")}`} onRemove={() => setParameters({ a: "" }, true)} />
            ) : null}
            {b.length > 0 ? (
                <Chip label={`B: ${b.join(", ")}`} onRemove={() => setParameters({ b: "" }, true)} />
            ) : null}
            {a.length > 0 && b.length > 0 ? (
                <>
                    <a class="primary" href={`/compare?a=${a.join(",")}&b=${b.join(",")}`}>
                        Compare
                    </a>
                    <a href={`/timeline?sessions=${[...a, ...b].join(",")}`}>On one timeline</a>
                </>
            ) : (
                <span class="dim">Choose sessions for {a.length > 0 ? "B" : "A"} as well.</span>
            )}
        </p>
    );
}

// Returns the tags that users have set. The recorder sets one tag itself, which is left out.
function tagsOf(session: Session): string[] {
    try {
        const tags = Object.entries(JSON.parse(session.tags) as object);
        return tags.filter(([key]) => key !== "clock_rate_uncertainty_ppm").map(([key, value]) => `${key}=${value}`.slice(0, 80));
    } catch {
        return [];
    }
}

function SessionRow({ session, most, now }: { session: Session; most: number; now: number }) {
    const title = session.name || session.command || `session ${session.id}`;
    return (
        <tr>
            <td class="sides">
                <input
                    type="checkbox"
                    aria-label={`Tick ${title}, session ${session.id}`}
                    checked={ticked.value.has(session.id)}
                    onChange={(event) => tick(session.id, event.currentTarget.checked)}
                />{" "}
                <Side session={session} side="a" title={title} />
                <Side session={session} side="b" title={title} />
            </td>
            <td>
                <StatePill state={session.state} />
            </td>
            <td class="what">
                <a href={onDevice(`/sessions/${session.id}`)}>{title}</a>
                {session.name && session.command ? <span class="dim">{session.command}</span> : null}
                {session.is_pinned ? <span class="tag">pinned</span> : null}
                {tagsOf(session).map((tag) => (
                    <span class="tag" key={tag}>
                        {tag}
                    </span>
                ))}
            </td>
            <td>
                {session.device_name}
                <span class="dim below">{session.device_model || session.device_os}</span>
            </td>
            <td title={dateTime(session.started_realtime_ns)}>
                {ago(session.started_realtime_ns, now)}
            </td>
            <td class="number">{duration(session.duration_ns)}</td>
            <td class="number" title={`${count(session.stored_calls)} calls`}>
                {compact(session.stored_calls)}
                <Bar part={session.stored_calls} whole={most} />
            </td>
            <td class="number">
                <Lost session={session} />
            </td>
        </tr>
    );
}

function Summary({ totals, isStale }: { totals: SessionPage["totals"]; isStale: boolean }) {
    const { sessions, matching, recording, devices, calls, lost_calls: lost } = totals;
    return (
        <dl class="tiles" aria-busy={isStale}>
            <Tile label="Sessions">
                {matching === sessions ? count(sessions) : `${count(matching)} of ${count(sessions)}`}
            </Tile>
            <Tile label="Recording now">
                {recording > 0 ? <span class="good-text">● {count(recording)}</span> : "none"}
            </Tile>
            <Tile label="Calls">{compact(calls)}</Tile>
            <Tile label="Devices">{count(devices)}</Tile>
            <Tile label="Calls lost">
                {lost > 0 ? <span class="warn-text">{compact(lost)}</span> : "none"}
            </Tile>
        </dl>
    );
}

function useClock(): number {
    const [now, setNow] = useState(Date.now());
    useEffect(() => {
        const timer = setInterval(() => setNow(Date.now()), 10000);
        return () => clearInterval(timer);
    }, []);
    return now;
}

// `isStale`: the list still shows the sessions of the previous filters.
function SessionTable({ list, most, isStale }: { list: Session[]; most: number; isStale: boolean }) {
    const now = useClock();
    return (
        <div class={`card scroll-x ${isStale ? "stale" : ""}`} tabIndex={0} role="region" aria-label="Sessions" aria-busy={isStale}>
            <table class="sessions">
                <thead>
                    <tr>
                        <th scope="col">
                            <input
                                type="checkbox"
                                aria-label="Tick all that are shown"
                                disabled={isStale}
                                checked={list.every((session) => ticked.value.has(session.id))}
                                onChange={(event) => list.forEach(({ id }) => tick(id, event.currentTarget.checked))}
                            />{" "}
                            Compare
                        </th>
                        <th scope="col">State</th>
                        <th scope="col">Session</th>
                        <th scope="col">Device</th>
                        <th scope="col">Started</th>
                        <th scope="col" class="number">
                            Duration
                        </th>
                        <th scope="col" class="number">
                            Calls
                        </th>
                        <th scope="col" class="number">
                            Lost
                        </th>
                    </tr>
                </thead>
                <tbody>
                    {list.map((session) => (
                        <SessionRow key={session.id} session={session} most={most} now={now} />
                    ))}
                </tbody>
            </table>
        </div>
    );
}

function noneOf(sessions: number): string {
    return sessions > 0 ? "No session matches." : "Nothing recorded yet. Try: sojourn record -- ./your-program";
}

export function SessionsPage() {
    useEffect(() => {
        document.title = "Sessions · Sojourn";
    }, []);
    const search = route.value.parameters.get("q") ?? "";
    const filters = filtersOf(route.value.parameters);
    const asked = JSON.stringify(filters);
    useEffect(() => showSessions(filters), [asked]);
    const list = sessions.value;
    const totals = sessionTotals.value;
    if (!list || !totals) {
        return sessionsError.value ? (
            <Problem message={sessionsError.value} />
        ) : (
            <p class="empty">Loading…</p>
        );
    }
    const isOther = loadedFilters.value !== asked;
    const isStale = isOther && sessionsError.value === "";
    const isKnown = !isOther || isStale; // if the request failed, the sessions of other filters are not shown
    return (
        <div class="page" onDragOver={(event) => event.preventDefault()} onDrop={importDropped}>
            <div class="title-line">
                <h1>Sessions</h1>
                <span class="grow" />
                <Import />
                <input
                    type="search"
                    aria-label="Search sessions"
                    placeholder="Search command, device, state, tag…  /"
                    maxLength={60}
                    value={search}
                    onInput={(event) => setParameters({ q: event.currentTarget.value }, true)}
                />
            </div>
            <ImportState />
            {sessionsError.value ? <Problem message={sessionsError.value} /> : null}
            {isKnown ? <Summary totals={totals} isStale={isStale} /> : null}
            <Facets changes={`${totals.sessions} ${totals.recording} ${changesMade.value}`} />
            <CompareBar />
            <Actions />
            {!isKnown ? null : list.length > 0 ? (
                <SessionTable list={list} most={totals.most_calls} isStale={isStale} />
            ) : (
                <p class="empty">
                    {isStale ? "Loading…" : noneOf(totals.sessions)}
                </p>
            )}
            <Engine />
            {olderSessions.value && !isOther ? (
                <p class="dim">
                    The newest {count(list.length)} of {count(totals.matching)} are shown.{" "}
                    <button type="button" class="quiet" onClick={() => void loadOlderSessions()}>
                        Load older sessions
                    </button>
                </p>
            ) : null}
        </div>
    );
}
