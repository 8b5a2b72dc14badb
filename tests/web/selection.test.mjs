// The selection that all panels of a session follow, and the coverage page, on real recordings. The
// tests count the shown numbers again from single calls.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import {
    base, bin, change, checkLooks, checkPanel, checkSums, clean, comesTo, database, foreign, format, openPage, openTwin, output, problems,
    program, record, rowsOf, saveOne, sql, start, stop, texts,
} from "./lab.mjs";

const WHOLE = 1;
const FALLEN = 2;
let worker; // thread_id
let workerName;
let half; // a time in the middle of the main thread's calls

before(async () => {
    clean();
    assert.equal(record("whole", [], "300", "0").status, 0);
    record("fallen", [], "crash");
    await start();
    await checkSums();
    [{ worker, workerName }] = await sql(`SELECT thread_id AS worker, name || ' (' || tid || ')' AS workerName FROM threads WHERE session_id = ${WHOLE} AND NOT is_main`);
    [{ half }] = await sql(`SELECT start_ns AS half FROM calls JOIN functions f USING (function_id)
        WHERE session_id = ${WHOLE} AND f.name = 'parse_line' ORDER BY start_ns LIMIT 1 OFFSET 150`);
    const [{ last }] = await sql(`SELECT max(end_ns) AS last FROM calls WHERE session_id = ${WHOLE}`);
    change(`INSERT INTO marks (session_id, number, name, is_end, at_ns, source) VALUES
        (${WHOLE}, 1, 'late', 0, ${half}, 'app'), (${WHOLE}, 2, 'late', 0, ${half + 10}, 'app'),
        (${WHOLE}, 3, 'late', 1, ${last + 1}, 'app')`);
});

after(stop);

// Counts the single calls that match a condition, by function.
async function counted(condition) {
    const rows = await sql(`SELECT f.name, count(*) AS calls, max(c.duration_ns) AS max_ns FROM calls c
        JOIN functions f USING (function_id) WHERE c.session_id = ${WHOLE} AND c.duration_ns IS NOT NULL AND ${condition}
        GROUP BY f.name`);
    return new Map(rows.map((row) => [row.name, row]));
}

async function functionRows(page) {
    return page.locator("[role=grid] .rows [role=row]").evaluateAll((rows) =>
        rows.map((row) => [...row.children].map((cell) => cell.textContent.trim())),
    );
}

// Compares the table of functions with single calls: name, calls and longest call.
async function checkFunctions(page, condition) {
    const wanted = await counted(condition);
    const nameOf = (row) => [...wanted.keys()].find((key) => row[0].startsWith(key)) ?? row[0];
    await page.getByText(`${wanted.size} of `).first().waitFor();
    await comesTo(
        async () => (await functionRows(page)).map((row) => `${nameOf(row)} ${row[3]}`).sort(),
        [...wanted].map(([name, { calls }]) => `${name} ${format.compact(calls)}`).sort(),
    );
    for (const row of await functionRows(page)) {
        const name = nameOf(row);
        const longest = wanted.get(name).max_ns; // sums round ticks to ns once, single calls twice
        assert.ok([-1, 0, 1].some((more) => row[9] === format.duration(longest + more)), `${name}: ${row[9]}`);
    }
}

const selectionBar = (page) => page.getByRole("group", { name: "Selection", exact: true });
const remove = (page, label) => page.getByRole("button", { name: `Remove: ${label}`, exact: true }).click();

test("time, thread, mark and functions are chips, in the address, and gone when removed", async () => {
    const page = await openPage(`/sessions/${WHOLE}`);
    const bar = selectionBar(page);
    await bar.getByText("All calls").waitFor();
    assert.ok((await page.locator(".spread").first().boundingBox()).width > 40, "the spread of durations is drawn");
    await bar.getByLabel("Select a thread").selectOption(String(worker));
    await bar.getByText(`Thread: ${workerName}`).waitFor();
    await checkFunctions(page, `c.thread_id = ${worker}`);
    await bar.getByLabel("Select a mark").selectOption("late");
    await bar.getByText("Mark: late").waitFor();
    await bar.getByLabel("Select functions by name").fill("SPI");
    await bar.getByLabel("Select functions by name").press("Enter");
    await bar.getByText("Functions: SPI").waitFor();
    const address = new URL(page.url());
    assert.deepEqual(
        ["threads", "mark", "functions"].map((name) => address.searchParams.get(name)),
        [String(worker), "late", "SPI"],
    );
    await checkFunctions(page, `c.thread_id = ${worker} AND c.start_ns >= ${half} AND f.name = 'spin'`);
    await remove(page, "Functions: SPI");
    await remove(page, `Thread: ${workerName}`);
    await checkFunctions(page, `c.start_ns >= ${half}`);
    await page.goto(new URL(`/sessions/${WHOLE}?area=0-${half}&functions=*_line`, base).href);
    await checkFunctions(page, `c.start_ns < ${half} AND f.name GLOB '*_line'`);
    await page.getByRole("button", { name: "Clear", exact: true }).click();
    await page.waitForURL((url) => url.search === "");
    await bar.getByText("All calls").waitFor();
    await page.close();
});

async function outermost(page) {
    await page.locator("[role=treegrid] .rows .mono").first().waitFor();
    return page
        .locator("[role=treegrid] .rows [role=row][aria-level='1']")
        .evaluateAll((rows) => rows.map((row) => [row.querySelector(".mono").textContent, row.children[3].textContent]));
}

test("a device is a chip on every page, in the address and in the links", async () => {
    change(`INSERT INTO devices (device_id, uuid, name, model, os, build, machine, agent_version, tags,
            first_seen_realtime_ns, last_seen_realtime_ns)
        SELECT 77, randomblob(16), 'shelf', model, os, build, machine, agent_version, tags,
            first_seen_realtime_ns, last_seen_realtime_ns FROM devices LIMIT 1`);
    const [own] = await sql(`SELECT d.device_id AS id, d.name FROM sessions s JOIN devices d USING (device_id)
        WHERE s.session_id = ${WHOLE}`);
    const page = await openPage(`/sessions/${WHOLE}?view=timeline`, { expects: /status of 400/ }); // the other device's sets contain no session
    const chip = page.getByRole("button", { name: /^Remove: Device/ });
    await page.getByLabel("Select a device").selectOption("77");
    await page.waitForURL(/device=77/);
    const none = page.getByText(`This session belongs to ${own.name}, not to the selected device.`);
    for (const view of ["Functions", "Call tree", "Overview", "Flame graph", "Timeline"]) {
        await page.getByRole("link", { name: view, exact: true }).first().click();
        await none.waitFor();
        await page.getByText("Device: shelf").waitFor();
    }
    await chip.click();
    await page.locator(".timeline canvas:not(.stale)").waitFor();
    assert.ok(!page.url().includes("device="));
    await page.goto(new URL(`/sessions/${WHOLE}?device=${own.id}`, base).href);
    await page.locator("[role=grid] .rows .mono", { hasText: "parse_line" }).waitFor();
    await page.getByRole("link", { name: "Timeline", exact: true }).click();
    await page.locator(".timeline canvas:not(.stale)").waitFor();
    await page.waitForURL(new RegExp(`device=${own.id}`));
    await page.getByRole("link", { name: "Sessions", exact: true }).click();
    await page.getByText(`device: ${own.name}`).waitFor();
    await page.getByRole("link", { name: "whole", exact: true }).click();
    await page.waitForURL(new RegExp(`/sessions/${WHOLE}\\?device=${own.id}$`));
    await page.goto(new URL(`/compare?a=1&b=2&device=77`, base).href);
    await page.getByText("Device: shelf").waitFor();
    await page.getByText(/no session/i).first().waitFor();
    await chip.click();
    await page.getByText("1 and 1 sessions").waitFor();
    await page.goto(new URL(`/coverage?a=1&device=77`, base).href);
    await page.getByText(/no session/i).first().waitFor();
    await page.goto(new URL(`/sql?sql=SELECT name FROM devices WHERE device_id = :device&device=77`, base).href);
    await page.getByRole("region", { name: "Rows" }).getByText("shelf", { exact: true }).waitFor();
    await page.close();
    change("DELETE FROM devices WHERE device_id = 77");
});

test("call tree, flame graphs, overview, timeline and durations follow the selection", async () => {
    const { compact, count, duration, percent } = format;
    const chosen = `threads=${worker}`;
    const page = await openPage(`/sessions/${WHOLE}?view=tree&${chosen}`);
    await comesTo(() => outermost(page), [["compute", "1"]]);
    await page.getByRole("treegrid").press("ArrowRight");
    const [child] = await sql(`SELECT count(*) AS calls FROM calls c JOIN calls p ON p.call_id = c.parent_id
        JOIN functions f ON f.function_id = p.function_id JOIN functions g ON g.function_id = c.function_id
        WHERE c.thread_id = ${worker} AND f.name = 'compute' AND g.name = 'fibonacci'`);
    const below = page.locator("[role=treegrid] .rows [role=row][aria-level='2']", { hasText: "fibonacci" });
    assert.equal(await below.locator("[role=gridcell]").nth(3).textContent(), compact(child.calls));

    await page.getByRole("link", { name: "Flame graph" }).click();
    await page.waitForURL(new RegExp(`view=flame.*${chosen}|${chosen}.*view=flame`));
    const paths = rowsOf(page, "Call paths, callers above callees, as a table");
    await page.locator(".flame canvas").first().waitFor();
    await openTwin(page);
    await paths.first().waitFor();
    const calls = (await texts(paths)).filter((row) => row[0] === "fibonacci").reduce((sum, row) => sum + Number(row[4].replaceAll(",", "")), 0);
    assert.equal(calls, (await counted(`c.thread_id = ${worker}`)).get("fibonacci").calls);
    await page.getByRole("button", { name: "Bottom-up" }).click();
    await page.getByText("Functions by self time in the selection").waitFor();

    await page.getByRole("link", { name: "Overview" }).click();
    const hot = await checkPanel(page, "Where the time goes", (row) => [
        row.name,
        percent(row.share, 1),
        duration(row.self_ns),
        compact(row.calls),
    ]);
    assert.deepEqual(hot.map(([name]) => name).sort(), ["compute", "fibonacci", "spin"]);
    assert.equal((await checkPanel(page, "Threads", (row) => [row.name, row.tid])).length, 1);
    await page.getByRole("region", { name: "Where the time goes" }).getByRole("link", { name: "fibonacci" }).click();
    await page.waitForURL((url) => url.searchParams.get("threads") === String(worker));
    await page.getByRole("group", { name: "The function above its callers", exact: true }).waitFor();

    await page.goto(new URL(`/sessions/${FALLEN}?view=overview&functions=fal*`, base).href);
    const open = await checkPanel(page, "Open at the end, innermost first", (row) => [row.thread, row.depth, row.name]);
    assert.deepEqual(open.map((row) => row[2]), ["fall"]);
    await page.goto(new URL(`/sessions/${FALLEN}?view=overview&functions=*_block`, base).href);
    const last = await checkPanel(page, "Last calls, at most 100 of each thread, latest first", (row) => [row.thread, row.depth, row.name]);
    assert.deepEqual(last.map((row) => row[2]), ["use_block", "drop_block", "make_block"]);

    await page.goto(new URL(`/sessions/${WHOLE}?view=timeline&${chosen}`, base).href);
    await page.locator(".timeline canvas").waitFor();
    await page.getByText("1 of 2 threads").waitFor();
    await checkPanel(page, "Calls that began in the selection", (row) => [row.name, count(row.calls)]);

    const [{ id }] = await sql(`SELECT function_id AS id FROM function_stats JOIN functions f USING (function_id)
        WHERE session_id = ${WHOLE} AND f.name = 'spin'`);
    await page.goto(new URL(`/sessions/${WHOLE}?view=function&function=${id}&${chosen}`, base).href);
    const spun = (await counted(`c.thread_id = ${worker}`)).get("spin");
    await page.getByText(`${count(spun.calls)} calls,`).waitFor();
    const callers = await checkPanel(page, "Callers", (row) => [row.name, count(row.calls)]);
    assert.deepEqual(callers, [["compute", count(spun.calls)]]);
    await page.close();
});

test("functions can be hidden and recursion folded, as chips", async () => {
    const page = await openPage(`/sessions/${WHOLE}?view=flame&threads=${worker}&fold=1`);
    await page.locator(".flame canvas").waitFor();
    await openTwin(page);
    const rows = rowsOf(page, "Call paths, callers above callees, as a table");
    await rows.first().waitFor();
    const names = async () => (await texts(rows)).map((row) => row[0]).sort();
    assert.deepEqual(await names(), ["compute", "fibonacci", "spin"]);
    await page.getByRole("button", { name: "Hide fibonacci" }).click();
    await page.getByText("Hidden: fibonacci").waitFor();
    await page.waitForFunction(() => ![...document.querySelectorAll("td")].some((cell) => cell.textContent === "fibonacci"));
    assert.deepEqual(await names(), ["compute", "spin"]);
    await remove(page, "Hidden: fibonacci");
    await remove(page, "Recursion folded");
    await page.getByRole("button", { name: "Fold recursion" }).waitFor();
    await page.waitForURL((url) => !url.searchParams.has("hide") && !url.searchParams.has("fold"));
    await page.close();
});

const tile = (page, label) =>
    page.locator(".tile", { has: page.getByText(label, { exact: true }) }).locator("dd");

test("coverage counts functions by module and function, and lists those that only one set entered", async () => {
    const { compact, count, percent } = format;
    const page = await openPage("/coverage");
    await page.getByLabel("Sessions", { exact: true }).fill(String(WHOLE));
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.waitForURL(/a=1/);
    await checkPanel(page, "Coverage", (row) => [
        row.name.split("/").pop(),
        percent(row.entered, row.functions),
        count(row.entered),
        count(row.functions),
        count(row.unwatched),
        compact(row.calls),
    ]);
    const [all] = await sql("SELECT sum(functions) AS functions, sum(entered) AS entered FROM coverage('1', 'module')");
    assert.equal(await tile(page, "Functions").textContent(), count(all.functions));
    assert.equal(await tile(page, "Entered").textContent(), `${count(all.entered)}, ${percent(all.entered, all.functions)}`);
    await page.getByRole("region", { name: "Coverage" }).getByRole("button", { name: "recorded_program" }).click();
    await page.waitForURL(/by=function&module=/);
    await page.getByRole("button", { name: "not all entered" }).click();
    const rows = rowsOf(page, "Coverage");
    await rows.filter({ hasText: "use_block" }).waitFor();
    assert.equal(await rows.filter({ hasText: "fibonacci" }).count(), 0);
    await page.getByLabel("Compare with (optional)").fill("2");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.waitForURL(/b=2/);
    const title = "Functions that only one set entered";
    const shown = await checkPanel(page, title, (row) => [`only ${row.side}`, undefined, compact(row.calls), row.other]);
    const entered = async (session) =>
        (await sql(`SELECT DISTINCT f.name FROM calls JOIN functions f USING (function_id) WHERE session_id = ${session}`)).map(({ name }) => name);
    const [first, second] = [await entered(1), await entered(2)];
    const wanted = [
        ...first.filter((name) => !second.includes(name)).map((name) => `only A ${name}`),
        ...second.filter((name) => !first.includes(name)).map((name) => `only B ${name}`),
    ].sort();
    const said = (await texts(rowsOf(page, title))).map((row) => `${row[0]} ${row[1].split(" ")[0]}`).sort();
    assert.deepEqual(said, wanted);
    assert.equal(shown.length, wanted.length);
    await page.goto(new URL("/compare?a=1&b=2", base).href);
    await page.getByRole("region", { name: title }).locator("tbody tr").first().waitFor();
    await page.close();
});

test("a policy is checked by the server as it is written", async () => {
    const page = await openPage("/fleet", { expects: /status of 400/ });
    await page.getByText("Write a policy").click();
    await page.getByText("Valid: fresh, mode trace, version 1.").waitFor();
    const text = page.getByLabel("Policy for all devices");
    await text.fill('{"policy": 1, "mode": "dance"}');
    await page.getByText(/"trace".*"flight".* is needed/).waitFor();
    assert.equal(await page.getByRole("button", { name: "Set policy" }).isDisabled(), true);
    await text.fill('{"policy": 1, "name": "calm", "mode": "flight"}');
    await page.getByText("Valid: calm, mode flight").waitFor();
    await page.getByRole("button", { name: "Set policy" }).click();
    await page.getByText(/^Policy set; /).waitFor();
    const [rule] = await sql("SELECT scope, document ->> 'name' AS name FROM policy_rules WHERE ended_realtime_ns IS NULL");
    assert.deepEqual(rule, { scope: "all", name: "calm" });
    await page.getByRole("button", { name: "Remove policy" }).click();
    await page.getByText(/^Policy removed; /).waitFor();
    assert.deepEqual(await sql("SELECT 1 FROM policy_rules WHERE ended_realtime_ns IS NULL"), []);
    await page.close();
});

const listed = (page) => page.locator("table.sessions tbody tr");

test("sessions are narrowed by what they have in common, tagged, pinned and removed, with a way back", async () => {
    const page = await openPage("/");
    const filters = page.getByRole("group", { name: "Filters", exact: true });
    await filters.getByLabel("Only sessions with this state").selectOption("crashed");
    await page.waitForURL(/state=crashed/);
    await page.getByText("1 of 2", { exact: true }).waitFor();
    assert.equal(await listed(page).count(), 1);
    await remove(page, "state: crashed");
    await listed(page).nth(1).waitFor();
    assert.equal(await filters.getByLabel("Only sessions with this app").locator("option").nth(1).textContent(), "recorded_program (2)");
    await page.goto(new URL("/?since=2020-01-01&until=2020-01-02", base).href);
    await page.getByText("No session matches.").waitFor();
    await page.goto(base);
    await page.getByLabel("Tick whole, session 1").check();
    const actions = page.getByRole("group", { name: "Actions for the ticked sessions" });
    await actions.getByLabel("Tag", { exact: true }).fill("rack=7");
    await actions.getByRole("button", { name: "Tag", exact: true }).click();
    await actions.getByText("Session 1 tagged rack=7.").waitFor();
    const state = async () => (await sql(`SELECT tags ->> 'rack' AS rack, pinned FROM sessions WHERE session_id = 1`))[0];
    assert.deepEqual(await state(), { rack: "7", pinned: 0 });
    await listed(page).getByText("rack=7", { exact: true }).waitFor();
    await filters.getByLabel("Only sessions with this tag").selectOption("rack=7");
    await page.getByText("1 of 2", { exact: true }).waitFor();
    await remove(page, "tag: rack=7");
    await actions.getByRole("button", { name: "Undo" }).click();
    await actions.getByText("Undone.").waitFor();
    await actions.getByRole("button", { name: "Pin", exact: true }).click();
    await actions.getByText("Session 1 pinned.").waitFor();
    await listed(page).getByText("pinned", { exact: true }).waitFor();
    assert.deepEqual(await state(), { rack: null, pinned: 1 });
    await actions.getByRole("button", { name: "Undo" }).click();
    await actions.getByText("Session 1 unpinned.").waitFor();
    await actions.getByRole("button", { name: "Remove", exact: true }).click();
    await actions.getByText("will be removed").waitFor();
    await actions.getByRole("button", { name: "Undo" }).click();
    await actions.getByText("Nothing was removed.").waitFor();
    assert.deepEqual(await state(), { rack: null, pinned: 0 });
    await actions.getByRole("button", { name: "Set A" }).click();
    await page.waitForURL(/a=1/);
    await page.close();
});

test("tracks of several processes stand one below the other, each with its process", async () => {
    const run = spawnSync(path.join(bin, "sojourn"), [
        ...["record", "-q", "-o", database, "--name", "family", "--", "/bin/sh", "-c"],
        `${program} 20 0; ${program} 20 0`,
    ]);
    assert.equal(run.status, 0, String(run.stderr));
    const tracks = await sql(`SELECT p.pid, t.name FROM streams s JOIN threads t USING (thread_id)
        JOIN sessions x ON x.session_id = s.session_id
        JOIN processes p ON p.session_id = s.session_id AND p.number = t.process_number
        WHERE x.name = 'family' AND s.calls > 0 AND p.executable LIKE '%recorded_program' ORDER BY p.number, t.is_main DESC, s.calls DESC, s.stream_id`);
    assert.equal(new Set(tracks.map((track) => track.pid)).size, 2);
    const [{ id }] = await sql("SELECT session_id AS id FROM sessions WHERE name = 'family'");
    const page = await openPage(`/sessions/${id}?view=timeline`);
    await page.locator(".timeline canvas:not(.stale)").waitFor();
    await page.getByText(/^\d+ threads$/).click();
    const shown = (await page.locator(".threads label").allTextContents()).filter((text) => text.includes("recorded_program"));
    assert.deepEqual(
        shown.map((text) => text.trim().replace(/ \S+ calls$/, "")),
        tracks.map((track) => `recorded_program ${track.pid} · ${track.name}`),
    );
    await page.close();
});

test("notes are written on a session and on a time, seen on the timeline, and taken back", async () => {
    const page = await openPage(`/sessions/${WHOLE}?view=timeline&area=1000-900000`);
    const field = page.getByRole("textbox", { name: "Note" });
    await field.fill("here it <b>stalls</b>");
    await page.getByRole("button", { name: "Write" }).click();
    await checkPanel(page, "Notes", (row) => [row.note, `${format.duration(row.end_ns - row.start_ns)} from ${format.duration(row.start_ns)}`, row.author, row.written]);
    assert.deepEqual(await sql(`SELECT note, start_ns, end_ns FROM annotations WHERE session_id = ${WHOLE}`), [
        { note: "here it <b>stalls</b>", start_ns: 1000, end_ns: 900000 },
    ]);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Note removed.").waitFor();
    assert.deepEqual(await sql("SELECT * FROM annotations"), []);
    await page.goto(new URL(`/sessions/${WHOLE}?view=overview`, base).href);
    await field.fill("all of it is slow");
    await field.press("Enter");
    await checkPanel(page, "Notes", (row) => [row.note, "whole session", row.author, row.written]);
    await page.close();
});

test("a file of sessions is imported where it is dropped or chosen", async () => {
    const other = path.join(output, "other.db");
    const run = spawnSync(path.join(bin, "sojourn"), ["record", "-q", "-o", other, "--name", "from afar", "--", program, "20", "0"]);
    assert.equal(run.status, 0);
    // 404: progress of an import that has just ended
    const page = await openPage("/", { expects: /status of 40[04]/ });
    await page.getByText("Import", { exact: true }).click();
    let copy; // continues once the page has shown the progress
    const held = new Promise((resolve) => (copy = resolve));
    let isHeld = true;
    await page.route("**/api/v1/imports", async (route) => {
        const { do: what } = route.request().postDataJSON();
        if (what === "finish" && isHeld) {
            await held;
        }
        await (what === "progress" && isHeld ? route.fulfill({ json: { part: 0.42 } }) : route.continue());
    });
    const said = await page.locator(".page > div > span[role=status]").elementHandle(); // the element exists before its text
    assert.equal(await said.textContent(), "");
    await page.locator("input[type=file]").setInputFiles(other);
    await page.getByText("Importing other.db: copying its sessions, 42.0 %").waitFor();
    assert.equal(await said.textContent(), "Importing other.db:");
    assert.equal(await page.getByRole("progressbar").getAttribute("value"), "0.42");
    isHeld = false;
    copy();
    await comesTo(async () => /^Session \d+ was imported\.$/.test(await said.textContent()), true);
    await page.getByRole("link", { name: "from afar" }).waitFor();
    const [row] = await sql("SELECT session_id, stored_calls FROM sessions WHERE name = 'from afar'");
    assert.ok(row.stored_calls > 20);
    const dropped = await page.evaluateHandle((text) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([text], "wrong.db"));
        return transfer;
    }, "no database");
    await page.getByText("Import", { exact: true }).click(); // closes the box again: the progress of a dropped file is shown even so
    await page.locator(".page").dispatchEvent("drop", { dataTransfer: dropped });
    await page.getByText(/the file is not a database of sessions/).waitFor();
    await page.getByRole("button", { name: "Hide", exact: true }).click();
    await page.getByText(/the file is not a database of sessions/).waitFor({ state: "detached" });
    change(`DELETE FROM sessions WHERE session_id = ${row.session_id}`);
    await page.close();
});

test("a session is downloaded for other tools", async () => {
    const page = await openPage(`/sessions/${WHOLE}`);
    await page.getByText("Export", { exact: true }).click();
    const take = async (name) => {
        const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
        return readFileSync(await download.path(), "utf8");
    };
    const trace = JSON.parse(await take(/^trace events/));
    const [{ calls }] = await sql(`SELECT count(*) AS calls FROM calls WHERE session_id = ${WHOLE}`);
    assert.equal(trace.traceEvents.filter(({ ph }) => ph === "B").length, calls);
    const folded = (await take(/^folded paths/)).trim().split("\n");
    const [{ paths }] = await sql(`SELECT count(*) AS paths FROM call_paths WHERE session_id = ${WHOLE} AND self_ns > 0`);
    assert.equal(folded.length, paths);
    await page.close();
});

test("a selection is saved as one page that opens without a server, and runs only its own scripts", async () => {
    const { count, duration } = format;
    const hostile = "</script><script>document.title = 'taken'</script>";
    change(`UPDATE functions SET name = '${hostile.replaceAll("'", "''")}' WHERE name = 'hash_word'`);
    const page = await openPage(`/sessions/${WHOLE}?mark=late`);
    const alone = await saveOne(page, "one.html", { viewport: { width: 390, height: 844 } });
    await alone.getByText("Mark: late", { exact: true }).waitFor();
    assert.equal(await alone.title(), "whole · Sojourn");
    await alone.locator(".flame canvas").waitFor();
    const wanted = await counted(`c.start_ns >= ${half}`);
    const rows = await texts(rowsOf(alone, "Functions"));
    assert.deepEqual(rows.map((row) => row[0]).sort(), [...wanted.keys()].sort());
    rows.forEach((row) => assert.equal(row[2], count(wanted.get(row[0]).calls), row[0]));
    assert.ok(rows.some((row) => row[0] === hostile));
    const [slowest] = await sql(`SELECT f.name, s.duration_ns FROM calls s JOIN functions f USING (function_id)
        WHERE s.session_id = ${WHOLE} AND s.start_ns >= ${half} ORDER BY s.self_ns DESC LIMIT 1`);
    const slow = (await texts(rowsOf(alone, "Calls with the most self time")))[0];
    assert.equal(slow[0], slowest.name);
    assert.equal(slow[4], duration(slowest.duration_ns));
    await alone.getByLabel("Search in Functions").waitFor({ state: "detached" });
    await alone.waitForFunction(() => document.documentElement.scrollWidth <= 390);
    await alone.close();
    change(`UPDATE functions SET name = 'hash_word' WHERE name LIKE '</script>%'`);
    await page.close();
});

test("the command line writes the same page of a whole session", async () => {
    const dataOf = (file) => JSON.parse(/<script type="application\/json" id="data">(.*?)<\/script>/s.exec(readFileSync(file, "utf8"))[1]);
    const page = await openPage(`/sessions/${WHOLE}`);
    await (await saveOne(page, "browser.html")).close();
    await page.close();
    const file = path.join(output, "command.html");
    const run = spawnSync(path.join(bin, "sojourn"), ["export", "--format", "html", "--session", String(WHOLE), "-o", file, database], { encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
    const wanted = dataOf(path.join(output, "browser.html"));
    const found = dataOf(file);
    assert.ok(found.panels[1].rows.length > 5);
    assert.deepEqual({ ...found, made: "" }, { ...wanted, made: "" });
    const alone = await openPage(pathToFileURL(file).href, { offline: true });
    await alone.locator(".flame canvas").waitFor();
    await alone.getByText("All calls", { exact: true }).waitFor();
    assert.equal(await rowsOf(alone, "Functions").count(), found.panels[1].rows.length);
    await alone.close();
    const unknown = spawnSync(path.join(bin, "sojourn"), ["export", "--format", "html", "--session", "4711", database]);
    assert.equal(unknown.status, 3);
});

for (const [name, target, ready] of [
    ["selection", `/sessions/${WHOLE}?view=tree&mark=late&functions=*_line`, "[role=treegrid] .rows .mono"],
]) {
    test(`${name} is accessible in both themes, and fits a phone`, async () => {
        const page = await openPage(target, { colorScheme: "light", reducedMotion: "reduce" });
        await page.locator(ready).first().waitFor();
        await page.locator(".live.on").waitFor();
        await checkLooks(page, name);
        await page.close();
    });
}

test("no page asked any other server for anything, or logged an error", () => {
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
