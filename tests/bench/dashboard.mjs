// dashboard.mjs BUILD DATABASE: how quick the dashboard is in Debian's Chromium, on a database with a
// large session (its largest is shown). Prints one line a figure; ROUNDS rounds, median and range.
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";

const [build, database] = process.argv.slice(2).map((name) => path.resolve(name));
const ROUNDS = Number(process.env.ROUNDS ?? 5);
const FRAMES = 120;
const SESSIONS = 10000;
const AREA_NS = 4e9;
const STREAMS = 64;
const require = createRequire(path.join(build, "web", "package.json"));
const { chromium } = require("playwright-core");

function report(what, values, unit) {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted[Math.floor(sorted.length / 2)];
    const text = (value) => value.toFixed(value < 10 ? 1 : 0);
    console.log(`${what}: ${text(middle)} ${unit} (${text(sorted[0])} to ${text(sorted.at(-1))})`);
}

async function serve(file) {
    const server = spawn(path.join(build, "bin", "sojourn"), ["ui", "--port", "0", "--no-open", file]);
    const [base, token] = await new Promise((resolve, reject) => {
        let said = "";
        const read = (text) => {
            said += text;
            const place = /(http:\/\/127\.0\.0\.1:\d+\/)#token=([0-9a-f]+) /.exec(said);
            if (place) {
                resolve(place.slice(1));
            }
        };
        server.stdout.on("data", read);
        server.stderr.on("data", read);
        server.on("exit", () => reject(new Error(said)));
    });
    return { server, base, token };
}

const login = (token) => ({ Authorization: `Bearer ${token}` });
const askAt = async ({ base, token }, address) => (await fetch(new URL(address, base), { headers: login(token) })).json();

async function newContext(browser, token, options) {
    const context = await browser.newContext(options);
    await context.addInitScript((text) => location.protocol === "http:" && sessionStorage.setItem("token", text), token);
    return context;
}

async function stop({ server }) {
    const ended = new Promise((resolve) => server.on("exit", resolve));
    server.kill("SIGINT");
    await ended;
}

// The scripts and styles that a page loads, as sent.
async function firstPage(browser, { base, token }) {
    const page = await (await newContext(browser, token)).newPage();
    const names = [];
    page.on("request", (request) => names.push(path.basename(new URL(request.url()).pathname)));
    await page.goto(base);
    await page.locator("table.sessions tbody tr").first().waitFor();
    const assets = path.join(build, "web", "dist", "assets");
    const loaded = readdirSync(assets).filter((name) => names.includes(name) && name.endsWith(".js"));
    const bytes = loaded.reduce((sum, name) => sum + gzipSync(readFileSync(path.join(assets, name)), { level: 9 }).length, 0);
    report("script of the first page, gzip", [bytes / 1024], "KiB");
    await page.context().close();
}

async function usable(browser, { base, token }, target, ready) {
    const context = await newContext(browser, token, { viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    const start = performance.now();
    await page.goto(new URL(target, base).href);
    await page.waitForFunction(ready, undefined, { polling: "raf" });
    const took = performance.now() - start;
    return { took, page, context };
}

const LIST = () => document.querySelectorAll("table.sessions tbody tr").length > 100;
const DRAWN = () =>
    document.querySelector(".timeline canvas")?.clientHeight > 100 && !document.querySelector("canvas.stale");

const KEYS = ["KeyW", "KeyW", "KeyW", "KeyD", "KeyS", "KeyS", "KeyS", "KeyA"];

// Frames while keys are held, or nothing happens: the time from one to the next.
function intervals(page, keys) {
    return page.evaluate(
        async ([count, pressed]) => {
            const box = document.querySelector(".timeline");
            const times = [];
            let before = await new Promise(requestAnimationFrame);
            for (let i = 0; i < count; i++) {
                if (pressed.length > 0) {
                    box.dispatchEvent(new KeyboardEvent("keydown", { code: pressed[i % pressed.length], bubbles: true }));
                }
                const now = await new Promise(requestAnimationFrame);
                times.push(now - before);
                before = now;
            }
            return times;
        },
        [FRAMES, keys],
    );
}

const p95 = (times) => [...times].sort((a, b) => a - b)[Math.floor(times.length * 0.95)];

// Measures one page, still and moving, in turn; and the CPU time of its main thread for a frame.
async function frames(page) {
    await page.getByRole("group", { name: "Timeline" }).focus();
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.setTimeDomain", { timeDomain: "threadTicks" });
    await session.send("Performance.enable");
    const worked = async () => {
        const { metrics } = await session.send("Performance.getMetrics");
        return metrics.find((metric) => metric.name === "TaskDuration").value * 1000;
    };
    const still = p95(await intervals(page, []));
    const before = await worked();
    const moving = p95(await intervals(page, KEYS));
    return { still, moving, cpu: ((await worked()) - before) / FRAMES };
}

const browser = await chromium.launch({
    executablePath: process.env.SJ_CHROMIUM || "/usr/bin/chromium-headless-shell",
    args: ["--no-sandbox", "--disable-gpu"],
});
const scratch = mkdtempSync(path.join(tmpdir(), "dashboard-bench."));
const many = path.join(scratch, "many.db");
copyFileSync(database, many);
spawnSync("/usr/bin/python3", [
    "-c",
    `import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as held:
    columns = [row[1] for row in held.execute("PRAGMA table_info(sessions)") if row[1] not in ("session_id", "uuid")]
    names = ", ".join(columns)
    held.execute(f"INSERT INTO sessions (uuid, {names}) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                 f" WHERE i < ${SESSIONS}) SELECT randomblob(16), {names} FROM n,"
                 " (SELECT * FROM sessions ORDER BY session_id LIMIT 1)")`,
    many,
]);
const crowd = await serve(many);
await firstPage(browser, crowd);
const lists = [];
for (let i = 0; i < ROUNDS; i++) {
    const { took, context } = await usable(browser, crowd, "/", LIST);
    lists.push(took);
    await context.close();
}
report(`list of ${SESSIONS} sessions usable`, lists, "ms");
await stop(crowd);

const large = await serve(database);
const answer = await askAt(large, "/api/v1/sql?sql=SELECT session_id, stored_calls FROM sessions ORDER BY stored_calls DESC LIMIT 1");
const [session, calls] = answer.rows[0];
const paints = [];
const blank = []; // a picture instead of a page, by turns: what the browser takes for any navigation
const slow = [];
const still = [];
const drawing = [];
const answers = [];
const sizes = [];
for (let i = 0; i < ROUNDS; i++) {
    const empty = await usable(browser, large, "/favicon.svg", () => true);
    blank.push(empty.took);
    await empty.context.close();
    const { took, page, context } = await usable(browser, large, `/sessions/${session}?view=timeline`, DRAWN);
    paints.push(took);
    page.on("requestfinished", async (request) => {
        if (/\/(timeline|calls)\?/.test(request.url())) {
            const time = request.timing();
            const size = await request.sizes().catch(() => ({ responseBodySize: 0 }));
            answers.push(time.responseEnd - time.requestStart);
            sizes.push(size.responseBodySize / 1024);
        }
    });
    const moved = await frames(page);
    slow.push(moved.moving);
    still.push(moved.still);
    drawing.push(moved.cpu);
    for (const key of ["w", "w", "d", "w", "w", "a", "w", "w"]) {
        const asked = page.waitForResponse((response) => /\/(timeline|calls)\?/.test(response.url()), { timeout: 2000 });
        await page.keyboard.press(key);
        await asked.catch(() => null); // small moves ask nothing
        await page.waitForFunction(DRAWN, undefined, { polling: "raf" });
    }
    await context.close();
}
report(`timeline of ${calls} calls, navigation to drawn`, paints, "ms");
report("navigation to a small picture, its floor", blank, "ms");
report("95th percentile of a frame while keys zoom and move", slow, "ms");
report("the same page without a key, its floor", still, "ms");
report("CPU time of the page's main thread for such a frame", drawing, "ms");
report("answers about the timeline, one zoom or move after the other", answers, "ms");
report("their size, compressed", sizes, "KiB");
const [[from, to]] = (
    await askAt(large, `/api/v1/sql?sql=SELECT min(first_enter_ns), max(last_leave_ns) FROM streams WHERE session_id=${session}`)
).rows;
async function timeOf(server, sql) {
    const asked = new URL("/api/v1/sql", server.base);
    asked.searchParams.set("sql", sql);
    asked.searchParams.set("ms", "30000");
    const start = performance.now();
    await askAt(server, asked);
    return performance.now() - start;
}
const all = `SELECT count(*) FROM call_aggregate(${session})`;
const areaOf = (i) => {
    const begin = Math.floor(from + ((to - from - AREA_NS) * (i + 0.5)) / ROUNDS);
    return `SELECT * FROM call_aggregate(${session}, ${begin}, ${begin + AREA_NS})`;
};
await timeOf(large, all); // as the page has asked, if that has not come to its end
const kept = [];
for (let i = 0; i < ROUNDS; i++) {
    kept.push(await timeOf(large, areaOf(i)));
}
report(`sums of an area of ${AREA_NS / 1e9} s, sums of blocks kept`, kept, "ms");
const memory = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${large.server.pid}/status`, "utf8"));
report("server, most memory", [Number(memory[1]) / 1024], "MiB");
await stop(large);
const read = [];
const filled = [];
for (let i = 0; i < ROUNDS; i++) {
    const fresh = await serve(database);
    read.push(await timeOf(fresh, areaOf(i)));
    filled.push(await timeOf(fresh, all));
    await stop(fresh);
}
report("the same, the first time", read, "ms");
report("sums of all blocks, the first time", filled, "ms");
await browser.close();

// The collector's CPU time for one recording, with and without open event streams, by turns.
const collector = spawn(path.join(build, "bin", "sojournd"), [
    ...["--database", path.join(scratch, "lab.db"), "--listen", `ipc://${scratch}/s.ipc`, "--http", "127.0.0.1:0"],
]);
const hub = await new Promise((resolve) => {
    let said = "";
    collector.stderr.on("data", (text) => {
        said += text;
        const place = /dashboard at (http:\/\/127\.0\.0\.1:\d+\/)/.exec(said);
        if (place) {
            resolve(place[1]);
        }
    });
});
const cpuMs = () => {
    const fields = readFileSync(`/proc/${collector.pid}/stat`, "utf8").split(") ")[1].split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10; // in ticks of 10 ms
};
async function ingest() {
    const before = cpuMs();
    const recorder = spawn(path.join(build, "bin", "sojourn"), [
        ...["record", "-q", "--collector", `ipc://${scratch}/s.ipc`, "--spool", path.join(scratch, "spool"), "--wait", "60s"],
        ...["--", "/usr/bin/lua5.4", path.join(import.meta.dirname, "workloads", "fib.lua"), "35"],
    ]);
    await new Promise((resolve) => recorder.on("exit", resolve));
    return cpuMs() - before;
}
const alone = [];
const watched = [];
for (let i = 0; i < ROUNDS; i++) {
    alone.push(await ingest());
    const abort = new AbortController();
    const headers = login(readFileSync(path.join(scratch, "lab.db.token"), "utf8").trim());
    const streams = await Promise.all(
        Array.from({ length: STREAMS }, () => fetch(new URL("/api/v1/events", hub), { headers, signal: abort.signal })),
    );
    const drained = streams.map((stream) => stream.text().catch(() => ""));
    watched.push(await ingest());
    abort.abort();
    await Promise.all(drained);
}
report("collector's CPU for a recording", alone, "ms");
report(`the same with ${STREAMS} event streams`, watched, "ms");
const most = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${collector.pid}/status`, "utf8"));
report("collector, most memory", [Number(most[1]) / 1024], "MiB");
collector.kill("SIGTERM");
await new Promise((resolve) => collector.on("exit", resolve));
rmSync(scratch, { recursive: true });
