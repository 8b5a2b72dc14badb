// Shared by the tests of pages: recordings in a database, sojournd that serves it, a browser, and
// SQL. Environment: SJ_BIN (folder of the built programs), SJ_WEB_PROGRAM (recorded_program),
// SJ_WEB_PACKAGES, SJ_WEB_OUTPUT, SJ_CHROMIUM, SJ_WEB_TIMEOUT_MS (how long a test waits for what it
// expects). SJ_LONG=1: checkLooks checks each size in each theme, and saves pictures.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";

const environment = (name) => {
    const value = process.env[name];
    assert.ok(value, `${name} is not set: run these tests with ctest -L web`);
    return value;
};
export const isLong = process.env.SJ_LONG === "1";
const PATIENCE_MS = Number(process.env.SJ_WEB_TIMEOUT_MS ?? 120000);

export const bin = environment("SJ_BIN");
export const program = environment("SJ_WEB_PROGRAM");
export const output = environment("SJ_WEB_OUTPUT");
export const require = createRequire(path.join(environment("SJ_WEB_PACKAGES"), "package.json"));
export const database = path.join(output, "lab.db");
export const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const OTHER_SITE = "other.example"; // the browser resolves this name to this machine
export const foreign = []; // requests to other servers
export const problems = []; // errors in the consoles of the pages

export let base; // address of the server
export let token; // the token for requests to the server
export let format; // the dashboard's own module for formatting numbers
let server;
let log = "";
let browser;
let shared; // browser context that most pages share

// Makes an empty folder for the recordings.
export function clean() {
    rmSync(output, { recursive: true, force: true });
    mkdirSync(output, { recursive: true });
}

export function record(name, options, ...words) {
    const run = spawnSync(path.join(bin, "sojourn"), [
        ...["record", "-q", "-o", database, "--name", name, ...options, "--", program, ...words],
    ]);
    assert.equal(run.error, undefined);
    return run;
}

// Runs statements on the database in another process, as another program would.
export function change(statements) {
    const script = "import sqlite3, sys\nwith sqlite3.connect(sys.argv[1], timeout=60) as held: held.executescript(sys.argv[2])";
    const run = spawnSync("/usr/bin/python3", ["-c", script, database, statements], { encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
}

async function loadFormat() {
    const source = fileURLToPath(new URL("../../web-static/src/format.ts", import.meta.url));
    const { code } = require("esbuild").transformSync(readFileSync(source, "utf8"), { loader: "ts" });
    const file = path.join(output, "format.mjs");
    writeFileSync(file, code);
    return import(pathToFileURL(file).href);
}

function collector(address) {
    return [path.join(bin, "sojournd"), ["--database", database, "--listen", address, "--http", "127.0.0.1:0"]];
}

// Starts a program that serves the dashboard, given as a list of words, or a collector that listens
// at an address. Waits for the address that it prints.
export async function start(what = `ipc://${output}/s.ipc`) {
    server = spawn(...(Array.isArray(what) ? what : collector(what)));
    [base, token] = await new Promise((resolve, reject) => {
        const take = (text) => {
            log += text;
            const place = /(http:\/\/127\.0\.0\.1:\d+\/)(?:#token=([0-9a-f]+) )?.*\n/.exec(log);
            if (place) {
                resolve([place[1], place[2] ?? readFileSync(`${database}.token`, "utf8").trim()]);
            }
        };
        server.stderr.on("data", take);
        server.stdout.on("data", take);
        server.on("exit", () => reject(new Error(`${server.spawnfile} ended: ${log}`)));
    });
    format = await loadFormat();
    const { chromium } = require("playwright-core");
    browser = await chromium.launch({
        executablePath: process.env.SJ_CHROMIUM || "/usr/bin/chromium-headless-shell",
        args: ["--no-sandbox", "--disable-gpu", "--in-process-gpu", `--host-resolver-rules=MAP ${OTHER_SITE} 127.0.0.1`],
    });
}

export async function stop() {
    await browser?.close();
    if (server) {
        const ended = new Promise((resolve) => server.on("exit", resolve));
        assert.equal(server.exitCode ?? server.signalCode, null, `it ended by itself: ${log}`);
        server.kill("SIGTERM");
        assert.equal(await ended, 0, log);
    }
}

// Sends a request to the server as the dashboard does.
export const ask = (address) => fetch(new URL(address, base), { headers: { Authorization: `Bearer ${token}` } });

// Runs a statement, or asks a question of the dashboard by its name.
async function run(asked) {
    const address = new URL("/api/v1/sql", base);
    const limits = { rows: "20000", ms: "30000" }; // generous, because other tests run at the same time
    for (const [name, value] of Object.entries({ ...limits, ...asked })) {
        address.searchParams.set(name, value);
    }
    const answer = await (await ask(address)).json();
    assert.equal(answer.error, undefined, answer.error);
    return answer.rows.map((row) =>
        Object.fromEntries(answer.columns.map((name, at) => [name, row[at]])),
    );
}

export const sql = (statement, values = {}) =>
    run({ sql: statement, ...Object.fromEntries(Object.entries(values).map(([name, value]) => [`p.${name}`, value])) });

// Returns the rows of the question that a panel links to.
export function rowsOfLink(link) {
    const { question, ...values } = Object.fromEntries(link.searchParams);
    return run({ ...values, query: question });
}

// Checks that the numbers of the recordings are consistent, so that pages have sound data to show.
export async function checkSums() {
    const file = new URL("../system/support/contradictions.sql", import.meta.url);
    assert.deepEqual(await sql(readFileSync(file, "utf8")), []);
}

// Returns the call of parse_line that does more work than the others.
export async function slowCall(session) {
    const [call] = await sql(
        `SELECT c.call_id, c.start_ns, c.duration_ns, c.self_ns, c.function_id FROM arguments a JOIN calls c USING (call_id)
         WHERE a.session_id = ${session} AND a.position = 1 AND a.value = 77`,
    );
    return call;
}

export function newStranger(options) {
    return browser.newContext({ viewport: { width: 1440, height: 900 }, acceptDownloads: true, ...options });
}

// Returns a browser context whose user has signed in to the server.
export async function newContext(options) {
    const context = await newStranger(options);
    const give = ([place, text]) => location.origin === place && sessionStorage.setItem("token", text);
    await context.addInitScript(give, [new URL(base).origin, token]);
    return context;
}

// Opens a page of the server, or of a file. Most pages share a context, and so the browser's
// compiled scripts. Close the page with page.close().
export async function openPage(target, { expects, ...options } = {}) {
    const isShared = Object.keys(options).length === 0;
    const context = isShared ? (shared ??= await newContext({})) : await newContext(options);
    const page = await context.newPage();
    if (!isShared) {
        page.on("close", () => context.close().catch(() => {})); // the context may already be closed with the browser
    }
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("request", (request) => {
        const url = request.url();
        if (!url.startsWith(base) && !url.startsWith(`file://${output}/`) && !url.startsWith("data:") && !url.startsWith("blob:")) {
            foreign.push(url);
        }
    });
    page.on("console", (message) => {
        if (message.type() === "error" && !expects?.test(message.text())) {
            problems.push(`${target}: ${message.text()}`);
        }
    });
    page.on("pageerror", (error) => problems.push(`${target}: ${error.message}`));
    await page.goto(new URL(target, base).href);
    return page;
}

export const texts = (rows) => rows.evaluateAll((list) => list.map((row) => [...row.cells].map((cell) => cell.textContent.trim())));
export const rowsOf = (page, label) => page.getByRole("group", { name: label, exact: true }).locator("tbody tr");

// Waits until `read` returns the wanted value, because pages show data as it arrives.
export async function comesTo(read, wanted) {
    const until = Date.now() + PATIENCE_MS;
    let got = await read();
    while (!isDeepStrictEqual(got, wanted) && Date.now() < until) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        got = await read();
    }
    assert.deepEqual(got, wanted);
}

export async function openTwin(page) {
    await page.getByText("The same as a table").last().click();
}

// Returns the rows of the question that a panel links to, formatted as the panel should show them.
// A value `undefined` is not compared.
const wantedOf = async (link, show) => (await rowsOfLink(link)).map(show);

// Checks a panel that links to its SQL: it shows as many rows as its question returns, and the
// same numbers.
export async function checkPanel(page, title, show) {
    const panel = page.getByRole("region", { name: title, exact: true });
    await panel.locator("tbody tr").first().waitFor();
    const until = Date.now() + PATIENCE_MS;
    const addressNow = () => panel.getByRole("link", { name: "SQL", exact: true }).first().getAttribute("href");
    let address = await addressNow();
    let wanted = await wantedOf(new URL(address, base), show);
    let problem = "";
    do {
        if ((await addressNow()) !== address) {
            address = await addressNow();
            wanted = await wantedOf(new URL(address, base), show);
        }
        const shown = await texts(panel.locator("tbody tr"));
        const wrong = wanted.flatMap((row, index) =>
            row.flatMap((text, column) =>
                text === undefined || shown[index]?.[column] === String(text) ? [] : [`row ${index}, column ${column}: ${shown[index]?.[column]} instead of ${text}`],
            ),
        );
        problem = shown.length === wanted.length ? wrong.join("\n") : `${shown.length} rows instead of ${wanted.length}`;
    } while (problem !== "" && Date.now() < until && (await new Promise((resolve) => setTimeout(() => resolve(true), 50))));
    assert.equal(problem, "", title);
    return wanted;
}

const WIDE = { width: 1280, height: 900 };
const MIDDLE = { width: 1024, height: 768 };
const NARROW = { width: 390, height: 844 };

// Returns the words of a page's tables that continue on a second line. Longer words, such as paths,
// may have to.
const brokenWords = (page) =>
    page.evaluate(() => {
        const broken = new Set();
        const range = document.createRange();
        for (const cell of document.querySelectorAll("td, th, [role=gridcell]")) {
            const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
            for (let text = walker.nextNode(); text; text = walker.nextNode()) {
                for (const word of text.data.matchAll(/(?<!\S)[A-Za-z0-9_.]{2,24}(?!\S)/g)) {
                    range.setStart(text, word.index);
                    range.setEnd(text, word.index + word[0].length);
                    if (new Set([...range.getClientRects()].map((line) => Math.round(line.top))).size > 1) {
                        broken.add(word[0]);
                    }
                }
            }
        }
        return [...broken];
    });

// Checks that a page has no accessibility violation in both themes, breaks no word of a table on a
// small screen, and is not wider than a phone.
export async function checkLooks(page, name) {
    await page.setViewportSize(MIDDLE);
    assert.deepEqual(await brokenWords(page), [], `${name}: words on two lines`);
    await page.evaluate(axe);
    for (const [size, viewport, themes] of [["wide", WIDE, ["light"]], ["narrow", NARROW, ["dark"]]]) {
        await page.setViewportSize(viewport);
        await page.waitForFunction((width) => document.documentElement.scrollWidth <= width, viewport.width);
        for (const colorScheme of isLong ? ["light", "dark"] : themes) {
            await page.emulateMedia({ colorScheme });
            const found = await page.evaluate(async (only) => {
                const { violations } = await window.axe.run({ resultTypes: ["violations"], ...(only ? { runOnly: ["color-contrast"] } : {}) });
                return violations.map(({ id, nodes }) => [id, ...nodes.map((node) => node.html)].join("\n"));
            }, colorScheme === "dark");
            assert.deepEqual(found, [], `${name}, ${size}, ${colorScheme}`);
            if (isLong) {
                await page.screenshot({ path: path.join(output, `${name}-${size}-${colorScheme}.png`), fullPage: true });
            }
        }
    }
}

// Checks that hostile names run nothing, do not reverse text, and do not make a page wider than a
// phone.
export async function checkInert(page, name) {
    assert.notEqual(await page.title(), "taken", name);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 390, `${name} is ${wide} pixels wide`);
    const raw = await page.evaluate(() => document.body.textContent.includes("\u202e"));
    assert.equal(raw, false, `${name} holds a character that turns the direction of text`);
}

// Saves a session as one HTML file through the page, and opens the file without a network.
export async function saveOne(page, name, options = {}) {
    await page.getByText("Export", { exact: true }).click();
    const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: /^one HTML page/ }).click(),
    ]);
    const file = path.join(output, name);
    await download.saveAs(file);
    return openPage(pathToFileURL(file).href, { offline: true, ...options });
}
