// Every number that the lists and tables without a link to their SQL show, against what SQL answers.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
    base, change, checkPanel, clean, foreign, format, openPage, problems, record, rowsOf, sql, start, stop, texts,
} from "./lab.mjs";

const WHOLE = 1;
const FALLEN = 2;

before(async () => {
    clean();
    assert.equal(record("whole", [], "300", "0").status, 0);
    record("fallen", ["--zombies", "heap"], "crash");
    await start();
    change(`INSERT INTO zombie_events (report_id, number, event, owners, tid, ticks, function)
        SELECT r.report_id, e.number, e.event, e.owners, r.tid, 0, e.function FROM zombie_reports r,
            (SELECT 0 AS number, 'allocation' AS event, 1 AS owners, 'make_block' AS function
             UNION ALL SELECT 1, 'retain', 2, 'use_block' UNION ALL SELECT 2, 'release', 1, '') e
        WHERE r.report_id = (SELECT max(report_id) FROM zombie_reports);
        INSERT INTO gaps (session_id, stream_id, number, reason, calls, events, start_ns, end_ns)
        SELECT ${FALLEN}, stream_id, 70, 'ring_full', 5, 10, 1000, 3500 FROM streams WHERE session_id = ${FALLEN} LIMIT 1;
        INSERT INTO reports (session_id, number, monitor, kind, process_number, thread_number, at_ns, payload)
        SELECT session_id, 900, 'threads', 'times', process_number, number, 9000000,
            json_object('steps', json_array(json_array(number, 9000000, 8000000, 5000000, 1000000)))
        FROM threads WHERE session_id = ${WHOLE} AND is_main;
        UPDATE sessions SET lost_calls = 5 WHERE session_id = ${FALLEN}`);
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
        s.ended_realtime_ns / 1000 - s.started_realtime_ns / 1000 AS us FROM sessions s JOIN devices d USING (device_id) ORDER BY s.session_id DESC`);
    const shown = await texts(rows);
    wanted.forEach((row, index) => {
        const [, state, what, device, , took, calls, lost] = shown[index];
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
    await page.context().close();
});

test("the head of a session: its tiles and its loss", async () => {
    const { bytes, compact, count } = format;
    for (const session of [WHOLE, FALLEN]) {
        const page = await openPage(`/sessions/${session}`);
        await tile(page, "Stored").waitFor();
        const [row] = await sql(`SELECT stored_calls AS calls, stored_bytes AS bytes,
            (SELECT count(*) FROM function_stats f WHERE f.session_id = s.session_id) AS functions,
            (SELECT count(*) FROM call_paths p WHERE p.session_id = s.session_id) AS paths,
            (SELECT count(*) FROM threads t WHERE t.session_id = s.session_id) AS threads FROM sessions s WHERE session_id = ${session}`);
        assert.deepEqual(
            await Promise.all(["Calls", "Functions", "Call paths", "Threads", "Stored"].map((label) => tile(page, label).textContent())),
            [compact(row.calls), count(row.functions), compact(row.paths), count(row.threads), bytes(row.bytes)],
        );
        await page.getByText(session === WHOLE ? "No loss is known." : "5 calls lost.").waitFor();
        await page.context().close();
    }
});

const grid = (page, role) =>
    page.locator(`[role=${role}] .rows [role=row]`).evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent.trim())));

test("the table of functions: every column", async () => {
    const { compact, count, duration, percent } = format;
    const page = await openPage(`/sessions/${WHOLE}`);
    await page.locator("[role=grid] .rows .mono").first().waitFor();
    const quantile = (part) => `histogram_quantile(s.histogram, ${part}, s.session_id, s.min_ns, s.max_ns)`;
    const rows = await sql(`SELECT f.name, s.self_ns, s.total_ns, s.calls, s.min_ns, s.max_ns, ${quantile(0.5)} AS p50, ${quantile(0.95)} AS p95,
        ${quantile(0.99)} AS p99, sum(s.self_ns) OVER () AS whole, sum(s.calls) OVER () AS counted
        FROM function_stats s JOIN functions f USING (function_id) WHERE s.session_id = ${WHOLE}`);
    const wanted = new Map(rows.map((row) => [row.name, row]));
    const shown = await grid(page, "grid");
    assert.ok(shown.length > 5 && shown.length === rows.length, `${shown.length} of ${rows.length}`);
    for (const [name, self, total, calls, , min, p50, p95, p99, max] of shown) {
        const row = wanted.get(name.replace(/recorded_program.*|lib.*/, "")) ?? wanted.get([...wanted.keys()].find((one) => name.startsWith(one)));
        assert.ok(row, name);
        assert.equal(self, `${percent(row.self_ns, row.whole)}${duration(row.self_ns)}`, name);
        assert.equal(total, row.calls === 0 ? "no end" : duration(row.total_ns), name);
        assert.equal(calls, compact(row.calls), name);
        assert.deepEqual([min, p50, p95, p99, max], [row.min_ns, row.p50, row.p95, row.p99, row.max_ns].map(duration), name);
    }
    await page.getByText(`${count(rows.length)} of ${count(rows.length)} functions, ${percent(1, 1)} of all time, ${compact(rows[0].counted)} calls`).waitFor();
    await page.context().close();
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
    await page.context().close();
});

test("what is missing: gaps, and functions that were not instrumented", async () => {
    const { bytes, count, duration } = format;
    const page = await openPage(`/sessions/${FALLEN}?view=missing`);
    const table = (name) => page.getByRole("region", { name, exact: true }).locator("tbody tr");
    await table("Gaps").first().waitFor();
    const gaps = await sql(`SELECT t.name, g.reason, g.calls, g.start_ns, g.end_ns FROM gaps g LEFT JOIN streams s USING (stream_id)
        LEFT JOIN threads t USING (thread_id) WHERE g.session_id = ${FALLEN} ORDER BY g.start_ns`);
    assert.deepEqual(
        await texts(table("Gaps")),
        gaps.map((gap) => [gap.name, gap.reason.replaceAll("_", " "), count(gap.calls), duration(gap.start_ns), duration(gap.end_ns - gap.start_ns)]),
    );
    const unhooked = await sql(`SELECT u.name, u.module, u.size_bytes, u.reason FROM unhooked_functions u WHERE u.session_id = ${FALLEN}`);
    const wanted = unhooked.map((row) => [row.name, format.fileName(row.module), bytes(row.size_bytes), row.reason].join(" | ")).sort();
    const shown = (await texts(table("Functions not instrumented"))).map((row) => row.join(" | ")).sort();
    assert.deepEqual(shown, wanted.slice(0, 500));
    await page.getByRole("heading", { name: new RegExp(`^${count(unhooked.length)} functions? that`) }).waitFor();
    await page.context().close();
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
    await page.context().close();
});

test("findings: the list, the state, and the history of the object", async () => {
    const { count } = format;
    const page = await openPage("/zombies?finding=1");
    await checkPanel(page, "Findings", (row) => [
        row.state, row.kind.replaceAll("_", " "), [row.class, row.selector].filter(Boolean).join(" ") || "–", row.used_in || "–",
        row.freed_in || "–", row.allocated_in || "–", count(row.reports), count(row.sessions), count(row.devices),
    ]);
    const history = await checkPanel(page, "History of the object, in order", (row) => [row.event, count(row.owners), row.function || "–", row.tid]);
    assert.deepEqual(history.map((row) => row.slice(0, 3)), [["allocation", "1", "make_block"], ["retain", "2", "use_block"], ["release", "1", "–"]]);
    await page.context().close();
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
    await page.context().close();
});

test("no page asked any other server for anything, or logged an error", () => {
    assert.ok(base);
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
