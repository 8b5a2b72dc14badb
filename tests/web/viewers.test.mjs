// Exported files in a viewer that others wrote, the real speedscope; and the rules of its format for trace events,
// which Perfetto reads, too.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, test } from "node:test";
import { bin, clean, database, output, record, require, sql, start, stop } from "./lab.mjs";

const WHOLE = 1;
const FALLEN = 2; // with calls that never ended
const VALUED = 3;
let viewer; // serves speedscope's own files and the exports
let address;
let browser;
const foreign = [];

const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm" };

function serve(request, response) {
    const { pathname } = new URL(request.url, "http://localhost");
    const folder = pathname.startsWith("/exports/") ? output : path.join(path.dirname(require.resolve("speedscope/package.json")), "dist/release");
    try {
        const body = readFileSync(path.join(folder, path.basename(pathname)));
        response.writeHead(200, { "Content-Type": types[path.extname(pathname)] ?? "application/octet-stream" });
        response.end(body);
    } catch {
        response.writeHead(404).end();
    }
}

function exportAs(format, session, name) {
    const run = spawnSync(path.join(bin, "sojourn"), [
        ...["export", "--format", format, "--session", String(session), "-o", path.join(output, name), database],
    ], { encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
}

before(async () => {
    clean();
    assert.equal(record("whole", [], "300", "0").status, 0);
    record("fallen", [], "crash");
    assert.equal(record("valued", ["--value", "parse_line(number:int) -> int"], "300", "0").status, 0);
    await start();
    exportAs("folded", WHOLE, "paths.folded");
    exportAs("chrome-json", WHOLE, "trace.json");
    exportAs("chrome-json", FALLEN, "fallen.json");
    exportAs("chrome-json", VALUED, "valued.json");
    viewer = http.createServer(serve);
    await new Promise((resolve) => viewer.listen(0, "127.0.0.1", resolve));
    address = `http://127.0.0.1:${viewer.address().port}/`;
    const { chromium } = require("playwright-core");
    browser = await chromium.launch({
        executablePath: process.env.SJ_CHROMIUM || "/usr/bin/chromium",
        args: ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"], // speedscope draws by WebGL
    });
});

after(async () => {
    await browser?.close();
    viewer?.close();
    await stop();
});

async function open(target) {
    const page = await (await browser.newContext({ viewport: { width: 1400, height: 900 } })).newPage();
    page.setDefaultTimeout(120000);
    page.on("request", (request) => {
        if (!request.url().startsWith(address) && !/^(data|blob|chrome):/.test(request.url())) {
            foreign.push(request.url());
        }
    });
    await page.goto(target);
    return page;
}

async function functionNames() {
    const rows = await sql(`SELECT f.name, s.self_ns FROM function_stats s JOIN functions f USING (function_id) WHERE s.session_id = ${WHOLE} AND s.calls > 0`);
    return rows;
}

for (const [name, file] of [["call paths", "paths.folded"], ["trace events", "trace.json"]]) {
    test(`speedscope shows the functions of the export as ${name}`, async () => {
        const page = await open(`${address}index.html#profileURL=${encodeURIComponent(`${address}exports/${file}`)}&title=run`);
        await page.getByText("Sandwich").click();
        await page.locator("tr", { hasText: "load_file" }).first().waitFor();
        const shown = await page.locator("tr").evaluateAll((rows) => rows.map((row) => row.textContent));
        const known = (await functionNames()).filter((row) => row.self_ns > 0);
        // Of trace events it shows one thread at a time: the first.
        const inMain = new Set((await sql(`SELECT DISTINCT f.name FROM calls c JOIN functions f USING (function_id) JOIN threads t ON t.thread_id = c.thread_id
            WHERE c.session_id = ${WHOLE} AND t.is_main`)).map((row) => row.name));
        for (const row of known.filter((one) => file === "paths.folded" || inMain.has(one.name))) {
            assert.ok(shown.some((text) => text.endsWith(row.name) || text.includes(row.name)), `${row.name} in ${shown.join(" | ")}`);
        }
        await page.screenshot({ path: path.join(output, `speedscope-${file}.png`) });
        await page.context().close();
    });
}

// What Perfetto's reader of this format asks for: whole numbers for processes and threads, times as numbers, and
// calls of a thread one inside the other or one after the other, never across.
test("trace events keep to the rules of the format: each call once, nested, with named threads", async () => {
    const { traceEvents: events } = JSON.parse(readFileSync(path.join(output, "trace.json"), "utf8"));
    const calls = await sql(`SELECT f.name, c.start_ns, c.duration_ns, t.tid, p.pid FROM calls c JOIN functions f USING (function_id)
        JOIN threads t ON t.thread_id = c.thread_id JOIN processes p ON p.session_id = t.session_id AND p.number = t.process_number
        WHERE c.session_id = ${WHOLE} AND c.duration_ns IS NOT NULL`);
    const line = (name, pid, tid, from, length) => `${name} ${pid} ${tid} ${from.toFixed(3)} ${length.toFixed(3)}`;
    const complete = events.filter(({ ph }) => ph === "X");
    assert.deepEqual(
        complete.map(({ name, pid, tid, ts, dur }) => line(name, pid, tid, ts, dur)).sort(),
        calls.map((call) => line(call.name, call.pid, call.tid, call.start_ns / 1000, call.duration_ns / 1000)).sort(),
    );
    const named = new Map(events.filter(({ ph, name }) => ph === "M" && name === "thread_name").map(({ tid, args }) => [tid, args.name]));
    for (const { tid, name } of await sql(`SELECT tid, name FROM threads WHERE session_id = ${WHOLE}`)) {
        assert.equal(named.get(tid), name);
    }
    const open = new Map(); // of each thread: the ends of the calls that are open, ns
    for (const { tid, ts, dur } of complete) {
        const ends = open.get(tid) ?? [];
        const from = Math.round(ts * 1000);
        const to = from + Math.round(dur * 1000);
        while (ends.length > 0 && ends.at(-1) <= from) {
            ends.pop();
        }
        assert.ok(ends.length === 0 || to <= ends.at(-1), `a call at ${ts} ends behind its caller`);
        open.set(tid, [...ends, to]);
    }
});

const traceOf = (name) => JSON.parse(readFileSync(path.join(output, name), "utf8"));
const FIELDS = { X: ["name", "ph", "pid", "tid", "ts", "dur"], B: ["name", "ph", "pid", "tid", "ts"], M: ["name", "ph", "pid", "tid", "args"] };

// The Trace Event Format, JSON Object Format: the fields of each kind of event, their types, and the order of what
// begins without an end. Perfetto itself is in no registry; chrome://tracing and it read by these rules.
function checkFormat(trace) {
    assert.deepEqual(Object.keys(trace).sort(), ["displayTimeUnit", "traceEvents"]);
    assert.ok(["ms", "ns"].includes(trace.displayTimeUnit));
    const begun = new Map(); // of each thread: when the last event without an end began
    for (const event of trace.traceEvents) {
        const what = JSON.stringify(event);
        assert.ok(FIELDS[event.ph], what);
        assert.deepEqual(Object.keys(event).filter((key) => !FIELDS[event.ph].includes(key) && key !== "args"), [], what);
        assert.deepEqual(FIELDS[event.ph].filter((key) => !(key in event)), [], what);
        assert.equal(typeof event.name, "string", what);
        assert.ok(Number.isSafeInteger(event.pid) && Number.isSafeInteger(event.tid) && event.pid > 0 && event.tid > 0, what);
        assert.ok(event.args === undefined || (typeof event.args === "object" && event.args !== null && !Array.isArray(event.args)), what);
        if (event.ph === "M") {
            assert.ok(["process_name", "thread_name"].includes(event.name) && typeof event.args.name === "string", what);
            continue;
        }
        assert.ok(Number.isFinite(event.ts) && event.ts >= 0, what);
        assert.ok(event.ph !== "X" || (Number.isFinite(event.dur) && event.dur >= 0), what);
        if (event.ph === "B") {
            const thread = `${event.pid} ${event.tid}`;
            assert.ok(event.ts >= (begun.get(thread) ?? 0), what);
            begun.set(thread, event.ts);
        }
    }
}

// Depths as a reader finds them: events by time, those of one time as they stand, each below the last one that holds it.
function depthsOf(events) {
    const open = new Map();
    const calls = events.filter(({ ph }) => ph !== "M");
    const inOrder = calls.map((event, index) => ({ event, index })).sort((a, b) => a.event.ts - b.event.ts || a.index - b.index);
    return inOrder.map(({ event }) => {
        const end = event.ph === "B" ? Infinity : Math.round((event.ts + event.dur) * 1000);
        const thread = `${event.pid} ${event.tid}`;
        const held = (open.get(thread) ?? []);
        while (held.length > 0 && held.at(-1) < end) {
            held.pop();
        }
        open.set(thread, [...held, end]);
        return { event, depth: held.length };
    });
}

for (const [name, session] of [["trace.json", WHOLE], ["fallen.json", FALLEN]]) {
    test(`the fields of ${name} are those of the format, and its calls nest as they were called`, async () => {
        const trace = traceOf(name);
        checkFormat(trace);
        const calls = await sql(`SELECT f.name, c.start_ns, c.duration_ns, c.depth, t.tid FROM calls c JOIN functions f USING (function_id)
            JOIN threads t ON t.thread_id = c.thread_id WHERE c.session_id = ${session}`);
        const line = (of, tid, ns, depth) => `${of} ${tid} ${ns} ${depth}`;
        const found = depthsOf(trace.traceEvents).filter(({ event }) => event.dur !== 0); // of no time: below or beside, who knows
        assert.deepEqual(
            found.map(({ event, depth }) => line(event.name, event.tid, Math.round(event.ts * 1000), depth)).sort(),
            calls.filter((call) => call.duration_ns !== 0).map((call) => line(call.name, call.tid, call.start_ns, call.depth)).sort(),
        );
        const open = trace.traceEvents.filter(({ ph }) => ph === "B").map((event) => event.name);
        assert.deepEqual(open, session === FALLEN ? ["main", "fall"] : []);
    });
}

test("values of a call are what its event says", async () => {
    const given = traceOf("valued.json").traceEvents.filter(({ name, args }) => name === "parse_line" && args);
    const values = await sql(`SELECT value FROM arguments WHERE session_id = ${VALUED} AND position = 1 ORDER BY call_id`);
    assert.deepEqual(given.map(({ args }) => Number(args.number)), values.map((row) => row.value));
});

test("no viewer asked another server for anything", () => {
    assert.deepEqual(foreign, []);
});
