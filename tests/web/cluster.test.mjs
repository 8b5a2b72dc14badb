// Tests the dashboard on a cluster of two labs: the pages about many sessions show what the labs
// have.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createInterface } from "node:readline";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
    bin, checkLooks, checkPanel, clean, database, foreign, format, openPage, output, problems, program, rowsOf, sql, start, stop, texts,
} from "./lab.mjs";

const SIDE = 5; // sessions on each side of the comparison, in each lab
const ALL = 4 * SIDE + 1; // one session more, with estimates
const labs = [database, path.join(output, "other.db")];
let node;
let url;

function sojourn(...words) {
    const done = spawnSync(path.join(bin, "sojourn"), words, { encoding: "utf8" });
    assert.equal(done.status, 0, `${words.join(" ")}: ${done.stderr}`);
    return done.stdout;
}

const ofLabs = (statement) => labs.flatMap((lab) => JSON.parse(sojourn("sql", "--json", statement, lab)).rows);

before(async () => {
    clean();
    labs.forEach((lab, at) => {
        for (const [name, extra] of [["before", "0"], ["after", "20000"]]) {
            for (let i = 0; i < SIDE; i++) {
                sojourn("record", "-q", "-o", lab, "--name", `${name} ${at}`, "--", program, "200", extra);
            }
        }
    });
    sojourn("record", "-q", "-o", database, "--name", "estimates", "--clock", "adaptive", "--", program, "20000", "0");
    const folder = path.join(output, "node");
    mkdirSync(folder);
    node = spawn("/usr/bin/python3", [fileURLToPath(new URL("../system/support/serve_cluster.py", import.meta.url)), folder]);
    url = await new Promise((resolve, reject) => {
        createInterface(node.stdout).once("line", resolve);
        node.on("exit", () => reject(new Error("ClickHouse ended")));
    });
    sojourn("forward", "init", url);
    labs.forEach((lab) => sojourn("forward", "--database", lab, "send", url));
    await start([path.join(bin, "sojourn"), ["ui", "--no-open", "--cluster", url]]);
});

after(async () => {
    const ended = new Promise((resolve) => node.on("exit", resolve));
    try {
        await stop();
    } finally { // else it would keep this process, and what is wrong, for itself
        node.stdin.end();
        await ended;
    }
});

const isOfRows = (wanted) => document.querySelectorAll("table.sessions tbody tr").length === wanted;

test("the list shows sessions of all labs, is searched and filtered, and names the engine that answers", async () => {
    const page = await openPage("/");
    await page.waitForFunction(isOfRows, ALL);
    const [{ calls }] = await sql("SELECT sum(stored_calls) AS calls FROM sessions");
    assert.equal(calls, ofLabs("SELECT sum(stored_calls) AS calls FROM sessions").reduce((sum, row) => sum + row.calls, 0));
    await page.getByText(`at ${url}: ${ALL} sessions of 2 labs`).waitFor();
    await page.getByLabel("Search sessions").fill("after 1");
    await page.waitForFunction(isOfRows, SIDE);
    await page.goto(new URL("/?app=recorded_program&q=before", page.url()).href);
    await page.waitForFunction(isOfRows, 2 * SIDE);
    await checkLooks(page, "sessions");
    await page.close();
});

test("sets over labs are compared with a verdict", async () => {
    const { count, duration } = format;
    const page = await openPage("/compare?a=name:before*&b=name:after*");
    await page.getByText(`${2 * SIDE} and ${2 * SIDE} sessions`).waitFor();
    const rows = await checkPanel(page, "Functions", (row) => [
        ...[undefined, undefined, undefined, undefined, undefined],
        ...[duration(row.compared_a), duration(row.compared_b), count(row.calls_a), count(row.calls_b)],
        row.calls_ratio === null || row.calls_ratio === 1
            ? row.calls_change
            : `${Math.abs(100 * row.calls_ratio - 100).toFixed(1)} % ${row.calls_ratio > 1 ? "more" : "fewer"} in total`,
    ]);
    assert.ok(rows.length > 5);
    assert.match((await texts(rowsOf(page, "Functions compared").filter({ hasText: "spin" })))[0][0], /slower$/);
    const own = ofLabs(
        `SELECT self_ns FROM function_stats JOIN functions f USING (function_id) JOIN sessions s USING (session_id)
         WHERE f.name = 'spin' AND s.name GLOB 'after*'`,
    ).map((row) => row.self_ns).sort((a, b) => a - b);
    const [found] = await sql("SELECT self_ns_b AS ns FROM diff_functions('name:before*', 'name:after*') WHERE name = 'spin'");
    assert.ok(own[SIDE - 1] <= found.ns && found.ns <= own[SIDE], `${found.ns} is not the median of ${own}`);
    await page.getByRole("group", { name: "Call paths compared", exact: true }).waitFor();
    await page.getByText(`at ${url}: `).waitFor();
    await page.close();
});

test("devices and builds are queried on the cluster itself", async () => {
    const page = await openPage("/fleet");
    await page.getByText("findings and commands are in the labs").waitFor();
    for (const absent of ["Send a command", "Findings", "Coverage"]) {
        assert.equal(await page.getByText(absent, { exact: true }).count(), 0, absent);
    }
    await page.getByLabel("p95 of a function by device and build").fill("spin");
    await page.getByRole("button", { name: "Show" }).click();
    const panel = page.getByRole("region", { name: "p95 of spin", exact: true });
    await panel.locator("tbody tr").first().waitFor();
    const shown = await texts(panel.locator("tbody tr"));
    const [{ devices }] = await sql("SELECT count(DISTINCT device_id) AS devices FROM sessions");
    assert.equal(shown.length, devices);
    assert.equal(shown.reduce((sum, row) => sum + Number(row[2]), 0), ALL);
    await panel.getByRole("link", { name: "SQL", exact: true }).click();
    await page.getByLabel("Asked").waitFor();
    assert.equal(await page.getByLabel("Asked").inputValue(), "cluster");
    await page.getByRole("columnheader", { name: "p95_ns" }).first().waitFor();
    await page.goto(new URL("/sql?sql=SELECT+count(*)+AS+n+FROM+calls", page.url()).href);
    await page.getByText("asked of what was fetched of the cluster").waitFor();
    await page.close();
});

test("times that are estimates are marked", async () => {
    const { rows: [{ name }] } = JSON.parse(sojourn("sql", "--json", `SELECT f.name FROM function_stats s JOIN functions f USING (function_id)
        WHERE s.untimed_calls > 0 ORDER BY s.self_ns DESC LIMIT 1`, database));
    const page = await openPage(`/fleet?function=${name}`);
    for (const [of, marked] of [[name, true], ["main", false]]) {
        await page.goto(new URL(`/fleet?function=${of}`, page.url()).href);
        const rows = page.getByRole("region", { name: `p95 of ${of}`, exact: true }).locator("tbody tr");
        await rows.first().waitFor();
        assert.equal((await texts(rows)).some((row) => row[3].startsWith("~")), marked, of);
    }
    const [{ id }] = await sql("SELECT session_id AS id FROM sessions WHERE name = 'estimates'");
    await page.goto(new URL(`/sessions/${id}`, page.url()).href);
    await page.getByText("~ marks estimates.").waitFor();
    await page.goto(new URL("/compare?a=name:estimates&b=name:after*", page.url()).href);
    const compared = rowsOf(page, "Functions compared").filter({ hasText: name });
    await compared.first().waitFor();
    assert.match((await texts(compared))[0][5], /^~/);
    for (const change of ["DROP COLUMN untimed_calls", "ADD COLUMN untimed_calls Nullable(Int64)"]) { // like rows of an older Sojourn
        assert.ok((await fetch(url, { method: "POST", body: `ALTER TABLE sojourn.raw_function_stats ${change}` })).ok);
    }
    const unknown = page.getByText(`${format.counted(ALL, "session")} came from an older Sojourn`);
    assert.equal(await unknown.count(), 0);
    await page.goto(new URL(`/fleet?function=${name}`, page.url()).href);
    await unknown.waitFor();
    await page.close();
});

test("a session's functions are loaded when they are requested", async () => {
    const page = await openPage("/");
    await page.locator("table.sessions tbody tr a").first().click();
    await page.getByText("spin").first().waitFor();
    await page.close();
});

test("no page asks another server or logs a problem", () => {
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
