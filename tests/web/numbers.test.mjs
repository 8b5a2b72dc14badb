// Compares the numbers of lists and tables that do not link to their SQL with the answers of SQL.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
    base, change, checkPanel, checkSums, clean, comesTo, foreign, format, openPage, problems, record, rowsOf, rowsOfLink, sql, start, stop, texts,
} from "./lab.mjs";

const WHOLE = 1;
const FALLEN = 2;
const KILLED = 3; // has two threads
const GAPPED = 4; // killed, and lacks the first block of its main thread

before(async () => {
    clean();
    assert.equal(record("whole", [], "300", "0").status, 0);
    record("fallen", ["--zombies", "heap"], "crash");
    assert.equal(record("killed", [], "300", "0").status, 0);
    assert.equal(record("gapped", [], "20000", "0").status, 0); // more calls than a block holds
    await start();
    await checkSums();
    change(`INSERT INTO zombie_events (report_id, number, event, owners, tid, ticks, function)
        SELECT r.report_id, e.number, e.event, e.owners, r.tid, 0, e.function FROM zombie_reports r,
            (SELECT 0 AS number, 'allocation' AS event, 1 AS owners, 'make_block' AS function
             UNION ALL SELECT 1, 'retain', 2, 'use_block' UNION ALL SELECT 2, 'release', 1, '') e
        WHERE r.report_id = (SELECT max(report_id) FROM zombie_reports);
        INSERT INTO gaps (session_id, stream_id, number, reason, calls, events, start_ns, end_ns)
        SELECT ${FALLEN}, stream_id, 70, 'ring_full', 5, 10, 1000, 3500 FROM streams WHERE session_id = ${FALLEN} LIMIT 1;
        INSERT INTO gaps (session_id, stream_id, number, reason, calls, events, start_ns, end_ns)
        SELECT ${FALLEN}, stream_id, 71, 'waited', 0, 0, 500, 740 FROM streams WHERE session_id = ${FALLEN} LIMIT 1;
        INSERT INTO reports (session_id, number, monitor, kind, process_number, thread_number, at_ns, payload)
        SELECT session_id, 900, 'threads', 'times', process_number, number, 9000000,
            json_object('steps', json_array(json_array(number, 9000000, 8000000, 5000000, 1000000)))
        FROM threads WHERE session_id = ${WHOLE} AND is_main;
        INSERT INTO marks (session_id, number, name, is_end, at_ns, source) VALUES (${WHOLE}, 1, 'load', 0, 2000, 'app'),
            (${WHOLE}, 2, 'load', 1, 5000, 'app'), (${WHOLE}, 3, 'rest', 0, 6000, 'cli');
        INSERT INTO decisions SELECT ${WHOLE}, 1, 4000, 1, min(function_id), 'unhook', 'too many calls', 700, 12345, 61000, 50000
            FROM function_stats WHERE session_id = ${WHOLE};
        INSERT INTO triggers (session_id, number, at_ns, place, event, subject, value, actions, suppressed) VALUES
            (${WHOLE}, 1, 4500, 0, 'slow_call', 'spin', 1234567, 'dump', 3), (${WHOLE}, 2, 4600, 1, 'rate', 'spin', 4321, 'mark', 0);
        INSERT INTO filtered_calls SELECT ${WHOLE}, min(function_id), 'depth', 98765, 4567890 FROM function_stats WHERE session_id = ${WHOLE};
        UPDATE sessions SET lost_calls = 5 WHERE session_id = ${FALLEN};
        UPDATE sessions SET state = 'killed' WHERE session_id IN (${KILLED}, ${GAPPED});
        DELETE FROM blocks WHERE kind = 1 AND first_call = 0 AND stream_id = (SELECT stream_id FROM streams s
            JOIN threads t USING (thread_id) WHERE s.session_id = ${GAPPED} AND t.is_main);
        UPDATE streams SET calls = (SELECT sum(b.call_count) FROM blocks b WHERE b.stream_id = streams.stream_id AND b.kind = 1)
            WHERE session_id = ${GAPPED}`);
});

after(stop);

const tile = (page, label) =>
    page.locator(".tile", { has: page.getByText(label, { exact: true }) }).locator("dd");

test("the list of sessions: each row and all totals", async () => {
    const { compact, count, duration } = format;
    const page = await openPage("/");
    const rows = page.locator("table.sessions tbody tr");
    await rows.nth(1).waitFor();
    const wanted = await sql(`SELECT s.name, s.state, d.name AS device, s.stored_calls, s.lost_calls,
        CAST(s.started_realtime_ns AS TEXT) AS started,
        s.ended_realtime_ns / 1000 - s.started_realtime_ns / 1000 AS us FROM sessions s JOIN devices d USING (device_id) ORDER BY s.session_id DESC`);
    const before = Date.now() - 20000; // the page updates "ago" every 10 s
    const shown = await texts(rows);
    const titles = await rows.evaluateAll((list) => list.map((row) => row.cells[4].title));
    wanted.forEach((row, index) => {
        const [, state, what, device, started, took, calls, lost] = shown[index];
        assert.equal(titles[index], format.dateTime(row.started));
        const ages = Array.from({ length: 260 }, (_, tenth) => format.ago(row.started, before + tenth * 100));
        assert.ok(ages.includes(started), `${started} is none of ${ages}`);
        assert.match(state, new RegExp(row.state));
        assert.ok(what.startsWith(row.name) && device.startsWith(row.device), shown[index].join(" | "));
        assert.ok([-1, 0, 1].some((more) => took === duration((row.us + more) * 1000)), `${took}, ${row.us} us`);
        assert.equal(calls, compact(row.stored_calls));
        assert.equal(lost, row.lost_calls > 0 ? `▲ ${compact(row.lost_calls)}` : "none");
    });
    const [all] = await sql("SELECT count(*) AS sessions, sum(stored_calls) AS calls, sum(lost_calls) AS lost, count(DISTINCT device_id) AS devices FROM sessions");
    assert.deepEqual(
        await Promise.all(["Sessions", "Recording now", "Calls", "Devices", "Calls lost"].map((label) => tile(page, label).textContent())),
        [count(all.sessions), "none", compact(all.calls), count(all.devices), compact(all.lost)],
    );
    await page.close();
});

test("the filters of the list: how many sessions each value has", async () => {
    const { count } = format;
    const page = await openPage("/");
    const filter = (kind) => page.getByRole("group", { name: "Filters", exact: true }).getByLabel(`Only sessions with this ${kind}`);
    const shown = async (kind) => (await filter(kind).locator("option").allTextContents()).slice(1).sort();
    await filter("state").waitFor();
    for (const [kind, column] of [["state", "s.state"], ["device", "d.name"]]) {
        const rows = await sql(`SELECT ${column} AS label, count(*) AS sessions FROM sessions s JOIN devices d USING (device_id) GROUP BY 1`);
        assert.deepEqual(await shown(kind), rows.map((row) => `${row.label} (${count(row.sessions)})`).sort());
    }
    const [{ all }] = await sql("SELECT count(*) AS \"all\" FROM sessions");
    assert.deepEqual(await shown("app"), [`recorded_program (${count(all)})`]);
    assert.deepEqual(await shown("mark"), ["load (1)", "rest (1)"]);
    await page.close();
});

test("the head of a session: its tiles and its loss", async () => {
    const { bytes, compact, count, duration } = format;
    for (const session of [WHOLE, FALLEN]) {
        const page = await openPage(`/sessions/${session}`);
        await tile(page, "Stored").waitFor();
        const [row] = await sql(`SELECT stored_calls AS calls, stored_bytes AS bytes, CAST(started_realtime_ns AS TEXT) AS started,
            ended_realtime_ns / 1000 - started_realtime_ns / 1000 AS us,
            (SELECT count(*) FROM function_stats f WHERE f.session_id = s.session_id) AS functions,
            (SELECT count(*) FROM call_paths p WHERE p.session_id = s.session_id) AS paths,
            (SELECT count(*) FROM threads t WHERE t.session_id = s.session_id) AS threads FROM sessions s WHERE session_id = ${session}`);
        assert.deepEqual(
            await Promise.all(["Calls", "Functions", "Call paths", "Threads", "Stored"].map((label) => tile(page, label).textContent())),
            [compact(row.calls), count(row.functions), compact(row.paths), count(row.threads), bytes(row.bytes)],
        );
        const took = await tile(page, "Duration").textContent();
        assert.ok([-1, 0, 1].some((more) => took === duration((row.us + more) * 1000)), `${took}, ${row.us} us`);
        await page.getByText(`started ${format.dateTime(row.started)}`).waitFor();
        await page.getByText(session === WHOLE ? "No loss is known." : "5 calls lost.").waitFor();
        await page.close();
    }
});

const grid = (page, role) =>
    page.locator(`[role=${role}] .rows [role=row]`).evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent.trim())));

test("the table of functions: every column", async () => {
    const { compact, count, duration, percent } = format;
    const page = await openPage(`/sessions/${WHOLE}`);
    await page.locator("[role=grid] .rows .mono").first().waitFor();
    const quantile = (part) => `histogram_quantile(s.histogram, ${part}, s.session_id, s.min_ns, s.max_ns)`;
    const rows = await sql(`SELECT f.name, s.self_ns, s.total_ns, s.calls, s.min_ns, s.max_ns,
        (SELECT sum(p.total_ns) / nullif(sum(p.calls), 0) FROM call_paths p WHERE p.session_id = s.session_id AND p.function_id = s.function_id) AS mean_ns,
        ${quantile(0.5)} AS p50, ${quantile(0.95)} AS p95,
        ${quantile(0.99)} AS p99, sum(s.self_ns) OVER () AS whole, sum(s.calls) OVER () AS counted
        FROM function_stats s JOIN functions f USING (function_id) WHERE s.session_id = ${WHOLE}`);
    const wanted = new Map(rows.map((row) => [row.name, row]));
    const shown = await grid(page, "grid");
    assert.ok(shown.length > 5 && shown.length === rows.length, `${shown.length} of ${rows.length}`);
    for (const [name, self, total, calls, mean, min, p50, p95, p99, max] of shown) {
        const row = wanted.get(name.replace(/recorded_program.*|lib.*/, "")) ?? wanted.get([...wanted.keys()].find((one) => name.startsWith(one)));
        assert.ok(row, name);
        assert.equal(self, `${percent(row.self_ns, row.whole)}${duration(row.self_ns)}`, name);
        assert.equal(total, row.calls === 0 ? "no end" : duration(row.total_ns), name);
        assert.equal(calls, compact(row.calls), name);
        assert.deepEqual([mean, min, p50, p95, p99, max], [row.mean_ns, row.min_ns, row.p50, row.p95, row.p99, row.max_ns].map(duration), name);
    }
    await page.getByText(`${count(rows.length)} of ${count(rows.length)} functions, ${percent(1, 1)} of all time, ${compact(rows[0].counted)} calls`).waitFor();
    await page.close();
});

test("the call tree: the outermost calls and what they called", async () => {
    const { compact, duration, percent } = format;
    const page = await openPage(`/sessions/${WHOLE}?view=tree`);
    await page.locator("[role=treegrid] .rows .mono").first().waitFor();
    await page.getByRole("treegrid").press("ArrowRight");
    await page.locator("[role=treegrid] .rows [aria-level='2']").first().waitFor();
    const rows = await sql(`SELECT f.name, p.total_ns, p.self_ns, p.calls, p.parent_path_id AS parent,
        (SELECT sum(total_ns) FROM call_paths r WHERE r.session_id = p.session_id AND r.parent_path_id IS NULL) AS whole
        FROM call_paths p JOIN functions f USING (function_id) WHERE p.session_id = ${WHOLE}
        AND (p.parent_path_id IS NULL OR p.parent_path_id IN (SELECT path_id FROM call_paths WHERE parent_path_id IS NULL))`);
    const line = (row) => [`${percent(row.total_ns, row.whole)}${duration(row.total_ns)}`, duration(row.self_ns), compact(row.calls)].join(" | ");
    const shown = await grid(page, "treegrid");
    assert.ok(shown.length >= 3);
    for (const [name, total, self, calls] of shown) {
        const row = rows.find((one) => name.startsWith(one.name) && line(one) === [total, self, calls].join(" | "));
        assert.ok(row, `${[name, total, self, calls].join(" | ")}\n${rows.map((one) => `${one.name} | ${line(one)}`).join("\n")}`);
    }
    await page.close();
});

test("losses: gaps, and functions that were not instrumented", async () => {
    const { bytes, count, duration } = format;
    const page = await openPage(`/sessions/${FALLEN}?view=missing`);
    const table = (name) => page.getByRole("region", { name, exact: true }).locator("tbody tr");
    await table("Gaps").first().waitFor();
    const gaps = await sql(`SELECT t.name, g.reason, g.calls, g.start_ns, g.end_ns FROM gaps g LEFT JOIN streams s USING (stream_id)
        LEFT JOIN threads t USING (thread_id) WHERE g.session_id = ${FALLEN} ORDER BY g.start_ns`);
    const times = (gap) => [duration(gap.start_ns), duration(gap.end_ns - gap.start_ns)];
    const waits = gaps.filter(({ reason }) => reason === "waited");
    assert.deepEqual(
        await texts(table("Gaps")),
        gaps.filter((gap) => !waits.includes(gap)).map((gap) => [gap.name, gap.reason.replaceAll("_", " "), count(gap.calls), ...times(gap)]),
    );
    assert.deepEqual(await texts(table("Waits for the recorder")), waits.map((gap) => [gap.name, "waited for the recorder", "none lost", ...times(gap)]));
    const waited = duration(waits.reduce((sum, gap) => sum + gap.end_ns - gap.start_ns, 0));
    await page.getByText(`Threads waited for the recorder ${format.counted(waits.length, "time")}, ${waited} in all.`).waitFor();
    const unhooked = await sql(`SELECT u.name, u.module, u.size_bytes, u.reason FROM unhooked_functions u WHERE u.session_id = ${FALLEN}`);
    const wanted = unhooked.map((row) => [row.name, format.fileName(row.module), bytes(row.size_bytes), row.reason].join(" | ")).sort();
    const shown = (await texts(table("Functions not instrumented"))).map((row) => row.join(" | ")).sort();
    assert.deepEqual(shown, wanted.slice(0, 500));
    await page.getByRole("heading", { name: new RegExp(`^${count(unhooked.length)} functions? that`) }).waitFor();
    await page.close();
});

test("threads and what they waited for", async () => {
    const { compact, duration } = format;
    const page = await openPage(`/sessions/${WHOLE}?view=overview`);
    await checkPanel(page, "Threads", (row) => [
        undefined, row.tid, compact(row.calls), duration(row.run_ns), undefined, duration(row.cpu_ns), duration(row.waiting_ns),
        duration(row.ready_ns), row.waited_ns > 0 ? duration(row.waited_ns) : "never", row.dropped_calls > 0 ? row.dropped_calls : "none",
    ]);
    const [main] = await sql(`SELECT sum(x.cpu_ns) AS cpu_ns, sum(x.waiting_ns) AS waiting_ns FROM thread_times x JOIN threads t
        ON t.session_id = x.session_id AND t.number = x.thread_number WHERE x.session_id = ${WHOLE} AND t.is_main`);
    assert.ok(main.cpu_ns >= 5000000 && main.waiting_ns >= 2000000);
    const [row] = (await texts(rowsOf(page, "Threads"))).filter((cells) => cells[0].endsWith("main"));
    assert.deepEqual(row.slice(5, 7), [duration(main.cpu_ns), duration(main.waiting_ns)]);
    await page.close();
});

test("marks, triggers, decisions, calls not stored, processes and modules", async () => {
    const { compact, count, duration, percent } = format;
    const page = await openPage(`/sessions/${WHOLE}?view=overview`);
    const marks = await checkPanel(page, "Marks", (row) => [
        row.name, duration(row.at_ns), row.end_ns === null ? "–" : duration(row.end_ns - row.at_ns), row.source,
    ]);
    assert.deepEqual(marks, [["load", "2.00 µs", "3.00 µs", "app"], ["rest", "6.00 µs", "–", "cli"]]);
    await checkPanel(page, "Triggers that fired", (row) => [
        duration(row.at_ns), row.event.replaceAll("_", " "), row.subject, row.event === "slow_call" ? duration(row.value) : count(row.value),
        row.actions, row.suppressed > 0 ? count(row.suppressed) : "none",
    ]);
    await checkPanel(page, "Decisions of the overhead budget", (row) => [
        duration(row.at_ns), row.what, row.name, row.reason, compact(row.total_calls), percent(row.overhead_ppm, 1e6), percent(row.budget_ppm, 1e6),
    ]);
    await checkPanel(page, "Calls that were counted but not stored", (row) => [row.name, row.reason, count(row.calls), duration(row.total_ns)]);
    const processes = await sql(`SELECT pid, executable, how, exit_code FROM processes WHERE session_id = ${WHOLE} ORDER BY number`);
    assert.deepEqual(
        await texts(rowsOf(page, "Processes")),
        processes.map((row) => [String(row.pid), format.fileName(row.executable), row.how, `exit ${row.exit_code}`]),
    );
    const modules = await sql(`SELECT m.path, lower(hex(m.build_id)) AS build, sm.hooked_count AS hooked, sm.function_count AS functions
        FROM session_modules sm JOIN modules m USING (module_id) WHERE sm.session_id = ${WHOLE}`);
    assert.deepEqual(
        (await texts(rowsOf(page, "Modules"))).sort(),
        modules.map((row) => [format.fileName(row.path), row.build.slice(0, 10), count(row.hooked), count(row.functions)]).sort(),
    );
    await page.close();
});

test("a killed session: the last hundred calls of each thread", async () => {
    const { duration } = format;
    const page = await openPage(`/sessions/${KILLED}?view=overview`);
    const rows = await checkPanel(page, "Last calls, at most 100 of each thread, latest first", (row) => [
        row.thread, row.depth, row.name, duration(row.start_ns), duration(row.duration_ns), row.ending,
    ]);
    const threads = await sql(`SELECT name FROM threads WHERE session_id = ${KILLED}`);
    assert.deepEqual(threads.map(({ name }) => rows.filter((row) => row[0] === name).length), [100, 100]);
    await page.close();
});

test("the last hundred calls of a thread are right despite earlier losses", async () => {
    const { duration } = format;
    const streams = await sql(`SELECT s.stream_id, s.calls, t.name, (SELECT max(call_id) + 1 - (s.stream_id << 38) FROM calls c
        WHERE c.stream_id = s.stream_id) AS numbered FROM streams s JOIN threads t USING (thread_id) WHERE s.session_id = ${GAPPED}`);
    assert.ok(streams.some((stream) => stream.numbered >= stream.calls + 100), JSON.stringify(streams));
    const wanted = [];
    for (const { stream_id: stream, name } of streams) {
        const calls = await sql(`SELECT c.depth, f.name, c.start_ns, c.duration_ns, c.ending FROM calls c JOIN functions f USING (function_id)
            WHERE c.stream_id = ${stream} ORDER BY c.call_id DESC LIMIT 100`);
        assert.equal(calls.length, 100);
        wanted.push(...calls.map((row) => [name, String(row.depth), row.name, duration(row.start_ns), duration(row.duration_ns), row.ending]));
    }
    const page = await openPage(`/sessions/${GAPPED}?view=overview`);
    const panel = page.getByRole("region", { name: "Last calls, at most 100 of each thread, latest first", exact: true });
    const sorted = (rows) => rows.map((row) => row.join(" | ")).sort();
    await comesTo(async () => sorted(await texts(panel.locator("tbody tr"))), sorted(wanted));
    await page.close();
});

test("findings: the list, the state, and the history of the object", async () => {
    const { count } = format;
    const page = await openPage("/zombies?finding=1");
    await checkPanel(page, "Findings", (row) => [
        row.state, row.kind.replaceAll("_", " "), [row.class, row.selector].filter(Boolean).join(" ") || "–", row.used_in || "–",
        row.freed_in || "–", row.allocated_in || "–", count(row.reports), count(row.sessions), count(row.devices),
    ]);
    const { percent } = format;
    const watched = await checkPanel(page, "Heap blocks that were watched, latest sessions first", (row) => [
        row.command, count(row.allocations), count(row.guarded), percent(row.guarded, row.allocations), count(row.not_sampled),
        count(row.no_block), count(row.over_memory), count(row.bad_size), count(row.refused), count(row.recycled),
    ]);
    assert.ok(watched.length > 0);
    const history = await checkPanel(page, "History of the object, in order", (row) => [row.event, count(row.owners), row.function || "–", row.tid]);
    assert.deepEqual(history.map((row) => row.slice(0, 3)), [["allocation", "1", "make_block"], ["retain", "2", "use_block"], ["release", "1", "–"]]);
    await page.close();
});

test("a function: its sums, each percentile, callers and callees", async () => {
    const { count, counted, duration, percent } = format;
    const quantile = (part) => `histogram_quantile(s.histogram, ${part}, s.session_id, s.min_ns, s.max_ns)`;
    const [fn] = await sql(`SELECT s.*, m.path, ${quantile(0.5)} AS p50_ns, ${quantile(0.9)} AS p90_ns, ${quantile(0.95)} AS p95_ns,
        ${quantile(0.99)} AS p99_ns FROM function_stats s JOIN functions f USING (function_id) JOIN modules m USING (module_id)
        WHERE s.session_id = ${WHOLE} AND f.name = 'hash_word'`);
    const page = await openPage(`/sessions/${WHOLE}?view=function&function=${fn.function_id}`);
    await page.getByText(`${counted(fn.calls, "call")}, ${duration(fn.total_ns)} total, ${duration(fn.self_ns)} self`).waitFor();
    await page.getByText(fn.path).waitFor();
    assert.deepEqual(
        await page.getByRole("group", { name: "Calls near" }).getByRole("button").allTextContents(),
        ["min", "p50", "p90", "p95", "p99", "max"].map((key) => `${key} ${duration(fn[`${key}_ns`])}`),
    );
    for (const key of ["min", "p50", "p90", "p95", "p99", "max"]) {
        await page.getByRole("group", { name: "Calls near" }).getByRole("button", { name: `${key} `, exact: false }).click();
        await page.waitForURL(/range=/);
        const near = await checkPanel(page, "Calls of this duration, in order of entry, at most 100", (row) => [duration(row.start_ns)]);
        assert.ok(near.length > 0, key);
    }
    for (const side of ["Callers", "Callees"]) {
        const rows = await checkPanel(page, side, (row) => [row.name, count(row.calls), duration(row.total_ns)]);
        const link = new URL(await page.getByRole("region", { name: side, exact: true }).getByRole("link", { name: "SQL" }).getAttribute("href"), base);
        const times = (await rowsOfLink(link)).map((row) => row.total_ns);
        const whole = times.reduce((sum, time) => sum + time, 0);
        assert.deepEqual((await texts(rowsOf(page, side))).map((row) => row[3]), times.map((time) => percent(time, whole)));
        assert.ok(rows.length > 0);
    }
    await page.close();
});

test("the chart of a function's durations has the same numbers as a table", async () => {
    const [fn] = await sql(`SELECT s.function_id AS id, s.calls FROM function_stats s JOIN functions f USING (function_id)
        WHERE s.session_id = ${WHOLE} AND f.name = 'hash_word'`);
    const page = await openPage(`/sessions/${WHOLE}?view=function&function=${fn.id}`);
    await page.locator(".chart canvas").waitFor();
    await page.locator("details.twin summary").click();
    const rows = await texts(rowsOf(page, "Durations, as a table"));
    assert.ok(rows.length > 1);
    assert.equal(rows.reduce((sum, row) => sum + Number(row[2].replaceAll(",", "")), 0), fn.calls);
    await page.close();
});

test("numbers are written as Intl writes them, without it", () => {
    const whole = new Intl.NumberFormat("en");
    const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
    const age = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
    for (const value of [0, 7, 999, 1000, 9999, 1234567, 987654321012, 12.5, 1234.567, -4321]) {
        assert.equal(format.count(value), whole.format(value));
    }
    for (const value of [9999, 10000, 12345, 85000, 99949, 99951, 999949, 999951, 1234567, 45678901, 999999999, 1.26e9, 987654321012, 3.21e12]) {
        assert.equal(format.compact(value), value < 10000 ? whole.format(value) : short.format(value), String(value));
    }
    for (const [seconds, unit, value] of [[30, "second", 30], [60, "minute", 1], [3000, "minute", 50], [3600, "hour", 1], [80000, "hour", 22], [90000, "day", 1], [864000, "day", 10]]) {
        assert.equal(format.ago("0", seconds * 1000), age.format(-value, unit));
    }
    assert.match(format.dateTime("1764172945000000000"), /^2[567] Nov 2025, \d\d:\d\d:25$/);
});

test("no page asked any other server for anything, or logged an error", () => {
    assert.ok(base);
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
