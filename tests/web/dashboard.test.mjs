// The dashboard in a real browser, against a real server. Environment: SJ_WEB_FIXTURE (program that
// makes and serves the database), SJ_WEB_PACKAGES (folder with node_modules), SJ_WEB_OUTPUT (folder
// for the database and screenshots, inside the build), SJ_CHROMIUM. SJ_LONG=1: pages of this database are
// accessible, too, as looks.test.mjs proves of every page; more tabs, and ten times as
// many functions.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";

const environment = (name) => {
    const value = process.env[name];
    assert.ok(value, `${name} is not set: run these tests with ctest -L web`);
    return value;
};
const output = environment("SJ_WEB_OUTPUT");
const require = createRequire(path.join(environment("SJ_WEB_PACKAGES"), "package.json"));
const chromiumPath = process.env.SJ_CHROMIUM || "/usr/bin/chromium-headless-shell";

const isLong = process.env.SJ_LONG === "1";
const EXTRA_FUNCTIONS = isLong ? 100000 : 10000;
const ALL = (EXTRA_FUNCTIONS + 70).toLocaleString("en-US");
const TABS = isLong ? 12 : 7; // a browser opens at most six connections to a server
let server;
let answers;
let base;
let token;
let browser;
const foreign = [];
const problems = [];

async function order(text) {
    server.stdin.write(`${text}\n`);
    assert.equal((await answers.next()).value, "done");
}

before(async () => {
    assert.ok(
        existsSync(chromiumPath),
        `${chromiumPath} is missing: the browser tests need it (apt-get install chromium-headless-shell)`,
    );
    rmSync(output, { recursive: true, force: true });
    mkdirSync(output, { recursive: true });
    server = spawn(
        environment("SJ_WEB_FIXTURE"),
        [path.join(output, "dashboard.db"), String(EXTRA_FUNCTIONS)],
        { stdio: ["pipe", "pipe", "inherit"] },
    );
    answers = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
    [base, token] = (await answers.next()).value.split("#token=");
    assert.match(base, /^http:\/\/127\.0\.0\.1:\d+\/$/);
    const { chromium } = require("playwright-core");
    browser = await chromium.launch({
        executablePath: chromiumPath,
        args: ["--no-sandbox", "--disable-gpu", "--in-process-gpu"],
    });
});

after(async () => {
    await browser?.close();
    if (server) {
        const ended = new Promise((resolve) => server.on("exit", resolve));
        server.stdin.end();
        assert.equal(await ended, 0, "the server did not end well");
    }
});

// `expects`: errors that the browser should log. Any other error fails the test.
async function newContext(options) {
    const context = await browser.newContext(options);
    await context.addInitScript((text) => sessionStorage.setItem("token", text), token);
    return context;
}

async function openPage(target, { expects, ...options } = {}) {
    const context = await newContext({ viewport: { width: 1440, height: 900 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(120000);
    page.on("request", (request) => {
        const url = request.url();
        if (!url.startsWith(base) && !url.startsWith("data:")) {
            foreign.push(url);
        }
    });
    page.on("console", (message) => {
        if (message.type() === "error" && !expects?.test(message.text())) {
            problems.push(message.text());
        }
    });
    page.on("pageerror", (error) => problems.push(error.message));
    await page.goto(new URL(target, base).href);
    return page;
}

const names = (page) =>
    page.locator("[role=grid] .rows [role=row] .name .mono").allTextContents();
const treeRows = (page) => page.locator("[role=treegrid] .rows [role=row]");
const selectedName = (page) =>
    page.locator("[role=treegrid] [aria-selected=true] .name").textContent();

test("the list of sessions shows what ran, where, and what was lost", async () => {
    const page = await openPage("/");
    const rows = page.locator("table.sessions tbody tr");
    await rows.nth(2).waitFor();
    assert.equal(await rows.count(), 3);
    const crashed = await rows.nth(1).textContent();
    for (const part of ["crashed", "editor --crash", "bench-07", "3.00 s", "63.6K", "934"]) {
        assert.ok(crashed.includes(part), `${part} in ${crashed}`);
    }
    await page.screenshot({ path: path.join(output, "sessions.png") });
    await page.getByRole("link", { name: "editor --crash" }).click();
    await page.getByRole("heading", { name: "editor --crash" }).waitFor();
    assert.match(page.url(), /\/sessions\/2$/);
    await page.context().close();
});

test("searching sessions is kept in the address", async () => {
    const page = await openPage("/");
    await page.locator("table.sessions tbody tr").nth(2).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("crash");
    await page.waitForURL(/\?q=crash$/);
    await page.getByText("1 of 3").waitFor();
    assert.equal(await page.locator("table.sessions tbody tr").count(), 1);
    await page.reload();
    await page.getByText("1 of 3").waitFor();
    assert.equal(await page.locator("table.sessions tbody tr").count(), 1);
    await page.context().close();
});

test("new and changed sessions appear without a reload", async () => {
    const page = await openPage("/");
    await page.locator(".live.on").waitFor();
    await order("add freshly --recorded");
    await page.getByRole("link", { name: "freshly --recorded" }).waitFor();
    await order("grow 7777");
    await page.getByText("7,777").waitFor();
    await page.context().close();
});

test("functions sort by a column and back, and the address says how", async () => {
    const page = await openPage("/sessions/1");
    await page.getByText("tokenize").waitFor();
    assert.equal((await names(page))[0], "tokenize");
    await page.getByRole("button", { name: "p95" }).click();
    await page.waitForURL(/sort=p95/);
    await page.waitForFunction(
        () => document.querySelector("[role=grid] .rows .name .mono")?.textContent === "main",
    );
    const header = page.getByRole("columnheader", { name: "p95" });
    assert.equal(await header.getAttribute("aria-sort"), "descending");
    await page.getByRole("button", { name: "p95" }).click();
    await page.waitForURL(/order=asc/);
    assert.equal(await header.getAttribute("aria-sort"), "ascending");
    await page.reload();
    await page.waitForFunction(() => {
        const first = document.querySelector("[role=grid] .rows .name .mono")?.textContent;
        return first !== undefined && first !== "main" && first !== "tokenize";
    });
    await page.context().close();
});

test("searching functions narrows the table and counts what matches", async () => {
    const page = await openPage("/sessions/1");
    await page.getByText("tokenize").waitFor();
    await page.getByRole("searchbox").fill("leaf_05");
    await page.getByText(`10 of ${ALL} functions`).waitFor();
    const shown = await names(page);
    assert.equal(shown.length, 10);
    assert.ok(shown.every((name) => name.startsWith("leaf_05")));
    await page.getByRole("searchbox").fill("no such function");
    await page.getByText(`0 of ${ALL} functions`).waitFor();
    await page.context().close();
});

test(`${ALL} functions scroll with few rows in the document`, async () => {
    const page = await openPage("/sessions/1?sort=name");
    await page.locator("[role=grid] .rows .mono").first().waitFor();
    const grid = page.getByRole("grid", { name: "Functions" });
    assert.equal(await grid.getAttribute("aria-rowcount"), String(EXTRA_FUNCTIONS + 71));
    await grid.focus();
    await page.keyboard.press("End");
    await page.getByText("walk", { exact: true }).waitFor();
    assert.ok((await page.locator("[role=grid] .rows [role=row]").count()) < 80);
    const selected = page.locator("[role=grid] [aria-selected=true]");
    assert.equal(await selected.getAttribute("aria-rowindex"), String(EXTRA_FUNCTIONS + 71));
    await page.context().close();
});

test("the tree is walked with the keyboard only", async () => {
    const page = await openPage("/sessions/1");
    await page.getByText("tokenize").waitFor();
    await page.keyboard.press("2");
    await page.getByRole("treegrid").waitFor();
    await treeRows(page).first().waitFor();
    while (!(await page.evaluate(() => document.activeElement?.getAttribute("role") === "treegrid"))) {
        await page.keyboard.press("Tab");
    }
    assert.equal(await treeRows(page).count(), 1);
    await page.keyboard.press("ArrowRight");
    await page.getByText("parse_document").waitFor();
    assert.equal(await treeRows(page).count(), 4);
    await page.keyboard.press("ArrowRight");
    assert.match(await selectedName(page), /parse_document/);
    await page.keyboard.press("End");
    assert.match(await selectedName(page), /many_children/);
    await page.keyboard.press("ArrowRight");
    await page.getByText("48 more").waitFor();
    assert.equal(await treeRows(page).count(), 4 + 12 + 1);
    await page.screenshot({ path: path.join(output, "tree.png") });
    await page.keyboard.press("End");
    assert.match(await selectedName(page), /48 more/);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => !document.body.textContent.includes("48 more"));
    const grid = page.getByRole("treegrid");
    assert.equal(await grid.getAttribute("aria-rowcount"), String(4 + 60 + 1));
    await page.keyboard.press("ArrowLeft");
    assert.match(await selectedName(page), /many_children/);
    await page.keyboard.press("ArrowLeft");
    assert.equal(await grid.getAttribute("aria-rowcount"), "5");
    await page.keyboard.press("ArrowLeft");
    assert.match(await selectedName(page), /main/);
    await page.context().close();
});

test("the hottest path opens with one key and survives a reload", async () => {
    const page = await openPage("/sessions/1?view=tree");
    await treeRows(page).first().waitFor();
    await page.getByRole("treegrid").focus();
    await page.keyboard.press("h");
    await page.getByText("tokenize").waitFor();
    await page.waitForURL(/path=\d+/);
    assert.match(await selectedName(page), /tokenize/);
    await page.reload();
    await page.getByText("tokenize").waitFor();
    assert.match(await selectedName(page), /tokenize/);
    await page.context().close();
});

test("Enter on a function shows its hottest path in the tree", async () => {
    const page = await openPage("/sessions/1?q=walk");
    await page.locator("[role=grid] .rows .mono").first().waitFor();
    await page.getByRole("grid").focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/view=tree&path=\d+/);
    await page.getByRole("treegrid").waitFor();
    assert.match(await selectedName(page), /walk/);
    await page.context().close();
});

test("calls that have not ended are shown without an end, not as zero", async () => {
    const page = await openPage("/sessions/3?view=tree");
    const main = treeRows(page).first();
    await main.waitFor();
    const cells = await main.locator("[role=gridcell]").allTextContents();
    assert.ok(cells.includes("no end"), cells.join(" | "));
    assert.ok(!cells.includes("0"), cells.join(" | "));
    await page.context().close();
});

test("loss is shown with its reasons and its place", async () => {
    const page = await openPage("/sessions/2");
    await page.getByText("934 calls lost").waitFor();
    await page.getByText("the recorder's memory was full (900 calls, 1 gap)").waitFor();
    await page.getByRole("link", { name: "Details" }).click();
    await page.getByText("ring full").waitFor();
    await page.getByText("the head is 2 bytes short").waitFor();
    await page.context().close();
});

test("? shows the keys and Escape hides them", async () => {
    const page = await openPage("/");
    await page.locator("table.sessions").waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys and gestures" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.context().close();
});

test("a session that does not exist is reported", async () => {
    const page = await openPage("/sessions/4040", { expects: /status of 404/ });
    await page.getByRole("alert").waitFor();
    assert.match(await page.getByRole("alert").textContent(), /there is no session 4040/);
    await page.context().close();
});

const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

for (const colorScheme of isLong ? ["light", "dark"] : []) {
    for (const [name, target, ready] of [
        ["sessions", "/", "table.sessions"],
        ["functions", "/sessions/2", "[role=grid] .rows .mono"],
        ["tree", "/sessions/2?view=tree&function=3", "[role=treegrid] .rows .mono"],
        ["overview", "/sessions/2?view=overview", "table"],
        ["missing", "/sessions/2?view=missing", "td.mono"],
        ["timeline", "/sessions/1?view=timeline", ".timeline canvas"],
    ]) {
        test(`${name} is accessible in ${colorScheme} colours`, async () => {
            const page = await openPage(target, { colorScheme, reducedMotion: "reduce" });
            await page.locator(ready).first().waitFor();
            await page.locator(".live.on").waitFor();
            // Evaluated through the debugger, so that the page's own policy stays as served.
            await page.evaluate(axe);
            const result = await page.evaluate(() => window.axe.run());
            const found = result.violations.map(
                (violation) =>
                    `${violation.id}: ${violation.nodes.map((node) => `${node.html} ${node.failureSummary}`).join("\n")}`,
            );
            assert.deepEqual(found, []);
            assert.ok(result.passes.some((pass) => pass.id === "color-contrast"));
            await page.screenshot({ path: path.join(output, `${name}-${colorScheme}.png`) });
            await page.context().close();
        });
    }
}

const tile = (page, label) =>
    page.locator(".tile", { has: page.getByText(label, { exact: true }) }).locator("dd");

const CROWD = `sql INSERT INTO sessions (session_id, uuid, device_id, command, state,
    started_realtime_ns, ended_realtime_ns, started_ticks, tick_ns_numerator, tick_ns_denominator,
    stored_calls, lost_calls) WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE
    i < 578) SELECT 1000 + i, randomblob(16), 1, iif(i = 7, 'the needle', 'crowd ' || i),
    'completed', 1760000000000000000, 1760000001000000000, 0, 1, 2, 10, iif(i = 7, 3, 0)
    FROM n`.replaceAll("\n", " ");
const NO_CROWD = "sql DELETE FROM sessions WHERE session_id >= 1000";

test("totals and search cover all sessions, not only the loaded ones", async () => {
    await order(CROWD);
    const page = await openPage("/");
    const rows = page.locator("table.sessions tbody tr");
    await page.getByText("The newest 200 of").waitFor();
    const all = Number((await tile(page, "Sessions").textContent()).replaceAll(",", ""));
    assert.ok(all >= 579 + 3, String(all));
    assert.equal(await rows.count(), 200);
    await page.getByRole("button", { name: "Load older sessions" }).click();
    await page.getByText("The newest 400 of").waitFor();
    assert.equal(await rows.count(), 400);
    await page.getByRole("searchbox").fill("NEEDLE");
    await page.getByText(`1 of ${all}`).waitFor();
    assert.equal(await rows.count(), 1);
    assert.equal(await tile(page, "Calls").textContent(), "10");
    assert.equal(await tile(page, "Calls lost").textContent(), "3");
    await page.getByRole("searchbox").press("Escape");
    await page.getByText("The newest 200 of").waitFor();
    assert.equal(new URL(page.url()).search, "");
    await page.context().close();
});

test("a running session is updated although hundreds of newer ones exist", async () => {
    const page = await openPage("/sessions/3");
    await page.locator(".live.on").waitFor();
    await tile(page, "Calls").waitFor();
    await order("grow 8642");
    await page.getByText("8,642").waitFor();
    await page.context().close();
    await order(NO_CROWD);
});

test("the call tree and the losses of a running session are updated", async () => {
    const tree = await openPage("/sessions/3?view=tree");
    await treeRows(tree).first().waitFor();
    const missing = await openPage("/sessions/3?view=missing");
    await missing.getByText("None.").first().waitFor();
    await tree.locator(".live.on").waitFor();
    await missing.locator(".live.on").waitFor();
    await order(
        "sql UPDATE call_paths SET calls = 4321 WHERE session_id = 3 AND parent_path_id IS NULL;" +
            " INSERT INTO gaps (session_id, stream_id, number, reason, calls, events, start_ns," +
            " end_ns) VALUES (3, 3, 77, 'torn', 5, 10, 10, 20);" +
            " UPDATE sessions SET stored_calls = 5001 WHERE session_id = 3",
    );
    await tree.getByText("4,321").waitFor();
    const row = missing.locator("tr", { hasText: "torn" });
    await row.waitFor();
    assert.equal(await row.locator("td").first().textContent(), "editor");
    await order(
        "sql UPDATE call_paths SET calls = 0 WHERE session_id = 3 AND parent_path_id IS NULL;" +
            " DELETE FROM gaps WHERE session_id = 3",
    );
    await tree.context().close();
    await missing.context().close();
});

test("many tabs of one browser share one stream and are all updated", async () => {
    const first = await openPage("/");
    const tabs = [first];
    for (let i = 1; i < TABS; i++) {
        const tab = await first.context().newPage();
        tab.setDefaultTimeout(120000);
        await tab.goto(new URL(i % 2 ? "/sessions/1" : "/", base).href);
        tabs.push(tab);
    }
    for (const tab of tabs) {
        await tab.locator(".live.on").waitFor();
        await tab.locator("table.sessions, [role=grid] .rows .mono").first().waitFor();
    }
    await order("add from --afar");
    for (const tab of tabs.filter((_tab, index) => index % 2 === 0)) {
        await tab.getByRole("link", { name: "from --afar" }).waitFor();
    }
    await order("sql DELETE FROM sessions WHERE command = 'from --afar'");
    await first.context().close();
});

test("a page whose stream is refused shows its data", async () => {
    const context = await newContext();
    await context.addInitScript(() => {
        delete window.SharedWorker;
    });
    await context.route("**/api/v1/events", (route) =>
        route.fulfill({ status: 503, contentType: "application/json", body: "{}" }),
    );
    const page = await context.newPage();
    page.setDefaultTimeout(120000);
    await page.goto(base);
    await page.locator("table.sessions tbody tr").first().waitFor();
    await page.getByText("reconnecting…").waitFor();
    await context.unroute("**/api/v1/events");
    await page.locator(".live.on").waitFor();
    await context.close();
});

test("the loss banner counts no call twice and lists nothing that is not lost", async () => {
    await order("sql UPDATE sessions SET sent_calls = stored_calls + 934 WHERE session_id = 2");
    const page = await openPage("/sessions/2");
    const banner = page.locator(".banner");
    await page.getByText("934 calls lost").waitFor();
    assert.doesNotMatch(await banner.textContent(), /arrive/);
    await order(
        "sql UPDATE sessions SET sent_calls = stored_calls + 936, stored_bytes = 7 WHERE session_id = 2",
    );
    await page.getByText("2 calls were sent and did not arrive").waitFor();
    await order("sql UPDATE sessions SET sent_calls = NULL WHERE session_id = 2");
    await order(
        "sql INSERT INTO gaps (session_id, thread_number, number, reason, calls, events, start_ns," +
            " end_ns) VALUES (1, 1, 78, 'waited', 0, 0, 10, 20)",
    );
    await page.goto(new URL("/sessions/1", base).href);
    await page.getByText("No loss is known").waitFor();
    assert.match(await banner.textContent(), /Threads waited for the recorder 1 time, 10 ns in all/);
    assert.doesNotMatch(await banner.textContent(), /0 calls/);
    await order("sql DELETE FROM gaps WHERE session_id = 1");
    await order("sql UPDATE sessions SET missing_blocks = 1 WHERE session_id = 1");
    await page.reload();
    await page.getByText("1 block was sent and is not stored").waitFor();
    assert.doesNotMatch(await banner.textContent(), /Every call|No loss/);
    await page.goto(base);
    await page.locator("table.sessions tbody").getByText("▲ 1 block").waitFor();
    await order("sql UPDATE sessions SET missing_blocks = 0 WHERE session_id = 1");
    await page.context().close();
});

test("Escape clears a filter, the skip link skips, links between views keep the filter", async () => {
    const page = await openPage("/sessions/1?q=leaf_05");
    await page.getByText(`10 of ${ALL} functions`).waitFor();
    await page.getByRole("link", { name: "Overview" }).click();
    await page.waitForURL(/view=overview/);
    await page.getByRole("link", { name: "Functions", exact: true }).click();
    await page.getByText(`10 of ${ALL} functions`).waitFor();
    await page.getByRole("searchbox").press("Escape");
    await page.getByText(`${ALL} of ${ALL} functions`).waitFor();
    assert.equal(await page.getByRole("searchbox").inputValue(), "");
    await page.reload();
    await page.getByText("tokenize").waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "main");
    await page.context().close();
});

test("mistakes in an address keep the view and name what is missing", async () => {
    const page = await openPage("/sessions/1?sort=evil&order=sideways", {
        expects: /status of 404/,
    });
    await page.getByText("tokenize").waitFor();
    assert.equal((await names(page))[0], "tokenize");
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.goto(new URL("/sessions/1?view=tree&path=5", base).href);
    await page.getByText("this is the whole tree").waitFor();
    assert.equal(await treeRows(page).count(), 1);
    await page.context().close();
});

test("names that would turn or tear a page are shown as plain text in their place", async () => {
    await order(
        "sql UPDATE sessions SET command = '<script>x</script>' || char(0x202e) || 'gpj.exe'," +
            " name = printf('%.*c', 100000, 'w') WHERE session_id = 2",
    );
    for (const target of ["/", "/sessions/2"]) {
        const page = await openPage(target, { viewport: { width: 390, height: 844 } });
        await page.getByText("(100000 characters)").first().waitFor();
        if (target === "/") {
            await page.getByText("<script>x</script>⟨U+202E⟩gpj.exe").waitFor();
        }
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= 390, `${target} is ${wide} pixels wide`);
        await page.screenshot({ path: path.join(output, `hostile${target.replaceAll("/", "-")}.png`) });
        await page.context().close();
    }
    await order("sql UPDATE sessions SET command = 'editor --crash', name = '' WHERE session_id = 2");
});

test("a tap on a function opens it on a phone", async () => {
    const page = await openPage("/sessions/1?q=tokenize", {
        viewport: { width: 390, height: 844 },
        hasTouch: true,
        isMobile: true,
    });
    await page.getByRole("link", { name: "tokenize", exact: true }).tap();
    await page.waitForURL(/view=tree&path=\d+/);
    assert.match(await selectedName(page), /tokenize/);
    await page.context().close();
});

test("a chosen theme is set before anything is painted", async () => {
    const page = await openPage("/", { colorScheme: "light", expects: /ERR_FAILED/ });
    await page.evaluate(() => localStorage.setItem("theme", "dark"));
    await page.route("**/assets/app.*.js", (route) => route.abort());
    await page.reload({ waitUntil: "domcontentloaded" });
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
    await page.context().close();
});

test("a window with more calls than can be drawn shows the calls open at the beginning of its steps", async () => {
    await order("sql UPDATE timeline SET calls = calls + 400000 WHERE level = 14");
    const page = await openPage("/sessions/1?view=timeline");
    await page.getByText("The same as a table").click();
    const rows = page.getByRole("group", { name: "Calls of the timeline" }).locator("tbody tr");
    await rows.first().waitFor();
    const shown = await rows.evaluateAll((list) => list.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.ok(shown.every((row) => row[6] === "≈"), JSON.stringify(shown));
    assert.ok(shown.some((row) => row[1] === "0" && row[2] === "main"), JSON.stringify(shown));
    await order("sql UPDATE timeline SET calls = calls - 400000 WHERE level = 14");
    await page.context().close();
});

test("a session without calls has no timeline and says so", async () => {
    await order("sql UPDATE streams SET first_enter_ns = NULL WHERE session_id = 3");
    const page = await openPage("/sessions/3?view=timeline");
    await page.getByText("No call of this session is stored yet.").waitFor();
    await page.context().close();
});

test("no page asked any other server for anything, or logged an error", () => {
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
