// Late answers: a page shows and does what was requested last, not what was requested before.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { base, change, clean, comesTo, foreign, format, openPage, problems, record, rowsOf, sql, start, stop, texts } from "./lab.mjs";

const WHOLE = 1;
const OTHER = 2;
const REFUSED = "refused by the test";
const REFUSING = { expects: /status of 400/ };
let worker; // thread_id

before(async () => {
    clean();
    assert.equal(record("whole", ["--value", "parse_line(number:int) -> int"], "300", "0").status, 0);
    assert.equal(record("other", [], "20", "0").status, 0);
    await start();
    [{ worker }] = await sql(`SELECT thread_id AS worker FROM threads WHERE session_id = ${WHOLE} AND NOT is_main`);
    change(`INSERT INTO marks (session_id, number, name, is_end, at_ns, source) VALUES (${WHOLE}, 1, 'late', 0, 2000, 'app'),
            (${OTHER}, 1, 'late', 0, 700000, 'app');
        INSERT INTO devices (device_id, uuid, name, model, os, build, machine, agent_version, tags, first_seen_realtime_ns, last_seen_realtime_ns)
        SELECT 77, randomblob(16), 'shelf', model, os, build, machine, agent_version, tags, first_seen_realtime_ns, last_seen_realtime_ns FROM devices LIMIT 1`);
});

after(stop);

// Holds back the answers to requests that `wanted` selects by address and parameters. `asked`
// resolves when the first answer is ready, with the data of that moment. After release, the page
// has received the answers or has cancelled the requests.
async function hold(page, wanted) {
    let open;
    let seen;
    const opened = new Promise((resolve) => (open = resolve));
    const asked = new Promise((resolve) => (seen = resolve));
    let held = 0;
    let come;
    const answered = new Promise((resolve) => (come = resolve));
    await page.route("**/api/v1/**", async (route) => {
        if (!wanted(new URL(route.request().url()))) {
            await route.fallback();
            return;
        }
        held++;
        const response = await route.fetch({ timeout: 0 });
        seen();
        await opened;
        await route.fulfill({ response }).catch(() => undefined); // the page has cancelled the request
        await (await route.request().response())?.finished();
        if (--held === 0) {
            come();
        }
    });
    return {
        asked,
        letGo: async () => {
            open();
            await answered;
        },
    };
}

// Answers requests that `wanted` selects with an error.
async function refuse(page, wanted) {
    await page.route("**/api/v1/**", (route) =>
        wanted(new URL(route.request().url())) ? route.fulfill({ status: 400, json: { error: REFUSED } }) : route.fallback(),
    );
}

const isSql = (text) => (url) => url.pathname.endsWith("/sql") && text.test(url.search);
const idOf = async (name) =>
    (await sql(`SELECT s.function_id AS id FROM function_stats s JOIN functions f USING (function_id) WHERE s.session_id = ${WHOLE} AND f.name = '${name}'`))[0].id;
// A page has handled an answer once it has drawn two frames.
const drawnTwice = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

test("Enter in the table of functions waits for the rows of the search", async () => {
    const page = await openPage(`/sessions/${WHOLE}`);
    await page.locator("[role=grid] .rows .mono").nth(3).waitFor();
    const late = await hold(page, (url) => url.searchParams.get("search") === "fibon");
    await page.getByLabel("Search functions", { exact: true }).fill("fibon");
    await page.getByRole("grid").focus();
    await page.keyboard.press("Enter");
    await late.asked;
    await page.getByRole("status").getByText("Loading…").waitFor();
    assert.equal(await page.getByRole("grid").getAttribute("aria-busy"), "true");
    assert.ok(!page.url().includes("view=tree"), page.url());
    await late.letGo();
    await page.waitForURL((url) => url.searchParams.get("view") === "tree" && ["path", "function"].some((name) => url.searchParams.has(name)));
    await page.locator("[role=treegrid] .row.selected", { hasText: "fibonacci" }).waitFor();
    await page.close();
});

test("Enter in the table of functions waits for its first rows, too", async () => {
    const page = await openPage("/");
    const late = await hold(page, (url) => url.pathname.endsWith("/functions"));
    await page.goto(new URL(`/sessions/${WHOLE}`, base).href);
    await late.asked;
    await page.getByRole("grid").focus();
    await page.keyboard.press("Enter");
    assert.equal(await page.getByRole("grid").getAttribute("aria-busy"), "true");
    await late.letGo();
    await page.waitForURL((url) => url.searchParams.get("view") === "tree");
    await page.close();
});

test("a search in the table of functions selects its first row, wherever the selected one was before", async () => {
    const page = await openPage(`/sessions/${WHOLE}`);
    const [{ matching }] = await sql(`SELECT count(*) AS matching FROM function_stats JOIN functions f USING (function_id)
        WHERE session_id = ${WHOLE} AND instr(f.name, '_') > 0`);
    assert.ok(matching > 3);
    const grid = page.getByRole("grid");
    const selected = page.locator("[role=grid] .rows [aria-selected=true]");
    await grid.locator(".rows .mono").nth(3).waitFor();
    await grid.focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.locator("[role=grid] .rows [aria-selected=true][aria-rowindex='4']").waitFor();
    await page.getByLabel("Search functions", { exact: true }).fill("_");
    await page.getByRole("status").getByText(`${matching} of `).waitFor();
    await comesTo(() => selected.getAttribute("aria-rowindex"), "2");
    const first = await selected.locator(".mono").textContent();
    await grid.focus();
    await page.keyboard.press("Enter");
    await page.locator("[role=treegrid] .row.selected", { hasText: first }).waitFor();
    await page.close();
});

test("the error of one search of functions is not shown for the next search", async () => {
    const page = await openPage(`/sessions/${WHOLE}`, REFUSING);
    await page.locator("[role=grid] .rows .mono").first().waitFor();
    await refuse(page, (url) => url.searchParams.get("search") === "fibon");
    const search = page.getByLabel("Search functions", { exact: true });
    await search.fill("fibon");
    await page.getByRole("alert").getByText(REFUSED).waitFor();
    assert.equal(await page.locator("[aria-busy=true]").count(), 0, "nothing is on its way");
    assert.equal(await page.getByRole("region", { name: "Functions", exact: true }).getByRole("status").textContent(), "");
    assert.equal(await page.locator("[role=grid] .rows .mono").count(), 0, "rows of another search");
    const late = await hold(page, (url) => url.searchParams.get("search") === "hash");
    await search.fill("hash");
    await late.asked;
    assert.equal(await page.getByRole("alert").count(), 0);
    await late.letGo();
    await page.locator("[role=grid][aria-busy=false] .rows .mono", { hasText: "hash_word" }).waitFor();
    await page.close();
});

test("the list of sessions ticks all sessions that match now, not those shown before", async () => {
    const page = await openPage("/");
    await page.locator("table.sessions tbody tr").nth(1).waitFor();
    const late = await hold(page, (url) => url.pathname.endsWith("/sessions") && url.searchParams.get("search") === "other");
    await page.getByLabel("Search sessions").fill("other");
    await late.asked;
    const all = page.getByLabel("Tick all that are shown");
    assert.equal(await all.isDisabled(), true);
    assert.equal(await page.locator(".tiles").getAttribute("aria-busy"), "true");
    await late.letGo();
    await comesTo(() => page.locator("table.sessions tbody tr").count(), 1);
    await all.check();
    await page.getByRole("group", { name: "Actions for the ticked sessions" }).getByText(`Session ${OTHER}`, { exact: true }).waitFor();
    await page.close();
});

test("a list of sessions that failed to load is not shown as loading, as empty or with other sessions", async () => {
    const page = await openPage("/", REFUSING);
    const rows = page.locator("table.sessions tbody tr");
    await rows.nth(1).waitFor();
    const isList = (search) => (url) => url.pathname.endsWith("/sessions") && url.searchParams.get("search") === search;
    await refuse(page, isList("whole"));
    await page.getByLabel("Search sessions").fill("whole");
    await page.getByRole("alert").getByText(REFUSED).waitFor();
    assert.equal(await page.locator("[aria-busy=true]").count(), 0, "nothing is on its way");
    assert.equal(await page.getByText(/Loading…|No session matches/).count(), 0);
    assert.equal(await rows.count(), 0, "sessions of another search");
    const late = await hold(page, isList("other"));
    await page.getByLabel("Search sessions").fill("other");
    await late.asked;
    assert.equal(await page.getByRole("alert").count(), 0);
    assert.equal(await page.locator(".tiles").getAttribute("aria-busy"), "true");
    await late.letGo();
    await comesTo(() => rows.count(), 1);
    await page.close();
});

test("rows of modules are not shown as functions", async () => {
    const page = await openPage(`/coverage?a=${WHOLE}`);
    await page.getByRole("region", { name: "Coverage" }).getByRole("button", { name: "recorded_program" }).waitFor();
    const late = await hold(page, (url) => url.searchParams.get("p.by") === "function");
    await page.getByRole("group", { name: "By", exact: true }).getByRole("button", { name: "function", exact: true }).click();
    await late.asked;
    assert.equal(await page.getByRole("region", { name: "Coverage" }).count(), 0);
    await page.getByText("Counting…").waitFor();
    await late.letGo();
    await rowsOf(page, "Coverage").filter({ hasText: "fibonacci" }).waitFor();
    await page.close();
});

test("calls of one range of durations are not shown under another", async () => {
    const { duration } = format;
    const id = await idOf("spin");
    const [fn] = await sql(`SELECT min_ns, max_ns FROM function_stats WHERE session_id = ${WHOLE} AND function_id = ${id}`);
    const page = await openPage(`/sessions/${WHOLE}?view=function&function=${id}&range=${fn.min_ns}-${fn.max_ns}`);
    const panel = page.getByRole("region", { name: "Calls of this duration, in order of entry, at most 100" });
    await comesTo(() => panel.locator("tbody tr").count(), 100);
    const late = await hold(page, isSql(/p\.least=/));
    await page.getByRole("button", { name: `max ${duration(fn.max_ns)}`, exact: true }).click();
    await late.asked;
    assert.equal(await panel.locator("tbody tr").count(), 0);
    await panel.getByText("Loading…").waitFor();
    await late.letGo();
    await panel.locator("tbody tr").first().waitFor();
    await page.close();
});

test("the values of a function are those of the selected calls", async () => {
    const id = await idOf("parse_line");
    const [{ half }] = await sql(`SELECT start_ns AS half FROM calls WHERE session_id = ${WHOLE} AND function_id = ${id} ORDER BY start_ns LIMIT 1 OFFSET 10`);
    const page = await openPage(`/sessions/${WHOLE}?view=function&function=${id}&area=0-${half}`);
    const rows = page.getByRole("region", { name: "By value", exact: true }).locator("tbody tr").filter({ hasText: /^number/ });
    await rows.first().waitFor();
    const given = (await texts(rows)).map((row) => [row[1], row[2]]).sort();
    assert.deepEqual(given, Array.from({ length: 10 }, (_, number) => [String(number), "1"]).sort());
    await page.close();
});

test("a search on the timeline moves to its own result, not to that of an earlier search", async () => {
    const page = await openPage(`/sessions/${WHOLE}?view=timeline`);
    await page.locator(".timeline canvas:not(.stale)").waitFor();
    const search = page.getByLabel("Search calls by function");
    await search.fill("parse_line");
    const next = page.getByRole("button", { name: /^Next call of/ });
    await page.getByRole("button", { name: "Next call of parse_line" }).waitFor();
    const name = await hold(page, isSql(/p\.text=fibonacci/));
    await search.fill("fibonacci");
    await name.asked;
    assert.equal(await next.count(), 0);
    await name.letGo();
    const found = await hold(page, isSql(/p\.after=/));
    await page.getByRole("button", { name: "Next call of fibonacci" }).click();
    await found.asked;
    await search.fill("hash_word");
    await found.letGo();
    await page.getByRole("button", { name: "Next call of hash_word" }).waitFor();
    await drawnTwice(page);
    assert.ok(!page.url().includes("call="), "no call of it was requested");
    await page.close();
});

test("time that was selected for one mark is not drawn for another", async () => {
    change(`INSERT INTO marks (session_id, number, name, is_end, at_ns, source) VALUES (${WHOLE}, 2, 'later', 0, 400000, 'app')`);
    const page = await openPage(`/sessions/${WHOLE}?view=timeline&mark=late`);
    await page.locator(".timeline canvas:not(.stale)").waitFor();
    const panel = page.getByRole("region", { name: "Calls that began in the selection" });
    await panel.locator("tbody tr").first().waitFor();
    await page.locator(".timeline[data-selected='1']").waitFor();
    const late = await hold(page, isSql(/p\.mark=later/));
    await page.getByRole("button", { name: "Remove: Mark: late" }).click();
    await page.getByLabel("Select a mark").selectOption("later");
    await late.asked;
    await page.locator(".timeline[data-selected='0']").waitFor();
    assert.equal(await panel.locator("tbody tr").count(), 0);
    await late.letGo();
    await page.locator(".timeline[data-selected='1']").waitFor();
    await page.close();
    change(`DELETE FROM marks WHERE session_id = ${WHOLE} AND name = 'later'`);
});

const outermost = (page) =>
    page.locator("[role=treegrid] .rows [role=row][aria-level='1'] .mono").allTextContents();

test("a late call tree of an earlier selection does not replace the newer tree", async () => {
    const page = await openPage(`/sessions/${WHOLE}?view=tree`);
    await page.locator("[role=treegrid] .rows .mono").first().waitFor();
    const whole = await outermost(page);
    assert.ok(whole.length > 1, whole.join());
    const late = await hold(page, isSql(/web\.call_tree/));
    await page.getByLabel("Select a thread").selectOption(String(worker));
    await late.asked;
    assert.deepEqual(await outermost(page), [], "rows of the whole tree are none of a thread's");
    await page.getByRole("button", { name: "Clear", exact: true }).click();
    await comesTo(() => outermost(page), whole);
    await late.letGo();
    await drawnTwice(page);
    assert.deepEqual(await outermost(page), whole);
    await page.close();
});

test("the error of one selection's call tree is not shown for another selection", async () => {
    const page = await openPage(`/sessions/${WHOLE}?view=tree`, REFUSING);
    await page.locator("[role=treegrid] .rows .mono").first().waitFor();
    await refuse(page, isSql(/web\.call_tree/));
    await page.getByLabel("Select a thread").selectOption(String(worker));
    await page.getByRole("alert").getByText(REFUSED).waitFor();
    const late = await hold(page, (url) => url.pathname.endsWith("/call-tree"));
    await page.getByRole("button", { name: "Clear", exact: true }).click();
    await late.asked;
    assert.equal(await page.getByRole("alert").count(), 0);
    await late.letGo();
    await page.locator("[role=treegrid] .rows .mono").first().waitFor();
    await page.close();
});

test("a call tree that arrives on another page does not change its address", async () => {
    const id = await idOf("fibonacci");
    const page = await openPage("/");
    const late = await hold(page, (url) => url.pathname.endsWith("/call-tree"));
    await page.goto(new URL(`/sessions/${WHOLE}?view=tree&function=${id}`, base).href);
    await late.asked;
    await page.getByRole("link", { name: "Overview", exact: true }).click();
    await page.getByRole("region", { name: "Where the time goes" }).waitFor();
    const address = page.url();
    await late.letGo();
    await drawnTwice(page);
    assert.equal(page.url(), address);
    await page.close();
});

test("the recordings of one device are not shown for another", async () => {
    const [own] = await sql(`SELECT d.device_id AS id, d.name FROM sessions s JOIN devices d USING (device_id) WHERE s.session_id = ${WHOLE}`);
    change(`UPDATE sessions SET state = 'recording' WHERE session_id = ${OTHER}`);
    const page = await openPage(`/fleet?device=${own.id}`);
    await page.getByRole("region", { name: own.name, exact: true }).getByRole("link", { name: "other" }).waitFor();
    const late = await hold(page, isSql(/p\.device=77/));
    await rowsOf(page, "Devices").getByRole("button", { name: "shelf", exact: true }).click();
    const about = page.getByRole("region", { name: "shelf", exact: true });
    await about.waitFor();
    await late.asked;
    assert.equal(await about.getByRole("link", { name: "other" }).count(), 0);
    assert.equal(await about.getByText("…", { exact: true }).count(), 2, "neither is known yet");
    await late.letGo();
    await about.getByText("nothing", { exact: true }).waitFor();
    await page.close();
    change(`UPDATE sessions SET state = 'completed' WHERE session_id = ${OTHER}`);
});

test("unknown values of devices are shown as unknown, with the reason", async () => {
    const [own] = await sql(`SELECT d.device_id AS id, d.name FROM sessions s JOIN devices d USING (device_id) WHERE s.session_id = ${WHOLE}`);
    const page = await openPage("/", REFUSING);
    await refuse(page, isSql(/web\.device_sums|p\.device=/));
    await page.goto(new URL(`/fleet?device=${own.id}`, base).href);
    const about = page.getByRole("region", { name: own.name, exact: true });
    await about.getByRole("alert").getByText(REFUSED).waitFor();
    await comesTo(() => about.getByText("unknown", { exact: true }).count(), 2);
    await page.locator(".page > [role=alert]").waitFor();
    await comesTo(async () => (await texts(rowsOf(page, "Devices"))).every((row) => row.filter((text) => text === "unknown").length === 2), true);
    await page.close();
});

test("positions on the timeline of several sessions follow their current alignment", async () => {
    const page = await openPage(`/timeline?sessions=${WHOLE},${OTHER}&align=start`);
    await page.locator(".timeline canvas:not(.stale)").waitFor();
    const panel = page.getByRole("region", { name: "Sessions on this timeline" });
    await panel.getByText("not aligned by time: each begins at 0").first().waitFor();
    const late = await hold(page, isSql(/p\.mark=late/));
    await page.getByLabel("Aligned by").selectOption("mark:late");
    await late.asked;
    assert.equal(await panel.locator("tbody tr").count(), 0);
    assert.equal(await page.locator(".timeline").count(), 0);
    await late.letGo();
    await panel.getByText("its first late, by its own clock").first().waitFor();
    await page.locator(".timeline canvas:not(.stale)").waitFor();
    await page.close();
});

test("an older state of a session does not replace a newer one", async () => {
    const page = await openPage("/");
    let count = 0;
    const late = await hold(page, (url) => url.pathname.endsWith(`/sessions/${OTHER}`) && ++count === 1);
    await page.getByRole("link", { name: "other", exact: true }).click();
    await late.asked;
    change(`UPDATE sessions SET stored_calls = 4711 WHERE session_id = ${OTHER}`);
    const calls = page.locator(".tile", { has: page.getByText("Calls", { exact: true }) }).locator("dd");
    await comesTo(() => calls.textContent(), "4,711");
    await late.letGo();
    await drawnTwice(page);
    assert.equal(await calls.textContent(), "4,711");
    await page.close();
});

test("the palette requests its entries again each time", async () => {
    const page = await openPage("/");
    await page.locator("table.sessions tbody tr").nth(1).waitFor();
    const open = async (name) => {
        await page.keyboard.press("Control+k");
        await page.getByRole("option", { name: `${name} ·`, exact: false }).waitFor();
        await page.keyboard.press("Escape");
        await page.getByRole("dialog", { name: "Go to" }).waitFor({ state: "detached" });
    };
    await open("other");
    change(`UPDATE sessions SET name = 'renamed' WHERE session_id = ${OTHER}`);
    await open("renamed");
    await page.close();
    change(`UPDATE sessions SET name = 'other' WHERE session_id = ${OTHER}`);
});

test("Enter in the palette opens the entry chosen by arrows, before and after the replies to the typed text", async () => {
    for (const isBefore of [true, false]) {
        const page = await openPage(`/sessions/${WHOLE}`);
        await page.locator("[role=grid] .rows .mono").first().waitFor();
        await page.keyboard.press("Control+k");
        const wanted = page.getByRole("option", { name: new RegExp(`session ${OTHER}$`) });
        await wanted.waitFor();
        const late = await hold(page, isSql(/p\.text=o(&|$)/));
        await page.getByRole("combobox", { name: "Go to" }).fill("o");
        await late.asked;
        const options = (await page.getByRole("option").allTextContents()).length;
        for (let step = 0; step < options && (await wanted.getAttribute("aria-selected")) !== "true"; step++) {
            await page.keyboard.press("ArrowDown");
        }
        if (isBefore) {
            await page.keyboard.press("Enter");
        }
        await late.letGo();
        if (!isBefore) {
            await page.getByRole("option", { name: /function$/ }).first().waitFor();
            assert.equal(await wanted.getAttribute("aria-selected"), "true");
            await page.keyboard.press("Enter");
        }
        await page.waitForURL(new RegExp(`/sessions/${OTHER}$`));
        await page.close();
    }
});

test("findings are requested again each time", async () => {
    const page = await openPage("/zombies");
    await page.getByText("No findings yet.", { exact: false }).waitFor();
    change(`INSERT INTO zombies (zombie_id, fingerprint, kind, used_in, freed_in, allocated_in, state, reports, first_seen_realtime_ns, last_seen_realtime_ns)
        SELECT 1, 'f', 'use_after_free', 'use', 'drop', 'make', 'open', 1, 1, 1`);
    await page.getByRole("link", { name: "Fleet", exact: true }).click();
    await page.getByRole("heading", { name: "Fleet" }).waitFor();
    await page.getByRole("link", { name: "Findings", exact: true }).click();
    await page.getByRole("button", { name: "use after free" }).waitFor();
    await page.close();
});

test("no page asked any other server for anything, or logged an error", () => {
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
