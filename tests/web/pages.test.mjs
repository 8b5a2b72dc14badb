// The pages about calls, on real recordings: what they show is what SQL answers.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import {
    base, change, checkInert, checkLooks, checkPanel, clean, database, foreign, format, openPage, openTwin, problems, record,
    rowsOf, saveOne, sql, start, stop, texts,
} from "./lab.mjs";

const SIDE = 8; // sessions of each side of the comparison
const A = "1,2,3,4,5,6,7,8";
const B = "9,10,11,12,13,14,15,16";
const VALUED = 17;
const FALLEN = 18;

before(async () => {
    clean();
    for (let i = 0; i < SIDE; i++) {
        assert.equal(record("before", [], "200", "0").status, 0);
    }
    for (let i = 0; i < SIDE; i++) {
        assert.equal(record("after", [], "200", "20000").status, 0);
    }
    assert.equal(record("valued", ["--value", "parse_line(number:int) -> int", "--cpu-time", "parse_line"], "300", "0").status, 0);
    record("fallen", ["--zombies", "heap"], "crash");
    await start();
});

after(stop);

test("the overview shows what SQL answers", async () => {
    const { compact, count, duration, percent } = format;
    const page = await openPage(`/sessions/${VALUED}?view=overview`);
    const hot = await checkPanel(page, "Where the time goes", (row) => [
        row.name,
        percent(row.share, 1),
        duration(row.self_ns),
        compact(row.calls),
    ]);
    assert.ok(hot.some(([name]) => name === "fibonacci"));
    await checkPanel(page, "Single calls with most time of their own", (row) => [
        undefined,
        row.thread,
        duration(row.self_ns),
        duration(row.duration_ns),
    ]);
    const threads = await checkPanel(page, "Threads", (row) => [
        undefined,
        row.tid,
        compact(row.calls),
        duration(row.run_ns),
        count(row.deepest),
    ]);
    assert.equal(threads.length, 2);
    await checkPanel(page, "Functions that were not instrumented, by reason", (row) => [
        row.reason,
        count(row.functions),
        row.example,
    ]);
    const slow = page.getByRole("region", { name: "Single calls with most time of their own" });
    const [slowest] = await sql(`SELECT call_id FROM slow_calls WHERE session_id = ${VALUED} ORDER BY self_ns DESC LIMIT 1`);
    const callers = await sql(
        `SELECT f.name, a.duration_ns FROM ancestors(${slowest.call_id}) a JOIN functions f USING (function_id)`,
    );
    await slow.getByRole("button", { name: /^Callers of / }).first().click();
    const said = callers.map((row) => `← ${row.name} (${duration(row.duration_ns)})`).join(" ");
    await slow.getByText(said || "called by nothing that was recorded", { exact: true }).waitFor();
    await page.context().close();
});

test("a crashed session shows its open stack, its last calls and what it did to the heap", async () => {
    const { count, duration } = format;
    const page = await openPage(`/sessions/${FALLEN}?view=overview`);
    const open = await checkPanel(page, "Open at the end, innermost first", (row) => [
        row.thread,
        row.depth,
        row.name,
        duration(row.start_ns),
    ]);
    assert.deepEqual(
        open.map((row) => row[2]),
        ["fall", "main"],
    );
    await checkPanel(page, "Last calls, at most 100 of each thread, latest first", (row) => [
        row.thread,
        row.depth,
        row.name,
        duration(row.start_ns),
        duration(row.duration_ns),
        row.ending,
    ]);
    await checkPanel(page, "Uses of freed memory and other heap mistakes", (row) => [
        row.kind.replaceAll("_", " "),
        row.used_in,
        row.freed_in,
        row.allocated_in,
        count(row.reports),
    ]);
    await page.getByRole("link", { name: "use after free" }).click();
    await page.waitForURL(/zombies\?finding=1/);
    for (const [title, name] of [
        ["Allocated", "make_block"],
        ["Freed", "drop_block"],
        ["Used", "use_block"],
    ]) {
        await page.getByRole("region", { name: title, exact: true }).getByText(name, { exact: true }).first().waitFor();
    }
    await checkPanel(page, "Reports, latest first", (row) => [row.command, row.device, row.thread_name, duration(row.at_ns), row.access]);
    await page.context().close();
});

// The call of parse_line that does more than others.
async function slowCall() {
    const [call] = await sql(
        `SELECT c.call_id, c.start_ns, c.duration_ns, c.self_ns FROM arguments a JOIN calls c USING (call_id)
         WHERE a.session_id = ${VALUED} AND a.position = 1 AND a.value = 77`,
    );
    return call;
}

// The calls that overlap a window, as the timeline's table says them.
async function callsOf(from, to) {
    const { duration } = format;
    const calls = await sql(
        `SELECT coalesce(t.name, '') AS thread, c.depth, f.name, c.start_ns, c.duration_ns, c.self_ns
         FROM calls c JOIN functions f USING (function_id) JOIN threads t ON t.thread_id = c.thread_id
         WHERE c.session_id = ${VALUED} AND c.start_ns <= ${to} AND c.end_ns >= ${from}`,
    );
    return calls
        .map((call) =>
            [call.thread, call.depth, call.name, duration(call.start_ns), duration(call.duration_ns), duration(call.self_ns)].join(" | "),
        )
        .sort();
}

const single = async (page) =>
    (await texts(rowsOf(page, "Calls of the timeline")))
        .filter((row) => row[6] === "1")
        .map((row) => row.slice(0, 6).join(" | "))
        .sort();

test("the timeline shows every single call of a window, and those open at its start", async () => {
    // The quickest 24 calls in a row: no pause makes the others too narrow to be bars of their own.
    const [{ from, length }] = await sql(
        `SELECT start_ns AS "from", lead(start_ns, 24) OVER (ORDER BY call_id) - start_ns AS length FROM calls
         WHERE session_id = ${VALUED} AND stream_id = (SELECT s.stream_id FROM streams s JOIN threads t USING (thread_id)
           WHERE s.session_id = ${VALUED} AND t.is_main) ORDER BY length IS NULL, length LIMIT 1`,
    );
    const to = from + length;
    const page = await openPage(`/sessions/${VALUED}?view=timeline&from=${from}&to=${to}`);
    const wanted = await callsOf(from, to);
    assert.ok(wanted.length > 5, wanted.join("\n"));
    await openTwin(page);
    await rowsOf(page, "Calls of the timeline").first().waitFor();
    assert.deepEqual(await single(page), wanted);
    assert.ok(wanted.some((row) => row.startsWith("recorded_progra | 0 | main")));
    await page.context().close();
});

const inked = (page) =>
    page.locator("canvas").first().evaluate((canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return data.filter((value, index) => index % 4 === 3 && value > 0).length;
    });

test("merged bars say how many calls they hold, and all add up to those recorded", async () => {
    const page = await openPage(`/sessions/${VALUED}?view=timeline`);
    await page.waitForFunction(() => document.querySelector(".timeline canvas")?.clientHeight > 100);
    await page.waitForFunction(() => !document.querySelector("canvas.stale"));
    assert.ok((await inked(page)) > 5000);
    const [{ calls }] = await sql(`SELECT sum(calls) AS calls FROM streams WHERE session_id = ${VALUED}`);
    const streams = await sql(`SELECT stream_id FROM streams WHERE session_id = ${VALUED}`);
    let sum = 0;
    for (const { stream_id: stream } of streams) {
        const address = new URL(`/api/v1/sessions/${VALUED}/calls?stream=${stream}&width=50`, base);
        const answer = await (await fetch(address)).json();
        assert.ok(answer.rows.length < 50 * 12 + 300, String(answer.rows.length));
        sum += answer.rows.reduce((before, row) => before + row[8], 0);
    }
    assert.equal(sum, calls);
    await page.context().close();
});

test("W S A D, wheel and drag move, zoom and select; the address keeps it all", async () => {
    const { count, duration } = format;
    const [span] = await sql(
        `SELECT min(first_enter_ns) AS "from", max(last_leave_ns) + 1 AS "to" FROM streams WHERE session_id = ${VALUED}`,
    );
    const length = span.to - span.from;
    const page = await openPage(`/sessions/${VALUED}?view=timeline`);
    const timeline = page.getByRole("group", { name: "Timeline" });
    await timeline.waitFor();
    const shown = async (from, to) => {
        await page.waitForURL((url) => url.searchParams.get("to") === String(to) && url.searchParams.get("from") === String(from));
    };
    await timeline.focus();
    await page.keyboard.press("w");
    const half = [Math.round(span.from + length / 4), Math.round(span.from + length / 4) + Math.round(length / 2)];
    await shown(...half);
    await page.keyboard.press("Home");
    await page.waitForURL((url) => !url.searchParams.has("from"));
    await page.waitForFunction(() => !document.querySelector("canvas.stale"));
    const box = await page.locator(".timeline canvas").boundingBox();
    await page.mouse.move(box.x + box.width * 0.01, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.99, box.y + 60, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(/area=\d+-\d+/);
    const rows = await checkPanel(page, "Calls that began in the selection", (row) => [
        row.name,
        count(row.calls),
        duration(row.self_ns),
        undefined,
        duration(row.total_ns),
        duration(row.max_ns),
    ]);
    const [from, to] = new URL(page.url()).searchParams.get("area").split("-").map(Number);
    const [{ calls }] = await sql(
        `SELECT count(*) AS calls FROM calls WHERE session_id = ${VALUED} AND start_ns >= ${from} AND start_ns < ${to}`,
    );
    assert.equal(rows.reduce((sum, row) => sum + Number(row[1].replaceAll(",", "")), 0), calls);
    await page.reload();
    await page.getByRole("region", { name: "Calls that began in the selection" }).locator("tbody tr").first().waitFor();
    await page.getByRole("button", { name: /^Remove: / }).click();
    await page.waitForURL((url) => !url.searchParams.has("area"));
    await page.getByRole("region", { name: "Calls that began in the selection" }).waitFor({ state: "detached" });
    await page.locator(".timeline canvas").hover({ position: { x: 400, y: 50 } }); // the page may have scrolled
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -100);
    await page.keyboard.up("Control");
    await page.waitForURL(/from=\d+&to=\d+/);
    await page.context().close();
});

test("a click on a call shows its values, callers and callees; search finds the next call", async () => {
    const { count, duration } = format;
    const call = await slowCall();
    const from = call.start_ns - 100;
    const to = call.start_ns + call.duration_ns + 100;
    change(`UPDATE call_costs SET allocated_bytes = 40960 WHERE call_id = ${call.call_id}`); // as of a Java call
    const page = await openPage(`/sessions/${VALUED}?view=timeline&from=${from}&to=${to}`);
    await page.waitForFunction(() => document.querySelector("canvas")?.clientHeight > 100 && !document.querySelector("canvas.stale"));
    const box = await page.locator(".timeline canvas").boundingBox();
    await page.mouse.click(box.x + box.width / 2, box.y + 34 + 20 + 2 * 18 + 8);
    await page.waitForURL(new RegExp(`call=${call.call_id}$`));
    const details = page.getByRole("region", { name: "Selected call" });
    await details.getByText(`${duration(call.duration_ns)}, ${duration(call.self_ns)} of it itself`).waitFor();
    const [cost] = await sql(`SELECT cpu_ns, cpu_self_ns FROM call_costs WHERE call_id = ${call.call_id}`);
    const waited = Math.max(0, call.duration_ns - cost.cpu_ns);
    await details
        .getByText(`${duration(cost.cpu_ns)}, ${duration(cost.cpu_self_ns)} of it itself; it waited ${duration(waited)}`)
        .waitFor();
    assert.equal(await details.locator("dt", { hasText: "Allocated" }).locator("+ dd").textContent(), format.bytes(40960));
    const values = await checkPanel(page, "Values", (row) => [row.position === 0 ? "result" : row.name, row.type ?? row.kind, row.value]);
    assert.deepEqual(values[0], ["number", "int", 77]);
    const callers = await checkPanel(page, "Callers, innermost first", (row) => [row.name, duration(row.duration_ns), duration(row.self_ns)]);
    assert.deepEqual(
        callers.map((row) => row[0]),
        ["load_file", "main"],
    );
    await checkPanel(page, "Callees", (row) => [row.name, count(row.calls), duration(row.total_ns), duration(row.longest_ns)]);
    await page.goto(new URL(`/sessions/${VALUED}?view=timeline`, base).href);
    await page.getByRole("searchbox").fill("fibonacci");
    const found = await sql(
        `SELECT c.call_id FROM calls c JOIN functions f USING (function_id)
         WHERE c.session_id = ${VALUED} AND f.name = 'fibonacci' LIMIT 2`,
    );
    for (const { call_id: id } of found) {
        await page.getByRole("button", { name: "Next call of fibonacci" }).click();
        await page.waitForURL(new RegExp(`call=${id}`));
        await details.getByText(String(id), { exact: true }).waitFor();
    }
    await page.context().close();
});

test("a slow call is explained beside a typical one", async () => {
    const { duration } = format;
    const call = await slowCall();
    const page = await openPage(`/sessions/${VALUED}?view=why&call=${call.call_id}`);
    await page.getByRole("heading", { name: `Why did parse_line take ${duration(call.duration_ns)}?` }).waitFor();
    const rows = await texts(rowsOf(page, "Callees of both calls, greatest difference first"));
    const below = await sql(
        `SELECT f.name, d.depth - c.depth AS level, count(*) AS calls, sum(d.self_ns) AS self_ns FROM calls c
         JOIN descendants(c.call_id) d JOIN functions f ON f.function_id = d.function_id
         WHERE c.call_id = ${call.call_id} GROUP BY 1, 2`,
    );
    for (const part of below) {
        const row = rows.find((one) => one[0] === part.name && one[1] === String(part.level));
        assert.equal(row[3], duration(part.self_ns));
        assert.equal(row[5], String(part.calls));
    }
    const check = rows.find((row) => row[0] === "check_line");
    assert.equal(check[5], "401");
    assert.equal(check[6], "1");
    await page.context().close();
});

test("flame graphs show call paths, callers and callees as SQL has them", async () => {
    const { count, duration } = format;
    const page = await openPage(`/sessions/${VALUED}?view=flame`);
    await openTwin(page);
    const label = "Call paths, callers above callees, as a table";
    await rowsOf(page, label).first().waitFor();
    const wanted = await sql(`SELECT name, depth, total_ns, self_ns, calls FROM flame(${VALUED}) WHERE total_ns > 0`);
    const line = (row) => row.slice(0, 5).join(" | ");
    const all = wanted.map((row) => line([row.name, row.depth, duration(row.total_ns), duration(row.self_ns), count(row.calls)]));
    const shown = (await texts(rowsOf(page, label))).map(line);
    assert.ok(shown.length > 5);
    shown.forEach((row) => assert.ok(all.includes(row), row));
    const flame = page.getByRole("group", { name: "Call paths, callers above callees", exact: true });
    await flame.focus();
    await page.keyboard.press("ArrowDown");
    await page.waitForURL(/frame=/);
    const [top] = await sql(`SELECT name, total_ns FROM flame(${VALUED}) WHERE depth = 0 ORDER BY total_ns DESC LIMIT 1`);
    await page.getByText(`${top.name}: ${duration(top.total_ns)}, `).waitFor();
    await page.getByRole("button", { name: "Bottom-up" }).click();
    await openTwin(page);
    const up = "Functions above their callers, as a table";
    await rowsOf(page, up).first().waitFor();
    const stats = await sql(
        `SELECT f.name, sum(p.self_ns) AS self_ns, count(*) AS paths, s.self_ns AS stated FROM call_paths p
         JOIN functions f USING (function_id) JOIN function_stats s USING (session_id, function_id)
         WHERE p.session_id = ${VALUED} GROUP BY f.function_id`,
    );
    // Each path is rounded to whole ns from the clock's ticks, and so is the function's own sum.
    stats.forEach((row) => assert.ok(Math.abs(row.self_ns - row.stated) <= row.paths, JSON.stringify(row)));
    const roots = (await texts(rowsOf(page, up))).filter((row) => row[1] === "0");
    assert.equal(roots.length, stats.filter((row) => row.self_ns > 0).length);
    for (const root of roots) {
        assert.equal(root[2], duration(stats.find((row) => row.name === root[0]).self_ns), root[0]);
    }
    await page.getByRole("link", { name: "check_line" }).first().click();
    await page.getByText(/^check_line: .* total/).first().waitFor();
    await page.context().close();
});

test("two sets are compared with a verdict, and their durations drawn", async () => {
    const { count, duration } = format;
    const page = await openPage("/compare");
    await page.getByLabel("A, before").fill(A);
    await page.getByLabel("B, after").fill(B);
    await page.getByRole("button", { name: "Compare" }).click();
    await page.waitForURL(/a=1%2C2/);
    await page.getByText("8 and 8 sessions").waitFor();
    const rows = await checkPanel(page, "Functions", (row) => [
        undefined,
        undefined,
        undefined,
        undefined,
        undefined,
        duration(row.self_ns_a),
        duration(row.self_ns_b),
        count(row.calls_a),
        count(row.calls_b),
        row.calls_change,
    ]);
    assert.ok(rows.length > 5);
    const spin = rowsOf(page, "Functions compared").filter({ hasText: "spin" });
    assert.match((await texts(spin))[0][0], /slower$/);
    await spin.getByRole("button", { name: "spin" }).click();
    await page.getByText(/Durations of spin/).waitFor();
    await page.locator(".chart canvas").waitFor();
    const [merged] = await sql(
        `SELECT sum(calls) AS calls FROM function_stats JOIN functions USING (function_id) WHERE name = 'spin' AND session_id IN (${B})`,
    );
    await page.getByText(`${count(merged.calls)} calls, half of them`).first().waitFor();
    await page.getByRole("button", { name: /^slower/ }).click();
    await page.waitForURL(/verdict=slower/);
    await page.reload();
    await rowsOf(page, "Functions compared").first().waitFor();
    for (const row of await texts(rowsOf(page, "Functions compared"))) {
        assert.match(row[0], /slower$/);
    }
    await page.getByRole("group", { name: "Call paths compared", exact: true }).waitFor();
    await page.context().close();
    const wrong = await openPage("/compare?a=nonsense:&b=2", { expects: /status of 40/ });
    await wrong.getByRole("alert").first().waitFor();
    await wrong.context().close();
});

test("a function shows its durations; percentiles and a drag over the chart lead to its calls", async () => {
    const { count, duration } = format;
    const [fn] = await sql(
        `SELECT s.*, histogram_quantile(s.histogram, 0.95, s.session_id, s.min_ns, s.max_ns) AS p95_ns
         FROM function_stats s JOIN functions f USING (function_id) WHERE f.name = 'check_line' AND s.session_id = ${VALUED}`,
    );
    const page = await openPage(`/sessions/${VALUED}?view=function&function=${fn.function_id}`);
    await page.getByText(`${count(fn.calls)} calls, ${duration(fn.total_ns)} total, ${duration(fn.self_ns)} self`).waitFor();
    await checkPanel(page, "Callers", (row) => [row.name, count(row.calls), duration(row.total_ns)]);
    await checkPanel(page, "Callees", (row) => [row.name, count(row.calls), duration(row.total_ns)]);
    await page.getByRole("button", { name: `p95 ${duration(fn.p95_ns)}` }).click();
    const title = "Calls of this duration, in order of entry, at most 100";
    const near = await checkPanel(page, title, (row) => [
        duration(row.start_ns),
        row.thread,
        duration(row.duration_ns),
        duration(row.self_ns),
    ]);
    assert.ok(near.length > 0);
    await page.getByRole("button", { name: /^Remove: / }).click();
    const box = await page.locator(".chart .u-over").boundingBox();
    await page.mouse.move(box.x + 2, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 2, box.y + 60, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(/range=\d+-\d+/);
    const all = await checkPanel(page, title, (row) => [duration(row.start_ns)]);
    assert.equal(all.length, 100);
    await page.context().close();
});

test("calls of a function are grouped by the values that they had, the slow ones first", async () => {
    const { count, duration } = format;
    const call = await slowCall();
    const [fn] = await sql(`SELECT function_id FROM calls WHERE call_id = ${call.call_id}`);
    const page = await openPage(`/sessions/${VALUED}?view=function&function=${fn.function_id}`);
    const rows = await checkPanel(page, "By value", (row) => [
        row.position === 0 ? "result" : row.name,
        row.value,
        count(row.calls),
        duration(row.total_ns),
        duration(row.p50_ns),
        duration(row.duration_ns),
        duration(row.cpu_ns),
    ]);
    const slow = rows.findIndex((row) => row[0] === "number" && row[1] === 77);
    assert.ok(slow >= 0 && slow < 20, `it is row ${slow}`); // behind calls that the machine interrupted, at most
    const panel = page.getByRole("region", { name: "By value", exact: true });
    await panel.locator("tbody tr").nth(slow).getByRole("link", { name: duration(call.duration_ns) }).click();
    await page.waitForURL(new RegExp(`call=${call.call_id}$`));
    await page.context().close();
});

test("a name leads anywhere, and sessions are chosen for a comparison in their list", async () => {
    const page = await openPage(`/sessions/${VALUED}`);
    await page.locator("[role=grid] .rows .mono").first().waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Go to" }).fill("fibon");
    await page.getByRole("option", { name: /fibonacci/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/view=function&function=\d+/);
    await page.getByRole("heading", { name: "fibonacci" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Go to" }).fill("fallen");
    await page.getByRole("option", { name: new RegExp(`session ${FALLEN}$`) }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(`/sessions/${FALLEN}$`));
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Go to" }).fill("hot spots");
    await page.getByRole("option", { name: /question$/ }).first().waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/sql\?sql=/);
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Go to" }).fill("Sessions");
    await page.keyboard.press("Enter");
    await page.locator("table.sessions tbody tr").first().waitFor();
    await page.getByRole("button", { name: "after in set B" }).first().click();
    await page.getByRole("button", { name: "before in set A" }).first().click();
    await page.getByRole("link", { name: "Compare", exact: true }).last().click();
    await page.waitForURL(new RegExp(`/compare\\?a=${SIDE}&b=${2 * SIDE}$`));
    await page.getByText("1 and 1 sessions").waitFor();
    await page.context().close();
});

const editor = (page) => page.getByRole("textbox", { name: "SQL" });

test("the console runs SQL, says what is wrong with it, and refuses what would write", async () => {
    const page = await openPage("/sql", { expects: /status of 40/ });
    await page.getByText(/^18 rows in/).waitFor();
    const run = async (text) => {
        await editor(page).click();
        await page.keyboard.press("Control+a");
        await page.keyboard.press("Delete"); // typed over, Chromium tries to keep the words' style
        await page.keyboard.insertText(text);
        await page.keyboard.press("Control+Enter");
    };
    await run(`SELECT call_id, session_id, start_ns, duration_ns FROM calls WHERE session_id = ${VALUED} LIMIT 3`);
    await page.getByText(/^3 rows in/).waitFor();
    await page.waitForURL(/sql=SELECT\+call_id/);
    const wanted = await sql(`SELECT call_id, session_id, start_ns, duration_ns FROM calls WHERE session_id = ${VALUED} LIMIT 3`);
    const shown = await texts(page.getByRole("region", { name: "Rows" }).locator("tbody tr"));
    wanted.forEach((row, index) => {
        assert.deepEqual(shown[index].slice(0, 4), [
            String(row.call_id),
            String(row.session_id),
            format.duration(row.start_ns),
            format.duration(row.duration_ns),
        ]);
    });
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
    const csv = readFileSync(await download.path(), "utf8").trim().split("\r\n");
    assert.equal(csv[0], "call_id,session_id,start_ns,duration_ns");
    assert.equal(csv[1], Object.values(wanted[0]).join(","));
    await page.getByRole("button", { name: "Chart" }).click();
    await page.locator(".chart canvas").waitFor();
    await page.getByRole("button", { name: "Table" }).click();
    await page.getByRole("link", { name: "show" }).first().click();
    await page.waitForURL(new RegExp(`sessions/${VALUED}\\?view=timeline`));
    await page.goBack();
    await editor(page).waitFor();
    await run("SELECT x FROM nowhere");
    await page.getByRole("alert").getByText("no such table: nowhere").waitFor();
    await run("DELETE FROM sessions");
    await page.getByRole("alert").getByText(/refused: DELETE/).waitFor();
    await run("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n");
    await page.getByText(/^1,000 rows in .*; there are more/).waitFor();
    await page.getByRole("button", { name: "Hot spots" }).click();
    await page.waitForURL(/p\.limit=20/);
    await page.getByLabel(":session").fill(String(VALUED));
    await page.getByLabel(":session").press("Enter");
    await page.waitForURL(new RegExp(`p\\.session=${VALUED}`));
    const hot = await sql(
        `SELECT f.name FROM function_stats s JOIN functions f USING (function_id) WHERE s.session_id = ${VALUED} ORDER BY s.self_ns DESC LIMIT 20`,
    );
    await page.getByText(new RegExp(`^${hot.length} rows in`)).waitFor();
    assert.equal((await texts(page.getByRole("region", { name: "Rows" }).locator("tbody tr")))[0][0], hot[0].name);
    await editor(page).click();
    await page.keyboard.press("Control+a");
    await page.keyboard.press("Delete");
    await page.keyboard.type("SELECT * FROM sess");
    await page.locator(".cm-tooltip-autocomplete").getByText("sessions").first().waitFor();
    await page.context().close();
});

test("the fleet page shows devices and takes commands from those who sign in", async () => {
    const page = await openPage("/fleet", { expects: /status of 4/ });
    const devices = rowsOf(page, "Devices");
    await devices.first().waitFor();
    const wanted = await sql("SELECT name, agent_version FROM devices ORDER BY name");
    const shown = await texts(devices);
    assert.equal(shown.length, wanted.length);
    assert.equal(shown[0][0], wanted[0].name);
    assert.equal(shown[0][4], wanted[0].agent_version || "–");
    await page.getByLabel("The collector's token").fill("guess");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "Give it" }).click();
    await page.getByText(/Bearer TOKEN.*missing or wrong/).waitFor();
    const token = readFileSync(`${database}.token`, "utf8").trim();
    await page.evaluate((text) => sessionStorage.setItem("token", text), token);
    await page.reload();
    await page.getByLabel(/^Command for/).selectOption("policy");
    await page.getByLabel("Its arguments, JSON").fill('{"policy": {"policy": 1, "name": "x", "no_such_key": 1}}');
    await page.getByRole("button", { name: "Give it" }).click();
    await page.getByText(/no_such_key/).last().waitFor();
    await page.getByLabel("Its arguments, JSON").fill("{ not json");
    await page.getByRole("button", { name: "Give it" }).click();
    await page.getByText(/JSON at position|property name/).waitFor();
    assert.deepEqual(await sql("SELECT * FROM commands"), []);
    await page.getByLabel("p95 of a function by device and build").fill("spin");
    await page.getByRole("button", { name: "Show" }).click();
    await checkPanel(page, "p95 of spin", (row) => [row.build, row.device, format.count(row.sessions), format.duration(row.p95_ns)]);
    await page.context().close();
});

const pages = [
    ["functions", `/sessions/${VALUED}`, "[role=grid] .rows .mono"],
    ["tree", `/sessions/${VALUED}?view=tree`, "[role=treegrid] .rows .mono"],
    ["missing", `/sessions/${VALUED}?view=missing`, "tbody tr"],
    ["overview", `/sessions/${VALUED}?view=overview`, "tbody tr"],
    ["crash", `/sessions/${FALLEN}?view=overview`, "tbody tr"],
    ["timeline", `/sessions/${VALUED}?view=timeline`, ".timeline canvas:not(.stale)"],
    ["call", `/sessions/${VALUED}?view=timeline&call=CALL`, ".call-details"],
    ["flame", `/sessions/${VALUED}?view=flame`, ".flame canvas"],
    ["around", `/sessions/${VALUED}?view=flame&mode=around`, ".flame canvas"],
    ["live", `/sessions/${VALUED}?view=live`, ".chart canvas, .tile dd"],
    ["why", `/sessions/${VALUED}?view=why&call=CALL`, "tbody tr"],
    ["list", `/?a=1&b=2`, "table.sessions tbody tr"],
    ["function", "/sessions/VALUED?view=function&function=FUNCTION", ".chart canvas"],
    ["compare", `/compare?a=${A}&b=${B}&function=1`, ".verdict"],
    ["coverage", `/coverage?a=${A}&b=${B}`, "tbody tr"],
    ["sql", "/sql", ".result tbody tr"],
    ["timelines", "/timeline?sessions=1,9,17", ".timeline canvas:not(.stale)"],
    ["zombies", "/zombies?finding=1", ".stack li"],
    ["fleet", "/fleet", "tbody tr"],
    ["empty", "/?q=no-session-has-this", ".empty"],
    ["error", "/sessions/4711", "[role=alert]"],
];

async function addressOf(target) {
    const [{ id }] = await sql(`SELECT max(function_id) AS id FROM function_stats WHERE session_id = ${VALUED}`);
    const { call_id: call } = target.includes("CALL") ? await slowCall() : { call_id: "" };
    return target.replace("VALUED", String(VALUED)).replace("FUNCTION", String(id)).replace("CALL", String(call));
}

for (const [name, target, ready] of pages) {
    test(`${name} is accessible in both themes, and fits a phone`, async () => {
        const page = await openPage(await addressOf(target), {
            colorScheme: "light",
            reducedMotion: "reduce",
            ...(name === "error" ? { expects: /404/ } : {}),
        });
        await page.locator(ready).first().waitFor();
        await page.locator(".live.on").waitFor();
        await checkLooks(page, name);
        await page.context().close();
    });
}

test("a page for one file is accessible in both themes, and fits a phone", async () => {
    const page = await openPage(`/sessions/${VALUED}`);
    const alone = await saveOne(page, "looks.html", { colorScheme: "light", reducedMotion: "reduce" });
    await alone.locator(".flame canvas").waitFor();
    await checkLooks(alone, "one-file");
    await alone.context().close();
    await page.context().close();
});

// Last: it renames functions, threads and devices of the recordings.
test("hostile names stand inert and in their place on every page", async () => {
    const rename = `
import sqlite3
names = "<script>document.title = 'taken'</script><img src=x onerror=alert(1)>\\u202e😀" + "w" * 100000
with sqlite3.connect(${JSON.stringify(database)}, timeout=60) as held:
    held.execute("UPDATE functions SET name = ? || name", (names,))
    held.execute("UPDATE threads SET name = ?", (names,))
    held.execute("UPDATE devices SET name = ?, build = ?", (names, names))
    held.execute("UPDATE sessions SET name = ?", (names,))
    held.execute("UPDATE zombie_frames SET function = ?, module = ?", (names, names))
`;
    const run = spawnSync("/usr/bin/python3", ["-c", rename], { encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
    const phone = { viewport: { width: 390, height: 844 } };
    for (const [name, target, ready] of pages) {
        const expects = name === "error" ? { expects: /404/ } : {};
        const page = await openPage(await addressOf(target), { ...phone, ...expects });
        page.on("dialog", (dialog) => problems.push(`${name}: ${dialog.message()}`));
        await page.locator(ready).first().waitFor();
        await checkInert(page, name);
        if (name === "functions") {
            const alone = await saveOne(page, "hostile.html", phone);
            alone.on("dialog", (dialog) => problems.push(`one file: ${dialog.message()}`));
            await alone.locator(".flame canvas").waitFor();
            await checkInert(alone, "one file");
            await alone.context().close();
        }
        await page.context().close();
    }
});

test("no page asked any other server for anything, or logged an error", () => {
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
