// Opens exported files in the real speedscope, and compares its sums with SQL. Also checks the
// format of trace events, which Perfetto reads, too, and reads Perfetto's own format by messages that
// read a trace of Chromium, which Perfetto wrote.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, test } from "node:test";
import { bin, change, clean, database, output, record, require, sql, start, stop } from "./lab.mjs";

const WHOLE = 1;
const FALLEN = 2; // has calls that never ended
const VALUED = 3;
// Recordings with tail calls, coroutines and exceptions. In the last one many calls begin and end
// at the same time.
const SAMPLES = [["tail_chain", []], ["gcc-O2/s_coroutine", []], ["gcc-O2/s_throw", []], ["tail_chain", ["--resolution", "1ms"]]];
let viewer; // serves speedscope's own files and the exports
let address;
let browser;
const foreign = [];

const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm", ".svg": "image/svg+xml" };

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
    for (const [name, options] of SAMPLES) {
        const sample = path.join(bin, "../tests/samples", name);
        const run = spawnSync(path.join(bin, "sojourn"), ["record", "-q", "-o", database, ...options, "--", sample]);
        assert.equal(run.status, 0, run.stderr);
    }
    await start();
    exportAs("folded", WHOLE, "paths.folded");
    exportAs("chrome-json", WHOLE, "trace.json");
    exportAs("speedscope", WHOLE, "whole.speedscope.json");
    exportAs("speedscope", FALLEN, "fallen.speedscope.json");
    exportAs("pprof", WHOLE, "whole.pprof");
    exportAs("callgrind", WHOLE, "callgrind.out.whole");
    exportAs("perfetto", WHOLE, "whole.perfetto");
    exportAs("perfetto", FALLEN, "fallen.perfetto");
    exportAs("perfetto", VALUED, "valued.perfetto");
    exportAs("chrome-json", FALLEN, "fallen.json");
    exportAs("chrome-json", VALUED, "valued.json");
    const samples = SAMPLES.flatMap((_, at) => {
        exportAs("chrome-json", VALUED + 1 + at, `sample${at}.json`);
        return traceOf(`sample${at}.json`).traceEvents.map((event) => (event.ph === "M" ? event : { ...event, name: `${VALUED + 1 + at} ${event.name}` }));
    });
    writeFileSync(path.join(output, "samples.json"), JSON.stringify({ traceEvents: samples }));
    viewer = http.createServer(serve);
    await new Promise((resolve) => viewer.listen(0, "127.0.0.1", resolve));
    address = `http://127.0.0.1:${viewer.address().port}/`;
    const { chromium } = require("playwright-core");
    browser = await chromium.launch({
        executablePath: process.env.SJ_CHROMIUM || "/usr/bin/chromium-headless-shell",
        args: ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"], // speedscope draws with WebGL
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

const traceOf = (name) => JSON.parse(readFileSync(path.join(output, name), "utf8"));
const show = (file) => open(`${address}index.html#profileURL=${encodeURIComponent(`${address}exports/${file}`)}&title=run`);

// Reads what speedscope made of a file. It exports each call in a format of its own.
async function read(page) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("Export").click()]);
    const file = path.join(output, "speedscope.json");
    await download.saveAs(file);
    const { profiles, shared } = JSON.parse(readFileSync(file, "utf8"));
    const names = shared.frames.map(({ name }) => name.replace(/ \{".*\}$/, "")); // without the values of a call
    return profiles.map(({ events, unit }) => sumsOf(events, names, unit === "microseconds" ? 1000 : 1));
}

// Sums the time of each function in ns. A recursive call is not counted on top of the outer call.
function sumsOf(events, names, ns) {
    const sums = new Map();
    const stack = [];
    for (const { type, frame, at } of events) {
        if (type === "O") {
            stack.push({ name: names[frame], at, callees: 0 });
            continue;
        }
        const call = stack.pop();
        const took = (at - call.at) * ns;
        const sum = sums.get(call.name) ?? { self: 0, total: 0 };
        sum.self += took - call.callees;
        sum.total += stack.some(({ name }) => name === call.name) ? 0 : took;
        sums.set(call.name, sum);
        if (stack.length > 0) {
            stack.at(-1).callees += took;
        }
    }
    return sums;
}

// Compares the sums of all functions with SQL. Each event may be moved by a hundredth of a ns. If
// there are several sessions, function names have the session as prefix.
async function checkSums(profiles, sessions) {
    const rows = await sql(`SELECT s.session_id, f.name, sum(s.calls) AS calls, sum(s.self_ns) AS self, sum(s.total_ns) AS total
        FROM function_stats s JOIN functions f USING (function_id) WHERE s.session_id IN (${sessions}) AND s.calls > 0 GROUP BY 1, 2`);
    const allowed = 1 + 0.02 * rows.reduce((sum, { calls }) => sum + calls, 0);
    assert.ok(rows.length > 0);
    for (const { session_id, name, ...wanted } of rows) {
        const shown = profiles.flatMap((sums) => sums.get(sessions.length > 1 ? `${session_id} ${name}` : name) ?? []);
        for (const of of ["self", "total"]) {
            const sum = shown.reduce((all, one) => all + one[of], 0);
            assert.ok(Math.abs(sum - wanted[of]) <= allowed, `${name}, ${of}: ${sum} instead of ${wanted[of]} ns in session ${session_id}`);
        }
    }
}

const checked = [["call paths", "paths.folded", [WHOLE]], ["trace events", "trace.json", [WHOLE]],
    ["its own format", "whole.speedscope.json", [WHOLE]], ["a profile for pprof", "whole.pprof", [WHOLE]],
    ["trace events of tail calls, coroutines, exceptions and coarse times", "samples.json", SAMPLES.map((_, at) => VALUED + 1 + at)]];
for (const [name, file, sessions] of checked) {
    test(`speedscope's sums of all functions are those of SQL, read from ${name}`, async () => {
        const page = await show(file);
        await checkSums(await read(page), sessions);
        await page.screenshot({ path: path.join(output, `speedscope-${file}.png`) });
        await page.close();
    });
}

// Pairs begin and end events as viewers do: an end event closes the innermost open call of its
// track.
function callsOf(events) {
    const open = new Map(); // by track
    const calls = [];
    for (const event of events.filter(({ ph }) => ph !== "M")) {
        const track = `${event.pid} ${event.tid}`;
        const stack = open.get(track) ?? [];
        open.set(track, stack);
        if (event.ph === "B") {
            stack.push({ ...event, depth: stack.length });
            calls.push(stack.at(-1));
        } else {
            assert.equal(stack.at(-1)?.name, event.name, JSON.stringify(event));
            stack.pop().end = event.ts;
        }
    }
    return calls;
}

test("trace events have each call once, as deep as it was, and the names of threads", async () => {
    for (const [name, session] of [["trace.json", WHOLE], ["fallen.json", FALLEN]]) {
        const { traceEvents: events } = traceOf(name);
        const calls = await sql(`SELECT f.name, c.start_ns, c.end_ns, c.depth, c.ending, t.tid, p.pid FROM calls c JOIN functions f USING (function_id)
            JOIN threads t ON t.thread_id = c.thread_id JOIN processes p ON p.session_id = t.session_id AND p.number = t.process_number
            WHERE c.session_id = ${session}`);
        const line = (of, pid, tid, from, to, depth, category) => `${of} ${pid} ${tid} ${from} ${to} ${depth} ${category}`;
        const ns = (us) => Math.round(us * 1000);
        assert.deepEqual(
            callsOf(events).map((call) => line(call.name, call.pid, call.tid, ns(call.ts), ns(call.end), call.depth, call.cat)).sort(),
            calls.map((call) => line(call.name, call.pid, call.tid, call.start_ns, call.end_ns, call.depth, call.ending === "open" ? "open" : undefined)).sort(),
        );
        const named = new Map(events.filter((event) => event.ph === "M" && event.name === "thread_name").map(({ tid, args }) => [tid, args.name]));
        for (const { tid, name: wanted } of await sql(`SELECT tid, name FROM threads WHERE session_id = ${session}`)) {
            assert.equal(named.get(tid), wanted);
        }
    }
});

const FIELDS = { B: ["name", "ph", "pid", "tid", "ts"], E: ["name", "ph", "pid", "tid", "ts"], M: ["name", "ph", "pid", "tid", "args"] };

// The rules of the Trace Event Format (JSON Object Format): the fields of each kind of event, their
// types, and the order of begin and end events. Perfetto is in no package registry, but it follows
// these rules, as chrome://tracing does.
function checkFormat(trace) {
    assert.deepEqual(Object.keys(trace).sort(), ["displayTimeUnit", "traceEvents"]);
    assert.ok(["ms", "ns"].includes(trace.displayTimeUnit));
    const latest = new Map(); // by track: its latest event
    for (const event of trace.traceEvents) {
        const what = JSON.stringify(event);
        assert.ok(FIELDS[event.ph], what);
        assert.deepEqual(Object.keys(event).filter((key) => !FIELDS[event.ph].includes(key) && !["args", "cat"].includes(key)), [], what);
        assert.deepEqual(FIELDS[event.ph].filter((key) => !(key in event)), [], what);
        assert.equal(typeof event.name, "string", what);
        assert.ok(Number.isSafeInteger(event.pid) && Number.isSafeInteger(event.tid) && event.pid > 0 && event.tid > 0, what);
        assert.ok(event.args === undefined || (typeof event.args === "object" && event.args !== null && !Array.isArray(event.args)), what);
        if (event.ph === "M") {
            assert.ok(["process_name", "thread_name"].includes(event.name) && typeof event.args.name === "string", what);
            continue;
        }
        assert.ok(Number.isFinite(event.ts) && event.ts >= 0, what);
        const track = `${event.pid} ${event.tid}`;
        const before = latest.get(track);
        assert.ok(before === undefined || before.ts < event.ts || (before.ts === event.ts && before.ph === event.ph), what);
        latest.set(track, event);
    }
}

test("the fields of trace events are those of the format, and no begin is at the time of an end", () => {
    for (const name of ["trace.json", "fallen.json", "valued.json", ...SAMPLES.map((_, at) => `sample${at}.json`)]) {
        checkFormat(traceOf(name));
    }
});

test("the event of a call has the values of the call", async () => {
    const given = traceOf("valued.json").traceEvents.filter(({ name, args }) => name === "parse_line" && args);
    const values = await sql(`SELECT value FROM arguments WHERE session_id = ${VALUED} AND position = 1 ORDER BY call_id`);
    assert.deepEqual(given.map(({ args }) => Number(args.number)), values.map((row) => row.value));
});

test("speedscope shows each call of its own format, open ones until their track ends", async () => {
    const { profiles, shared, ...head } = traceOf("fallen.speedscope.json");
    assert.equal(head.$schema, "https://www.speedscope.app/file-format-schema.json");
    const calls = await sql(`SELECT f.name, c.start_ns, c.ending FROM calls c JOIN functions f USING (function_id) WHERE c.session_id = ${FALLEN}`);
    const begun = profiles.flatMap(({ events }) => events.filter(({ type }) => type === "O").map(({ frame, at }) => `${shared.frames[frame].name} ${at}`));
    assert.deepEqual(begun.sort(), calls.map(({ name, start_ns }) => `${name} ${start_ns}`).sort());
    assert.ok(calls.some(({ ending }) => ending === "open"));
    for (const { events, endValue } of profiles) {
        assert.equal(events.filter(({ type }) => type === "C").length, events.length / 2);
        assert.equal(events.at(-1).at, endValue);
    }
    const page = await show("fallen.speedscope.json");
    assert.equal((await read(page)).length, profiles.length);
    await page.close();
});

const PROTO = path.join(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), "../../collector-server/export/perfetto.proto");

function packetsOf(bytes) {
    const protobuf = require("protobufjs");
    const type = protobuf.parse(readFileSync(PROTO, "utf8"), { keepCase: true }).root.lookupType("perfetto.Trace");
    return type.toObject(type.decode(bytes), { longs: Number, enums: String }).packet;
}

// Pairs the slices of each track, and names them by the interned names.
function slicesOf(packets) {
    const names = new Map();
    const tracks = new Map();
    const open = new Map();
    const slices = [];
    for (const { timestamp, interned_data, track_descriptor, track_event } of packets) {
        interned_data?.event_names?.forEach(({ iid, name }) => names.set(iid, name));
        if (track_descriptor) {
            tracks.set(track_descriptor.uuid, track_descriptor);
        }
        if (track_event?.type === "TYPE_SLICE_BEGIN") {
            const stack = open.get(track_event.track_uuid) ?? [];
            open.set(track_event.track_uuid, stack);
            const { pid, tid } = tracks.get(track_event.track_uuid).thread;
            stack.push({ ...track_event, pid, tid, name: names.get(track_event.name_iid), start: timestamp, depth: stack.length });
            slices.push(stack.at(-1));
        } else if (track_event?.type === "TYPE_SLICE_END") {
            open.get(track_event.track_uuid).pop().end = timestamp;
        }
    }
    return slices;
}

test("Perfetto's format has each call once, as deep as it was, on the track of its thread, with its values", async () => {
    for (const [name, session] of [["whole.perfetto", WHOLE], ["fallen.perfetto", FALLEN]]) {
        const packets = packetsOf(readFileSync(path.join(output, name)));
        const calls = await sql(`SELECT f.name, c.start_ns, c.end_ns, c.depth, c.ending, t.tid, p.pid FROM calls c JOIN functions f USING (function_id)
            JOIN threads t ON t.thread_id = c.thread_id JOIN processes p ON p.session_id = t.session_id AND p.number = t.process_number
            WHERE c.session_id = ${session}`);
        const line = (...parts) => parts.join(" ");
        assert.deepEqual(
            slicesOf(packets).map((slice) => line(slice.name, slice.pid, slice.tid, slice.start, slice.end, slice.depth, slice.categories?.includes("open") ?? false)).sort(),
            calls.map((call) => line(call.name, call.pid, call.tid, call.start_ns, call.end_ns ?? undefined, call.depth, call.ending === "open")).sort(),
        );
        const named = new Map(packets.flatMap(({ track_descriptor: track }) => (track?.thread ? [[track.thread.tid, track.thread.thread_name]] : [])));
        for (const { tid, name: wanted } of await sql(`SELECT DISTINCT t.tid, t.name FROM threads t JOIN streams s USING (thread_id) WHERE t.session_id = ${session} AND s.calls > 0`)) {
            assert.equal(named.get(tid), wanted);
        }
    }
    const given = slicesOf(packetsOf(readFileSync(path.join(output, "valued.perfetto")))).filter(({ name }) => name === "parse_line");
    const values = await sql(`SELECT value FROM arguments WHERE session_id = ${VALUED} AND position = 1 ORDER BY call_id`);
    assert.deepEqual(given.map(({ debug_annotations: [{ name, legacy_json_value }] }) => [name, JSON.parse(legacy_json_value).number]), values.map(({ value }) => ["recorded", value]));
});

test("the messages of Perfetto's format read a trace that Chromium wrote", async () => {
    const session = await browser.newBrowserCDPSession();
    const ended = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
    await session.send("Tracing.start", { transferMode: "ReturnAsStream", streamFormat: "proto", traceConfig: { includedCategories: ["devtools.timeline", "toplevel"] } });
    await (await browser.newPage()).goto("data:text/html,<p>traced");
    await session.send("Tracing.end");
    const { stream } = await ended;
    const parts = [];
    for (let eof = false; !eof;) {
        const part = await session.send("IO.read", { handle: stream });
        parts.push(Buffer.from(part.data, part.base64Encoded ? "base64" : "utf8"));
        eof = part.eof;
    }
    const packets = packetsOf(Buffer.concat(parts));
    const threads = packets.map(({ track_descriptor: track }) => track?.thread?.thread_name);
    assert.ok(threads.includes("CrBrowserMain") || threads.includes("CrRendererMain"), JSON.stringify([...new Set(threads)]));
    const names = packets.flatMap(({ interned_data }) => interned_data?.event_names ?? []);
    assert.ok(names.some(({ iid, name }) => iid > 0 && name === "ThreadControllerImpl::RunTask"), JSON.stringify(names.slice(0, 20)));
    const slices = packets.filter(({ track_event }) => track_event?.type === "TYPE_SLICE_BEGIN");
    assert.ok(slices.some(({ track_event: { name_iid } }) => names.some(({ iid }) => iid === name_iid)));
    assert.ok(packets.some(({ sequence_flags, trusted_packet_sequence_id: id }) => (sequence_flags & 1) !== 0 && id > 0));
});

test("callgrind_annotate shows the self time of each function, and the calls and time of its callees", async () => {
    const run = spawnSync("callgrind_annotate", ["--threshold=100", "--auto=no", "--tree=calling", "--show-percs=no", path.join(output, "callgrind.out.whole")], { encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
    const rows = await sql(`SELECT f.name, sum(s.self_ns) AS self FROM function_stats s JOIN functions f USING (function_id) WHERE s.session_id = ${WHOLE} GROUP BY 1`);
    const text = run.stdout.replaceAll(",", "");
    assert.equal(Number(/(\d+) +PROGRAM TOTALS/.exec(text)[1]), rows.reduce((sum, { self }) => sum + self, 0));
    const edges = await sql(`SELECT b.name AS callee, sum(e.calls) AS calls, sum(e.total_ns) AS ns FROM call_edges e JOIN functions a ON a.function_id = e.caller_function_id
        JOIN functions b ON b.function_id = e.callee_function_id WHERE e.session_id = ${WHOLE} GROUP BY e.caller_function_id, e.callee_function_id`);
    assert.ok(edges.length > 0);
    for (const { callee, calls, ns } of edges) {
        assert.ok(text.split("\n").some((line) => line.includes(`${ns} `) && line.includes(">") && line.includes(`:${callee} `) && line.includes(`(${calls}x)`)), `${callee} ${calls} ${ns}\n${text}`);
    }
});

// Parses the SVG as XML in the browser, which rejects malformed XML. One function name is not UTF-8
// and contains XML markup.
test("the flame graph as SVG has each call path that is wide enough, with the calls and times of SQL", async () => {
    change(`UPDATE functions SET name = 'hash <&> ' || CAST(x'ff' AS TEXT) WHERE name = 'hash_word'`);
    const run = spawnSync(path.join(bin, "sojourn"), ["flame", "--session", String(WHOLE), "-o", path.join(output, "flame.svg"), database], { encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
    const page = await open(`${address}exports/flame.svg`);
    const shown = await page.locator("g.p").evaluateAll((paths) => paths.map((path) => {
        const [name, sums] = path.querySelector("title").textContent.split("\n");
        return [name, Number(path.dataset.d), Number(/, (\d+) calls?\b/.exec(sums)[1]), Number(path.dataset.w), Number(path.dataset.s)];
    }));
    const rows = await sql(`SELECT name, depth, calls, total_ns, self_ns FROM call_tree(${WHOLE})`);
    const whole = rows.reduce((sum, { depth, total_ns }) => sum + (depth === 0 ? total_ns : 0), 0);
    const wide = rows.map(({ name, depth, calls, total_ns, self_ns }) => [name, depth, calls, (total_ns / whole) * 1200, self_ns / whole]).filter(([, , , width]) => width >= 0.3);
    const round = (all) => all.map(([name, depth, calls, width, self]) => `${name} ${depth} ${calls} ${width.toFixed(4)} ${self.toFixed(6)}`).sort();
    assert.ok(wide.some(([name]) => name === "hash <&> \ufffd"), JSON.stringify(wide));
    assert.deepEqual(round(shown), round(wide));
    await page.close();
});

test("no viewer asked another server for anything", () => {
    assert.deepEqual(foreign, []);
});
