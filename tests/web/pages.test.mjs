// Tests the pages about calls on real recordings: they show what SQL answers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import {
    base, change, checkPanel, checkSums, clean, comesTo, foreign, format, openPage, openTwin, problems, record, rowsOf, slowCall, sql, start, stop, texts,
} from "./lab.mjs";

const VALUED = 1;
const FALLEN = 2;
const DEEP = 3;
const LEVELS = 200;

before(async () => {
    clean();
    assert.equal(record("valued", ["--value", "parse_line(number:int) -> int", "--cpu-time", "parse_line"], "300", "0").status, 0);
    record("fallen", ["--zombies", "heap"], "crash");
    assert.equal(record("deep", [], "deep", String(LEVELS)).status, 0);
    await start();
    await checkSums();
});

after(stop);

test("the overview shows the same numbers as SQL", async () => {
    const { compact, count, duration, percent } = format;
    const page = await openPage(`/sessions/${VALUED}?view=overview`);
    const hot = await checkPanel(page, "Where the time goes", (row) => [
        row.name,
        percent(row.share, 1),
        duration(row.self_ns),
        compact(row.calls),
    ]);
    assert.ok(hot.some(([name]) => name === "fibonacci"));
    await checkPanel(page, "Calls with the most self time", (row) => [
        `▸ ${row.name}${row.given ? ` (${row.given})` : ""}${row.flags ? " ▲" : ""}`,
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
    const slow = page.getByRole("region", { name: "Calls with the most self time" });
    const [slowest] = await sql(`SELECT call_id FROM calls WHERE session_id = ${VALUED} ORDER BY self_ns DESC LIMIT 1`);
    const callers = await sql(
        `SELECT f.name, a.duration_ns FROM ancestors(${slowest.call_id}) a JOIN functions f USING (function_id)`,
    );
    await slow.getByRole("button", { name: /^Callers of / }).first().click();
    const said = callers.map((row) => `← ${row.name} (${duration(row.duration_ns)})`).join(" ");
    await slow.getByText(said || "no recorded callers", { exact: true }).waitFor();
    await page.close();
});

// The six longest calls of serve() spend their time in callees. The shortest call has self time.
test("the overview finds the calls with the most self time among all calls", async () => {
    const { duration } = format;
    const title = "Calls with the most self time";
    const [whole] = await sql(`SELECT max(end_ns) AS ends FROM calls WHERE session_id = ${DEEP}`);
    for (const [area, where] of [["", "1"], [`&area=1-${whole.ends}`, "c.start_ns >= 1"], ["&functions=serve", "f.name = 'serve'"]]) {
        const wanted = await sql(
            `SELECT f.name, c.self_ns, c.duration_ns, c.ending FROM calls c JOIN functions f USING (function_id)
             WHERE c.session_id = ${DEEP} AND c.self_ns >= 1000 AND ${where} ORDER BY c.self_ns DESC LIMIT 10`,
        );
        assert.ok(wanted.some((row) => row.name === "serve" && row.self_ns > row.duration_ns / 2));
        const page = await openPage(`/sessions/${DEEP}?view=overview${area}`);
        const shown = () => texts(page.getByRole("region", { name: title, exact: true }).locator("tbody tr"));
        await comesTo(
            async () => (await shown()).map((row) => [row[0].replace("▸ ", ""), row[2], row[3]]),
            wanted.map((row) => [row.ending === "open" ? `${row.name} open` : row.name, duration(row.self_ns), duration(row.duration_ns)]),
        );
        assert.equal(await page.getByRole("region", { name: title }).getByText("The first 10 are shown.").count(), wanted.length === 10 ? 1 : 0);
        await page.close();
    }
});

test("each picture of a deep recursion says where it is cut", async () => {
    const [{ deep, long }] = await sql(
        `SELECT sum(depth >= 120) AS deep, sum(depth >= 16 AND self_ns > 0) AS long FROM call_paths WHERE session_id = ${DEEP}`,
    );
    assert.equal(deep, LEVELS + 2 - 120); // main, and descend() from LEVELS to 0
    const page = await openPage(`/sessions/${DEEP}?view=flame`);
    await page.getByText(`${deep} frames lie below the 120 levels that are drawn`).waitFor();
    const [path] = await sql(`SELECT path_id, left_ns, left_ns + total_ns AS right_ns FROM flame(${DEEP}) WHERE depth = 110`);
    await page.goto(new URL(`/sessions/${DEEP}?view=flame&frame=${path.path_id}-${path.left_ns}-${path.right_ns}`, base).href);
    await page.getByText(/^descend: .* of all/).waitFor();
    assert.equal(await page.getByText("levels that are drawn").count(), 0);
    await page.goto(new URL(`/sessions/${DEEP}?view=flame&mode=bottom`, base).href);
    await page.getByText(`${long} paths continue below the 16 levels that are shown.`).waitFor();
    await page.goto(new URL(`/sessions/${DEEP}?view=timeline`, base).href);
    const height = () => page.locator(".timeline .tracks > div").evaluate((all) => all.clientHeight);
    const levels = page.getByRole("button", { name: "All levels" });
    await page.locator(".timeline canvas:not(.stale)").waitFor();
    const folded = await height();
    assert.equal(await levels.count(), 0); // recursion is folded
    await page.getByRole("button", { name: "Unfold recursion" }).click();
    await levels.waitFor();
    const before = await height();
    assert.ok(before > folded + 40 * 18, `${folded} and ${before}`);
    await openTwin(page);
    const deepestShown = async () => Math.max(...(await texts(rowsOf(page, "Calls of the timeline"))).map((row) => Number(row[1])));
    await comesTo(deepestShown, 59);
    const box = await page.locator(".timeline canvas").boundingBox();
    await page.mouse.click(box.x + box.width - 5, box.y + 300); // the scroll bar for levels
    await page.waitForURL(/tops=/);
    const top = Number(new URL(page.url()).searchParams.get("tops").split(":")[1]);
    assert.ok(top > 10 && top < LEVELS - 90, String(top));
    await comesTo(deepestShown, top + 59);
    await page.keyboard.press("]");
    await comesTo(deepestShown, top + 30 + 59);
    for (let i = 0; i < LEVELS / 30; i++) {
        await page.keyboard.press("]");
    }
    await comesTo(deepestShown, LEVELS + 1);
    await levels.click();
    await comesTo(async () => (await height()) - before, (LEVELS + 2 - 60) * 18);
    const open = (await texts(rowsOf(page, "Calls of the timeline"))).filter((row) => row.at(-1) === "open");
    assert.ok(open.some((row) => row[2] === "main"));
    await page.close();
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
    const openTile = page.locator(".tile", { has: page.getByText("Open at the end", { exact: true }) });
    assert.equal(await openTile.locator("dd").textContent(), "2");
    const tree = await openPage(`/sessions/${FALLEN}?view=tree`);
    const rows = tree.locator("[role=treegrid] .rows [role=row]", { has: tree.locator(".tag", { hasText: "open" }) });
    const marked = () => rows.locator("span.mono").allTextContents();
    await comesTo(marked, ["main"]);
    await tree.locator("[role=treegrid] .twisty.closed").first().click();
    await comesTo(marked, ["main", "fall"]);
    await tree.close();
    await checkPanel(page, "Last calls, at most 100 of each thread, latest first", (row) => [
        row.thread,
        row.depth,
        row.name,
        duration(row.start_ns),
        duration(row.duration_ns),
        row.ending,
    ]);
    await checkPanel(page, "Uses of freed memory and other heap errors", (row) => [
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
    await page.close();
});

test("findings of a selected time are those of all threads, also of one without recorded calls", async () => {
    const title = "Uses of freed memory and other heap errors";
    const [{ tid, at }] = await sql(`SELECT max(tid) AS tid, max(at_ns) AS at FROM zombie_reports WHERE session_id = ${FALLEN}`);
    const [{ thread }] = await sql(`SELECT thread_id AS thread FROM threads WHERE session_id = ${FALLEN} AND is_main`);
    change(`UPDATE zombie_reports SET tid = 0 WHERE session_id = ${FALLEN}`);
    const page = await openPage(`/sessions/${FALLEN}?view=overview&area=0-${at + 1}`);
    await checkPanel(page, title, (row) => [row.kind.replaceAll("_", " "), row.used_in]);
    for (const other of [`area=${at + 1}-${at + 1000}`, `area=0-${at + 1}&threads=${thread}`]) {
        const [answer] = await Promise.all([
            page.waitForResponse((response) => response.url().includes("findings_of_session")),
            page.goto(new URL(`/sessions/${FALLEN}?view=overview&${other}`, base).href),
        ]);
        assert.deepEqual((await answer.json()).rows, [], other);
    }
    await page.close();
    change(`UPDATE zombie_reports SET tid = ${tid} WHERE session_id = ${FALLEN}`);
});

test("calls that took no time have a range of durations, too", async () => {
    const where = `session_id = ${VALUED} AND function_id = (SELECT function_id FROM functions WHERE name = 'load_file')`;
    const [fn] = await sql(`SELECT function_id AS id, min_ns, max_ns FROM function_stats WHERE ${where}`);
    change(`UPDATE function_stats SET min_ns = 0, max_ns = 0 WHERE ${where}`);
    const page = await openPage(`/sessions/${VALUED}?view=function&function=${fn.id}`);
    await page.getByRole("button", { name: /^max / }).click();
    await page.waitForURL((url) => url.searchParams.get("range") === "0-1");
    await page.getByRole("region", { name: "Calls of this duration, in order of entry, at most 100" }).waitFor();
    await page.close();
    change(`UPDATE function_stats SET min_ns = ${fn.min_ns}, max_ns = ${fn.max_ns} WHERE ${where}`);
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
    // Each path and the function's sum are rounded separately from clock ticks to whole ns.
    stats.forEach((row) => assert.ok(Math.abs(row.self_ns - row.stated) <= row.paths, JSON.stringify(row)));
    const roots = (await texts(rowsOf(page, up))).filter((row) => row[1] === "0");
    assert.equal(roots.length, stats.filter((row) => row.self_ns > 0).length);
    for (const root of roots) {
        assert.equal(root[2], duration(stats.find((row) => row.name === root[0]).self_ns), root[0]);
    }
    await page.getByRole("link", { name: "check_line" }).first().click();
    await page.getByText(/^check_line: .* total/).first().waitFor();
    await page.close();
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
    await page.close();
});

test("calls of a function are grouped by the values that they had, the slow ones first", async () => {
    const { count, duration } = format;
    const call = await slowCall(VALUED);
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
    assert.ok(slow >= 0 && slow < 20, `it is row ${slow}`); // only calls that the machine interrupted may come before it
    const panel = page.getByRole("region", { name: "By value", exact: true });
    await panel.locator("tbody tr").nth(slow).getByRole("link", { name: duration(call.duration_ns) }).click();
    await page.waitForURL(new RegExp(`call=${call.call_id}$`));
    await page.close();
});

test("a name in the palette leads to its function, session or question", async () => {
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
    await page.close();
});

test("Enter in the palette waits for the replies to the typed text", async () => {
    const page = await openPage(`/sessions/${VALUED}`);
    await page.locator("[role=grid] .rows .mono").first().waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("option", { name: new RegExp(`session ${FALLEN}$`) }).waitFor();
    await page.route("**/api/v1/sql**", async (route) => {
        await new Promise((resolve) => setTimeout(resolve, 400));
        await route.continue();
    });
    await page.getByRole("combobox", { name: "Go to" }).fill("fibon");
    await page.keyboard.press("Enter"); // only the sessions of the previous answer are shown
    await page.waitForURL(/view=function&function=\d+/);
    await page.close();
});

const editor = (page) => page.getByRole("textbox", { name: "SQL" });

test("the console runs SQL, explains errors, and refuses statements that write", async () => {
    const page = await openPage("/sql", { expects: /status of 40/ });
    await page.getByText(/^3 rows in/).waitFor();
    const run = async (text) => {
        await editor(page).click();
        await page.keyboard.press("Control+a");
        await page.keyboard.press("Delete"); // Chromium would otherwise keep the style of the replaced words
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
    let answer;
    const isTyped = new Promise((resolve) => (answer = resolve));
    await page.route(/p\.session=last/, (asked) => isTyped.then(() => asked.continue()));
    await page.getByRole("button", { name: "Hot spots" }).click();
    await page.waitForURL(/p\.limit=20/);
    await page.getByText("Running…").waitFor();
    await page.getByLabel(":session").fill(String(VALUED));
    answer(); // an answer does not overwrite what the user types
    await page.getByText(/^\d+ rows? in/).waitFor();
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
    await page.close();
});

test("the fleet page shows devices and takes commands", async () => {
    const page = await openPage("/fleet", { expects: /status of 4/ });
    const devices = rowsOf(page, "Devices");
    await devices.first().waitFor();
    const wanted = await sql("SELECT name, agent_version FROM devices ORDER BY name");
    const shown = await texts(devices);
    assert.equal(shown.length, wanted.length);
    assert.equal(shown[0][0], wanted[0].name);
    assert.equal(shown[0][4], wanted[0].agent_version || "–");
    await page.getByLabel(/^Command for/).selectOption("policy");
    await page.getByLabel("Arguments (JSON)").fill('{"policy": {"policy": 1, "name": "x", "no_such_key": 1}}');
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText(/no_such_key/).last().waitFor();
    await page.getByLabel("Arguments (JSON)").fill("{ not json");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText(/JSON at position|property name/).waitFor();
    assert.deepEqual(await sql("SELECT * FROM commands"), []);
    await page.getByLabel("p95 of a function by device and build").fill("spin");
    await page.getByRole("button", { name: "Show" }).click();
    await checkPanel(page, "p95 of spin", (row) => [row.build, row.device, format.count(row.sessions), format.duration(row.p95_ns)]);
    await page.close();
});

test("no page asked any other server for anything, or logged an error", () => {
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
