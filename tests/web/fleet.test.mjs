// Uses the apps of a real device through the page only: preparation, recording and results.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { after, before, test } from "node:test";
import {
    bin, checkLooks, clean, comesTo, database, foreign, format, openPage, output, problems, program, rowsOf, sql, start, stop, texts,
} from "./lab.mjs";

let daemon;
const environment = { ...process.env, XDG_STATE_HOME: path.join(output, "state"), XDG_RUNTIME_DIR: path.join(output, "run") };

async function freePort() {
    const probe = net.createServer();
    await new Promise((resolve) => probe.listen(0, "127.0.0.1", resolve));
    const { port } = probe.address();
    await new Promise((resolve) => probe.close(resolve));
    return port;
}

function run(name, ...words) {
    const done = spawnSync(path.join(bin, name), words, { env: environment, encoding: "utf8" });
    assert.equal(done.status, 0, done.stderr);
}

before(async () => {
    clean();
    mkdirSync(environment.XDG_RUNTIME_DIR, { mode: 0o700 });
    const port = await freePort();
    await start(`tls+tcp://127.0.0.1:${port}`);
    const invitation = path.join(output, "phone7.invitation");
    run("sojourn", "device", "--database", database, "--collector", `tls+tcp://127.0.0.1:${port}`, "invite", invitation);
    run("sojourn-device", "enroll", "--token-file", invitation, "--name", "phone7");
    const apps = [
        { name: "words", command: [program, "40", "0"], prepare: [["touch", path.join(output, "prepared")]] },
        { name: "gone", command: ["/nowhere/at/all"] },
    ];
    writeFileSync(path.join(environment.XDG_STATE_HOME, "sojourn/device/apps.json"), JSON.stringify({ apps }));
    daemon = spawn(path.join(bin, "sojourn-device"), ["run"], { env: environment, stdio: ["ignore", "ignore", "pipe"] });
    daemon.stderr.resume();
});

after(async () => {
    daemon?.kill("SIGTERM");
    await stop();
});

const runs = (page) => rowsOf(page, "Preparations and recordings, latest first");

test("an app of a device is prepared, started and recorded by clicks, and its file comes here", async () => {
    const { compact, duration } = format;
    const page = await openPage("/fleet");
    await page.getByRole("button", { name: "phone7" }).click();
    await page.waitForURL(/device=\d+/);
    await page.getByRole("button", { name: "List apps" }).click();
    const apps = rowsOf(page, "Apps of the device");
    await apps.nth(1).waitFor();
    assert.deepEqual(
        (await texts(apps)).map((row) => row.slice(0, 3)),
        [
            ["words", "native", `${program} 40 0`],
            ["gone", "unknown", "/nowhere/at/all"],
        ],
    );
    await page.getByRole("button", { name: "Prepare words" }).click();
    await runs(page).filter({ hasText: "prepare" }).filter({ hasText: "done" }).waitFor();
    await page.getByRole("button", { name: "Record words" }).click();
    const recorded = runs(page).filter({ hasText: "record" });
    const file = recorded.getByRole("button", { name: /^file, / });
    await file.waitFor();
    const [command] = await sql("SELECT result, file_bytes FROM commands WHERE kind = 'record'");
    const { at, session } = JSON.parse(command.result);
    const states = ["preparing", "prepared", "started", "recording", "finished"];
    const wanted = states.map((state, index) => (index > 0 ? `${state} +${duration(at[state] - at[states[index - 1]])}` : state));
    assert.deepEqual(await recorded.locator(".steps li").allTextContents(), wanted);
    assert.equal(await file.textContent(), `file, ${format.bytes(command.file_bytes)}`);
    const [download] = await Promise.all([page.waitForEvent("download"), file.click()]);
    const text = readFileSync(await download.path(), "utf8");
    assert.equal(Buffer.byteLength(text), command.file_bytes);
    assert.match(text, /enter:main/);
    await checkLooks(page, "fleet-apps");
    await page.setViewportSize({ width: 1440, height: 900 });

    const [row] = await sql(`SELECT session_id, stored_calls FROM sessions WHERE lower(hex(uuid)) = '${session}'`);
    await recorded.getByRole("link", { name: `session ${row.session_id}` }).click();
    await page.waitForURL(new RegExp(`/sessions/${row.session_id}\\?view=overview`));
    await page.locator(".session-head").getByText(compact(row.stored_calls), { exact: true }).first().waitFor();
    await page.close();
});

test("the table of devices shows what a device reports and what the collector knows about it", async () => {
    const page = await openPage("/fleet");
    const [known] = await sql(`SELECT s.status, d.device_id FROM device_status s JOIN devices d USING (device_id) WHERE d.name = 'phone7'`);
    const [clock] = await sql(`SELECT uncertainty_ns FROM device_clocks WHERE device_id = ${known.device_id} ORDER BY boottime_ns + offset_ns DESC LIMIT 1`);
    const status = JSON.parse(known.status);
    assert.equal(status.apps, 2);
    const row = rowsOf(page, "Devices").filter({ hasText: "phone7" });
    await row.getByText("● online").waitFor();
    const titles = await page.getByRole("group", { name: "Devices", exact: true }).locator("th").allTextContents();
    const [cells] = await texts(row);
    const cell = (title) => cells[titles.indexOf(title)];
    assert.equal(cell("Recording"), String(status.recording));
    assert.equal(cell("Policies"), status.policies.slice(0, 8) || "–");
    assert.equal(cell("Calls lost"), "none");
    assert.equal(cell("Not delivered"), `${status.undelivered} (${format.bytes(status.spool_mb * 1048576)})`);
    assert.equal(cell("Clock"), clock ? `± ${format.duration(clock.uncertainty_ns)}` : "not compared");
    assert.ok(clock, "the device's clock was compared with the collector's");
    await page.getByRole("button", { name: "phone7" }).click();
    await page.getByText("2 known").waitFor();
    await page.getByText(/(ahead of|behind) the collector's, ± /).waitFor();
    await page.close();
});

test("a failed start names its step, and starts nothing", async () => {
    const before = await sql("SELECT count(*) AS n FROM sessions");
    const [{ device_id: device }] = await sql("SELECT device_id FROM devices WHERE name = 'phone7'");
    const page = await openPage(`/fleet?device=${device}`);
    await page.getByRole("button", { name: "Record gone" }).click();
    const failed = runs(page).filter({ hasText: /^gonerecord/ });
    await failed.getByText("failed", { exact: true }).waitFor();
    const [{ result }] = await sql("SELECT result FROM commands WHERE kind = 'record' AND state = 'failed'");
    await failed.getByText(result, { exact: true }).waitFor();
    assert.match(result, /nowhere/);
    assert.deepEqual(await sql("SELECT count(*) AS n FROM sessions"), before);
    await page.close();
});

test("the list of commands equals the commands in the database", async () => {
    const { bytes, dateTime } = format;
    const page = await openPage("/fleet");
    const commands = await sql(`SELECT CAST(c.created_realtime_ns AS TEXT) AS given, d.name, c.kind, c.requested_by, c.state, c.result, c.file_bytes
        FROM commands c JOIN devices d USING (device_id) ORDER BY c.command_id DESC`);
    assert.ok(commands.length >= 4);
    await comesTo(
        () => texts(rowsOf(page, "Commands")),
        commands.map((row) => [
            dateTime(row.given), row.name, row.kind, row.requested_by, row.state.replaceAll("_", " "),
            row.file_bytes ? `file, ${bytes(row.file_bytes)}` : (row.result ?? "").slice(0, 400).trim(),
        ]),
    );
    await page.close();
});

test("a device whose identity two daemons use is named", async () => {
    const copied = { ...environment, XDG_STATE_HOME: path.join(output, "copy"), XDG_RUNTIME_DIR: path.join(output, "copy-run") };
    cpSync(environment.XDG_STATE_HOME, copied.XDG_STATE_HOME, { recursive: true });
    mkdirSync(copied.XDG_RUNTIME_DIR, { mode: 0o700 });
    const copy = spawn(path.join(bin, "sojourn-device"), ["run"], { env: copied, stdio: "ignore" });
    const page = await openPage("/fleet");
    const named = rowsOf(page, "Devices").getByText("▲ two daemons use this identity");
    assert.equal(await named.count(), 0);
    try {
        do { // each command wakes both daemons
            run("sojourn", "device", "--database", database, "phone7", "status");
        } while ((await sql("SELECT 1 AS n FROM copied_devices")).length === 0);
        await named.waitFor();
    } finally {
        copy.kill("SIGTERM");
        await page.close();
    }
});

test("no page asked any other server for anything, or logged an error", () => {
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
