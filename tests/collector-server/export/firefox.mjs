// Loads the firefox exports of recordings with the Firefox Profiler's own command-line program, and compares the times
// that it shows for each function and thread, and the lost calls, with SQL. The recordings have tail calls, coroutines,
// exceptions and recursion.
//
//   node firefox.mjs BUILD_FOLDER
//
// The program comes from npm, into BUILD_FOLDER/tests/export_packages (package-lock.json here).
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const build = resolve(process.argv[2]);
const profiler = join(build, "tests/export_packages/node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js");
const sojourn = join(build, "bin", "sojourn");
const folder = mkdtempSync(join(tmpdir(), "sojourn-firefox-"));
const database = join(folder, "calls.db");
const environment = { ...process.env, XDG_CACHE_HOME: join(folder, "cache"), XDG_STATE_HOME: join(folder, "state"),
    PROFILER_CLI_SESSION_DIR: join(folder, "profiler"), PROFILER_CLI_NO_SYMBOLICATE: "1" };
const OPTIONS = { maxBuffer: 1 << 30, env: environment, encoding: "utf8" };
const NS_OF_MS = 1e6;
const ATTEMPTS = 200;
const servers = [];

const run = (...words) => execFileSync(sojourn, words, OPTIONS);
const ask = (session, ...words) => JSON.parse(execFileSync("node", [profiler, ...words, "--session", session, "--json"], OPTIONS));
const sql = (query) => JSON.parse(run("sql", "--json", "--limit", "1000000", query, database)).rows;

function change(statement) {
    const script = "import sqlite3, sys\nwith sqlite3.connect(sys.argv[1], timeout=60) as held: held.executescript(sys.argv[2])";
    const changed = spawnSync("python3", ["-c", script, database, statement], { encoding: "utf8" });
    assert.equal(changed.status, 0, changed.stderr);
}

// Starts the program's server for a profile, and waits until it answers. Its own command `load` waits half a second only.
async function load(session, file) {
    const server = spawn("node", [profiler, "--daemon", file, "--session", session], { env: environment, stdio: "ignore" });
    servers.push(server);
    for (let attempt = 1;; attempt++) {
        const answer = spawnSync("node", [profiler, "thread", "list", "--session", session, "--json"], OPTIONS);
        if (answer.status === 0) {
            return;
        }
        assert.ok(server.exitCode === null && attempt < ATTEMPTS, `${session}: ${answer.stdout}${answer.stderr}`);
        await new Promise((resume) => setTimeout(resume, 100));
    }
}

// Compares the self and total times of all functions of a thread. A recursive call does not add to the total time of
// the outer call.
function checkFunctions(session, thread, stream) {
    const { functions } = ask(session, "thread", "functions", "--thread", thread.threadHandle, "--limit", "0", "--include-idle");
    const rows = sql(`WITH here AS MATERIALIZED (SELECT call_id, parent_id, function_id, start_ns, end_ns, end_ns - start_ns AS took FROM calls
            WHERE stream_id = ${stream.stream_id}),
        callees AS (SELECT parent_id, sum(took) AS took FROM here GROUP BY 1),
        roots AS (SELECT function_id, took, start_ns > max(end_ns) OVER (PARTITION BY function_id ORDER BY call_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS is_after FROM here)
        SELECT f.name, h.self, r.total FROM (SELECT function_id, sum(h.took - coalesce(c.took, 0)) AS self FROM here h LEFT JOIN callees c
            ON c.parent_id = h.call_id GROUP BY 1) h
        JOIN (SELECT function_id, sum(took) FILTER (WHERE is_after IS NOT 0) AS total FROM roots GROUP BY 1) r USING (function_id)
        JOIN functions f USING (function_id)`);
    assert.ok(rows.length > 0);
    assert.deepEqual(functions.map(({ name }) => name).sort(), rows.map(({ name }) => name).sort());
    for (const { name, self, total } of rows) {
        const shown = functions.find((one) => one.name === name);
        assert.ok(Math.abs(shown.selfSamples * NS_OF_MS - self) < 1 && Math.abs(shown.totalSamples * NS_OF_MS - total) < 1,
            `${session} ${name}: self ${shown.selfSamples} ms, total ${shown.totalSamples} ms instead of ${self} and ${total} ns`);
    }
}

async function checkSession(number) {
    const session = `s${number}`;
    const file = join(folder, `${session}.firefox.json`);
    run("export", "--session", String(number), "-o", file, database);
    await load(session, file);
    const { threads } = ask(session, "thread", "list", "--limit", "0");
    const streams = sql(`SELECT s.stream_id, s.own_stack, t.tid, t.name, p.pid, s.calls FROM streams s JOIN threads t USING (thread_id) JOIN processes p
        ON p.session_id = t.session_id AND p.number = t.process_number WHERE s.session_id = ${number} AND s.calls > 0 ORDER BY s.stream_id`);
    assert.equal(threads.filter(({ name }) => name !== "lost calls of other threads").length, streams.length);
    const byIndex = [...threads].sort((a, b) => a.threadIndex - b.threadIndex);
    streams.forEach((stream, at) => {
        const thread = byIndex[at];
        assert.equal(Number(thread.pid), stream.pid);
        if (stream.own_stack) {
            assert.deepEqual([thread.tid, thread.name], [stream.tid, stream.name]);
        }
        checkFunctions(session, thread, stream);
    });
    return { session, threads: byIndex };
}

function checkLosses({ session, threads }, wanted) {
    const found = threads.map(({ threadHandle }) => ask(session, "thread", "markers", "--thread", threadHandle, "--list", "--limit", "0"));
    const losses = found.map(({ flatMarkers, context }) => (flatMarkers ?? []).map(({ label, start, duration }) =>
        [label, Math.round((start + context.rootRange.start) * NS_OF_MS), Math.round(duration * NS_OF_MS)]));
    assert.deepEqual(losses, wanted, JSON.stringify(found).slice(0, 3000));
}

try {
    for (const sample of ["tail_chain", "gcc-O2/s_coroutine", "gcc-O2/s_throw"]) {
        run("record", "--quiet", "-o", database, "--", join(build, "tests/samples", sample));
    }
    const [{ stream_id: stream }] = sql("SELECT stream_id FROM streams WHERE session_id = 1 AND calls > 0 ORDER BY 1 LIMIT 1");
    change(`INSERT INTO gaps (session_id, stream_id, reason, calls, events, start_ns, end_ns) VALUES
        (1, ${stream}, 'ring_full', 7, 14, 1000001, 3000002), (1, NULL, 'spool_full', 5, 10, 2000000, 2500000)`);
    const checked = [await checkSession(1), await checkSession(2), await checkSession(3)];
    const others = checked[0].threads.slice(1, -1).map(() => []);
    checkLosses(checked[0], [[["7 calls were lost", 1000001, 2000001]], ...others, [["5 calls were lost", 2000000, 500000]]]);
} finally {
    servers.forEach((server) => server.kill());
    rmSync(folder, { recursive: true, force: true });
}
