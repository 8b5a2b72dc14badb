// Tests pages that are open while their session is recorded.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import {
    base, bin, checkPanel, clean, comesTo, foreign, format, openPage, output, problems, program, rowsOf, sql, start, stop, texts,
} from "./lab.mjs";

const recorders = [];

before(async () => {
    clean();
    await start();
});

after(async () => {
    recorders.forEach((recorder) => recorder.kill("SIGKILL"));
    await stop();
});

async function until(what, probe) {
    for (let i = 0; i < 2400; i++) {
        const found = await probe();
        if (found) {
            return found;
        }
        await pause(50);
    }
    assert.fail(`waited in vain: ${what}`);
}

// A recorded program that works one round for each line of input.
async function launch(name, ...options) {
    const recorder = spawn(path.join(bin, "sojourn"), [
        ...["record", "-q", "--collector", `ipc://${output}/s.ipc`, "--spool", path.join(output, `spool-${name}`)],
        ...["--name", name, ...options, "--", program, "steady"],
    ]);
    recorders.push(recorder);
    recorder.stderr.on("data", (text) => process.stderr.write(text));
    const session = await until("the session", async () => {
        const [row] = await sql(`SELECT session_id FROM sessions WHERE name = '${name}'`);
        return row?.session_id;
    });
    return { recorder, session };
}

async function callsOf(session) {
    const [{ calls }] = await sql(`SELECT stored_calls AS calls FROM sessions WHERE session_id = ${session}`);
    return calls;
}

// Runs one more round, and waits until its calls are stored.
async function work(recorder, session, least) {
    recorder.stdin.write("go\n");
    return until("more calls", async () => {
        const calls = await callsOf(session);
        return calls >= least ? calls : 0;
    });
}

const UNITS = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9 };
const nsOf = (text) => Number(text.split(" ")[0]) * UNITS[text.split(" ")[1]];
const numberOf = (text) => Number(text.replace(/[,KMB]/g, "")) * ({ K: 1e3, M: 1e6, B: 1e9 }[text.at(-1)] ?? 1);

const tile = (page, label) =>
    page.locator(".tile", { has: page.getByText(label, { exact: true }) }).locator("dd");

// Checks the rates against the calls that SQL counts. The page rounds rates to three digits.
async function checkRates(page, session, seen) {
    await page.locator("details.twin summary").click();
    const table = rowsOf(page, "Calls a second, as a table");
    const came = async () => (await texts(table)).reduce((sum, row) => sum + Number(row[2].replaceAll(",", "")), 0);
    await comesTo(async () => (await came()) - ((await callsOf(session)) - seen), 0);
    const rows = await texts(table);
    for (const [watched, within, calls, rate, lost] of rows) {
        assert.ok(nsOf(within) <= nsOf(watched) * 1.01, `${within} of ${watched}`);
        const wanted = (Number(calls.replaceAll(",", "")) / nsOf(within)) * 1e9;
        assert.ok(Math.abs(numberOf(rate) - wanted) <= wanted * 0.06 + 1, `${rate} is not ${calls} within ${within}`);
        assert.equal(lost, "0");
    }
    assert.equal(await tile(page, "Calls a second").textContent(), rows[0][3]);
}

test("a running session is drawn as it comes, until it ends", async () => {
    const { recorder, session } = await launch("running");
    const before = await work(recorder, session, 100);
    const live = await openPage(`/sessions/${session}?view=live`);
    await live.getByText("This page updates itself.").waitFor();
    const seen = await callsOf(session); // the program is idle now
    const timeline = await openPage(`/sessions/${session}?view=timeline&follow=1`);
    await timeline.getByRole("button", { name: "● Following" }).waitFor();
    const table = await openPage(`/sessions/${session}`);
    await table.locator("[role=grid] .rows .mono", { hasText: "parse_line" }).waitFor();
    const tree = await openPage(`/sessions/${session}?view=tree`);
    await tree.locator("[role=treegrid] .rows .mono").first().waitFor();
    for (const page of [live, timeline, table, tree]) {
        await page.locator(".live.on").waitFor();
    }
    let calls = before;
    // A chart needs two samples of the session. Under load the page may see several rounds at once.
    await until("a chart", async () => {
        calls = await work(recorder, session, calls + 100);
        return live.locator(".chart canvas").isVisible();
    });
    const text = format.compact(calls);
    await live.locator(".session-head").getByText(text, { exact: true }).waitFor();
    await checkRates(live, session, seen);
    await checkPanel(live, "Where the time goes so far", (row) => [row.name, format.duration(row.self_ns), format.count(row.calls)]);
    await live.getByText("Calls that are still open count when they end, or when recording does.").waitFor();
    // main, and the function that it waits in
    const [open] = await sql(`SELECT count(*) AS calls, min(start_ns) AS since_ns FROM open_now(${session}) WHERE NOT is_counted`);
    assert.ok(open.calls >= 1, "main is open");
    const since = format.duration(open.since_ns);
    await comesTo(async () => tile(live, "Open now").textContent(), `${open.calls} since ${since}`);
    await live.getByText(`${format.counted(open.calls, "call")} open now, the first since ${since}.`).waitFor();
    const [stored] = await sql(`SELECT stored_blocks AS blocks FROM sessions WHERE session_id = ${session}`);
    assert.equal(await tile(live, "Blocks").textContent(), format.count(stored.blocks));
    await until("the same numbers", async () => {
        const hot = await sql(`SELECT f.name, s.calls FROM function_stats s JOIN functions f USING (function_id)
            WHERE s.session_id = ${session} AND f.name = 'parse_line'`);
        const row = table.locator("[role=grid] .rows [role=row]", { hasText: "parse_line" });
        return (await row.locator("[role=gridcell]").nth(3).textContent()) === format.compact(hot[0].calls);
    });
    await until("the end of the timeline", async () => {
        const [{ last }] = await sql(`SELECT max(last_leave_ns) AS last FROM streams WHERE session_id = ${session}`);
        return (await timeline.locator(".timeline").getAttribute("data-to")) === String(last + 1);
    });
    await timeline.getByRole("group", { name: "Timeline" }).press("w");
    await timeline.getByRole("button", { name: "Follow", exact: true }).waitFor();
    recorder.stdin.end();
    await once(recorder, "exit");
    await live.getByText("The session has ended").waitFor();
    await live.locator(".tile", { hasText: "Lost" }).getByText("none").waitFor();
    for (const page of [live, timeline, table, tree]) {
        await page.close();
    }
});

test("the latest calls of a running session have the values that they were given and returned", async () => {
    const { recorder, session } = await launch("valued", "--value", "parse_line(number:int, extra:uint) -> int");
    const calls = await work(recorder, session, 100);
    const page = await openPage(`/sessions/${session}?view=live`);
    const title = "Latest calls with values";
    await page.getByRole("region", { name: title, exact: true }).waitFor();
    await work(recorder, session, calls + 100);
    recorder.stdin.end();
    await once(recorder, "exit");
    await page.getByText("The session has ended").waitFor();
    const wanted = await sql(`SELECT c.start_ns, max(iif(a.position = 1, a.value, NULL)) AS number,
        max(iif(a.position = 2, a.value, NULL)) AS extra, max(iif(a.position = 0, a.value, NULL)) AS result
        FROM calls c JOIN arguments a USING (session_id, call_id) WHERE c.session_id = ${session}
        GROUP BY c.call_id ORDER BY c.start_ns DESC LIMIT 12`);
    assert.equal(wanted.length, 12);
    const last = `number=${wanted[0].number}, extra=${wanted[0].extra}`;
    const panel = page.getByRole("region", { name: title, exact: true });
    await panel.locator("tbody tr").first().getByText(last, { exact: true }).waitFor();
    const shown = await checkPanel(page, title, (row) => [row.name, row.arguments, row.result, format.duration(row.start_ns)]);
    assert.deepEqual(shown.map((row) => row.slice(0, 3)), wanted.map((row) =>
        ["parse_line", `number=${row.number}, extra=${row.extra}`, String(row.result)]));
    await page.close();
});

test("triggers and flight dumps appear when they happen", async () => {
    const policy = path.join(output, "flight.json");
    const triggers = [{ on: "command", name: "keep", pause: "0s", do: ["dump"] }];
    writeFileSync(policy, JSON.stringify({ policy: 1, mode: "flight", flight: { before: "5m", after: "10ms", memory: "8M" }, triggers }));
    const { recorder, session } = await launch("flying", "--policy", policy);
    const page = await openPage(`/sessions/${session}?view=live`);
    await page.getByText("No trigger has fired yet.").waitFor();
    await page.locator(".live.on").waitFor();
    recorder.stdin.write("go\n");
    const [{ uuid }] = await sql(`SELECT lower(hex(uuid)) AS uuid FROM sessions WHERE session_id = ${session}`);
    await until("the trigger is taken", () => {
        const run = spawnSync(path.join(bin, "sojourn"), ["trigger", "--session", uuid, "keep"], { encoding: "utf8" });
        return run.status === 0;
    });
    await checkPanel(page, "Triggers that fired, latest first", (row) => [
        format.duration(row.at_ns),
        row.event,
        row.subject,
        undefined,
        row.actions,
    ]);
    const dumps = page.getByRole("region", { name: "Flight dumps, latest first" });
    const link = dumps.getByRole("link", { name: /^session / });
    await link.first().waitFor();
    const [dump] = await sql(`SELECT session_id FROM sessions WHERE parent_session_id = ${session}`);
    assert.equal(await link.first().getAttribute("href"), `/sessions/${dump.session_id}`);
    await page.getByText("A flight recording: it keeps the last seconds in memory").waitFor();
    await page.getByRole("link", { name: /^[1-9]\d* dumps?$/ }).waitFor();
    const cut = await openPage(`/sessions/${dump.session_id}`);
    await cut.getByText("A flight dump: the last seconds of").getByRole("link", { name: `session ${session}` }).waitFor();
    await cut.close();
    recorder.stdin.end();
    await once(recorder, "exit");
    await page.close();
});

test("no page asked any other server for anything, or logged an error", () => {
    assert.ok(base);
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
