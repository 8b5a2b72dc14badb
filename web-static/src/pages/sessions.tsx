import { useEffect, useState } from "preact/hooks";
import type { Session } from "../api";
import { ago, compact, count, dateTime, duration } from "../format";
import { route, setParameters } from "../router";
import { loadOlderSessions, olderSessions, sessions, sessionsError } from "../store";
import { Bar, Problem, StatePill, Tile } from "../widgets/small";

function matches(session: Session, search: string): boolean {
    const text = [session.command, session.name, session.device_name, session.device_model]
        .concat(session.state)
        .join("\n")
        .toLowerCase();
    return text.includes(search.toLowerCase());
}

function Lost({ session }: { session: Session }) {
    return session.lost_calls > 0 ? (
        <span class="warn-text" title={`${count(session.lost_calls)} calls were lost`}>
            ▲ {compact(session.lost_calls)}
        </span>
    ) : (
        <span class="dim">none</span>
    );
}

function SessionRow({ session, most, now }: { session: Session; most: number; now: number }) {
    const title = session.name || session.command || `session ${session.id}`;
    return (
        <tr>
            <td>
                <StatePill state={session.state} />
            </td>
            <td class="what">
                <a href={`/sessions/${session.id}`}>{title}</a>
                {session.name && session.command ? <span class="dim">{session.command}</span> : null}
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

function Summary({ list }: { list: Session[] }) {
    const sum = (pick: (session: Session) => number) =>
        list.reduce((total, session) => total + pick(session), 0);
    const recording = list.filter((session) => session.state === "recording").length;
    const lost = sum((session) => session.lost_calls);
    return (
        <dl class="tiles">
            <Tile label="Sessions">{count(list.length)}</Tile>
            <Tile label="Recording now">
                {recording > 0 ? <span class="good-text">● {recording}</span> : "none"}
            </Tile>
            <Tile label="Calls">{compact(sum((session) => session.stored_calls))}</Tile>
            <Tile label="Devices">{new Set(list.map((session) => session.device_name)).size}</Tile>
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

function SessionTable({ list }: { list: Session[] }) {
    const now = useClock();
    const most = Math.max(1, ...list.map((session) => session.stored_calls));
    return (
        <div class="card scroll-x">
            <table class="sessions">
                <thead>
                    <tr>
                        <th scope="col">State</th>
                        <th scope="col">What ran</th>
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

export function SessionsPage() {
    useEffect(() => {
        document.title = "Sessions · Sojourn";
    }, []);
    const search = route.value.parameters.get("q") ?? "";
    const all = sessions.value;
    if (sessionsError.value) {
        return <Problem message={sessionsError.value} />;
    }
    if (!all) {
        return <p class="empty">Loading…</p>;
    }
    const shown = all.filter((session) => matches(session, search));
    return (
        <div class="page">
            <div class="title-line">
                <h1>Sessions</h1>
                <input
                    type="search"
                    aria-label="Search sessions"
                    placeholder="Search command, device, state…  /"
                    value={search}
                    onInput={(event) => setParameters({ q: event.currentTarget.value }, true)}
                />
            </div>
            <Summary list={all} />
            {shown.length > 0 ? (
                <SessionTable list={shown} />
            ) : (
                <p class="empty">
                    {search
                        ? "No session matches."
                        : "Nothing recorded yet. Try: sojourn record -- ./your-program"}
                </p>
            )}
            {olderSessions.value ? (
                <button type="button" class="quiet" onClick={() => void loadOlderSessions()}>
                    Load older sessions
                </button>
            ) : null}
        </div>
    );
}
