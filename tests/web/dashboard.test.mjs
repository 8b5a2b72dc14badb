// The dashboard in a real browser, against a real server. Environment: SJ_WEB_FIXTURE (program that
// makes and serves the database), SJ_WEB_PACKAGES (folder with node_modules), SJ_WEB_OUTPUT (folder
// for the database and screenshots, inside the build), SJ_CHROMIUM.
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
const chromiumPath = process.env.SJ_CHROMIUM || "/usr/bin/chromium";

const EXTRA_FUNCTIONS = 100000;
let server;
let answers;
let base;
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
        `${chromiumPath} is missing: the browser tests need it (apt-get install chromium)`,
    );
    rmSync(output, { recursive: true, force: true });
    mkdirSync(output, { recursive: true });
    server = spawn(
        environment("SJ_WEB_FIXTURE"),
        [path.join(output, "dashboard.db"), String(EXTRA_FUNCTIONS)],
        { stdio: ["pipe", "pipe", "inherit"] },
    );
    answers = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
    base = (await answers.next()).value;
    assert.match(base, /^http:\/\/127\.0\.0\.1:\d+\/$/);
    const { chromium } = require("playwright-core");
    browser = await chromium.launch({
        executablePath: chromiumPath,
        args: ["--no-sandbox", "--disable-gpu"],
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

async function openPage(target, options = {}) {
    const context = await browser.newContext({
        viewport: { width: 1440, height: 900 },
        ...options,
    });
    const page = await context.newPage();
    page.setDefaultTimeout(20000);
    page.on("request", (request) => {
        const url = request.url();
        if (!url.startsWith(base) && !url.startsWith("data:")) {
            foreign.push(url);
        }
    });
    page.on("console", (message) => {
        if (message.type() === "error") {
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
    assert.equal(await page.locator("table.sessions tbody tr").count(), 1);
    await page.reload();
    await page.locator("table.sessions tbody tr").first().waitFor();
    assert.equal(await page.locator("table.sessions tbody tr").count(), 1);
    await page.context().close();
});

test("new and changed sessions appear without a reload", async () => {
    const page = await openPage("/");
    await page.locator(".live.on").waitFor();
    await order("add freshly --recorded");
    await page.getByRole("link", { name: "freshly --recorded" }).waitFor({ timeout: 5000 });
    await order("grow 7777");
    await page.getByText("7,777").waitFor({ timeout: 5000 });
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
    await page.getByText("10 of 100,070 functions").waitFor();
    const shown = await names(page);
    assert.equal(shown.length, 10);
    assert.ok(shown.every((name) => name.startsWith("leaf_05")));
    await page.getByRole("searchbox").fill("no such function");
    await page.getByText("0 of 100,070 functions").waitFor();
    await page.context().close();
});

test("a hundred thousand functions scroll with few rows in the document", async () => {
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

test("calls that have not ended are without end, not none", async () => {
    const page = await openPage("/sessions/3?view=tree");
    const main = treeRows(page).first();
    await main.waitFor();
    const cells = await main.locator("[role=gridcell]").allTextContents();
    assert.ok(cells.includes("no end"), cells.join(" | "));
    assert.ok(!cells.includes("0"), cells.join(" | "));
    await page.context().close();
});

test("loss is said with its reasons, and where it is", async () => {
    const page = await openPage("/sessions/2");
    await page.getByText("934 calls lost").waitFor();
    await page.getByText("the recorder's memory was full (900 calls, 1 gap)").waitFor();
    await page.getByRole("link", { name: "Where" }).click();
    await page.getByText("ring full").waitFor();
    await page.getByText("the head is 2 bytes short").waitFor();
    await page.context().close();
});

test("? shows the keys and Escape hides them", async () => {
    const page = await openPage("/");
    await page.locator("table.sessions").waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.context().close();
});

test("a session that does not exist is said so", async () => {
    const page = await openPage("/sessions/4040");
    await page.getByRole("alert").waitFor();
    assert.match(await page.getByRole("alert").textContent(), /there is no session 4040/);
    // The browser logs the 404 that this test wants, and nothing else.
    assert.match(problems.pop() ?? "", /status of 404/);
    await page.context().close();
});

const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

for (const colorScheme of ["light", "dark"]) {
    for (const [name, target, ready] of [
        ["sessions", "/", "table.sessions"],
        ["functions", "/sessions/2", "[role=grid] .rows .mono"],
        ["tree", "/sessions/2?view=tree&function=3", "[role=treegrid] .rows .mono"],
        ["overview", "/sessions/2?view=overview", "table"],
        ["missing", "/sessions/2?view=missing", "td.mono"],
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

test("no page asked any other server for anything, or logged an error", () => {
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
