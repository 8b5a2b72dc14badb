// Sessions of several devices on one timeline. The tests compute their positions again from single
// calls and clocks. SJ_LONG=1 checks three times as many points of a mark's line.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
    base, change, checkPanel, clean, comesTo, foreign, format, isLong, openPage, openTwin, problems, record, rowsOf,
    sql, start, stop, texts,
} from "./lab.mjs";

const PHONE = 1; // session_id
const TABLET = 2;
const STRANGER = 3; // its device's clock was never compared
const ALL = [PHONE, TABLET, STRANGER];
const AHEAD_NS = 250e6; // how far the tablet's clock is ahead of the collector's
const GO = { [PHONE]: 400000, [TABLET]: 150000 }; // start of each session by its own clock

// Assigns recordings of this machine to three devices whose clocks differ.
before(async () => {
    clean();
    for (const name of ["on the phone", "on the tablet", "on a stranger"]) {
        assert.equal(record(name, [], "300", "0").status, 0);
    }
    await start();
    const device = (id, name) => `INSERT INTO devices (device_id, uuid, name, model, os, build, machine, agent_version, tags,
            first_seen_realtime_ns, last_seen_realtime_ns)
        SELECT ${id}, randomblob(16), '${name}', model, os, build, machine, agent_version, tags,
            first_seen_realtime_ns, last_seen_realtime_ns FROM devices LIMIT 1;`;
    const compared = (session, ahead, uncertainty) => `INSERT OR REPLACE INTO device_clocks
        SELECT s.device_id, p.boot_id, p.boottime_ns, p.realtime_ns - p.boottime_ns - ${ahead}, ${uncertainty}
        FROM clock_pairs p JOIN sessions s USING (session_id) WHERE p.session_id = ${session} ORDER BY p.ticks LIMIT 1;`;
    const mark = (session) => `INSERT INTO marks (session_id, number, name, is_end, at_ns, source)
        VALUES (${session}, 90, 'go', 0, ${GO[session]}, 'app');`;
    change(
        [
            device(71, "phone"), device(72, "tablet"), device(73, "stranger"),
            ...ALL.map((session) => `UPDATE sessions SET device_id = ${70 + session} WHERE session_id = ${session};`),
            compared(PHONE, 0, 1500), compared(TABLET, AHEAD_NS, 800000),
            mark(PHONE), mark(TABLET),
        ].join("\n"),
    );
});

after(stop);

const title = "Sessions on this timeline";
const drawn = (page) => page.locator(".timeline canvas:not(.stale)").waitFor();

// Returns when each session began by the collector's clock, relative to the first one.
async function offsets(sessions) {
    const rows = await sql(`SELECT s.session_id AS id, CAST(coalesce(c.started_collector_ns, s.started_realtime_ns) AS TEXT) AS begun
        FROM sessions s LEFT JOIN session_collector_times c USING (session_id) WHERE s.session_id IN (${sessions})`);
    const begun = new Map(rows.map((row) => [row.id, BigInt(row.begun)]));
    const first = [...begun.values()].reduce((least, one) => (one < least ? one : least));
    return new Map([...begun].map(([id, at]) => [id, Number(at - first)]));
}

const device = { [PHONE]: "phone", [TABLET]: "tablet", [STRANGER]: "stranger" };
const names = { [PHONE]: "on the phone", [TABLET]: "on the tablet", [STRANGER]: "on a stranger" };

// Returns the single calls that overlap a time of the page, as its table shows them.
async function callsOf(from, to, places) {
    const { duration } = format;
    const rows = [];
    for (const [session, offset] of places) {
        const calls = await sql(`SELECT t.name AS thread, c.depth, f.name, c.start_ns, c.duration_ns, c.self_ns
            FROM calls c JOIN functions f USING (function_id) JOIN threads t ON t.thread_id = c.thread_id
            WHERE c.session_id = ${session} AND c.start_ns <= ${to - offset} AND c.end_ns >= ${from - offset}`);
        calls.forEach((call) =>
            rows.push([
                `${device[session]} · ${names[session]} · ${call.thread}`, call.depth, call.name,
                duration(call.start_ns + offset), duration(call.duration_ns), duration(call.self_ns),
            ].join(" | ")),
        );
    }
    return rows.sort();
}

const single = async (page) =>
    (await texts(rowsOf(page, "Calls of the timeline"))).filter((row) => row[6] === "1").map((row) => row.slice(0, 6).join(" | ")).sort();

test("ticked sessions of several devices lie on one timeline by the collector's clock, with its error", async () => {
    const { duration } = format;
    const page = await openPage("/");
    for (const session of ALL) {
        await page.getByLabel(`Tick ${names[session]}, session ${session}`).check();
    }
    await page.getByRole("group", { name: "Actions for the ticked sessions" }).getByRole("link", { name: "Timeline", exact: true }).click();
    await page.waitForURL((url) => url.pathname === "/timeline" && url.searchParams.get("sessions").split(",").length === 3);
    await drawn(page);
    const places = await offsets(ALL);
    const said = {
        [PHONE]: /^± .*; the device's was .* (ahead|behind)$/,
        [TABLET]: new RegExp(`^± .*; the device's was ${duration(AHEAD_NS)} ahead$`),
        [STRANGER]: /^never compared with the collector's clock: uses the device's own$/,
    };
    const rows = await checkPanel(page, title, (row) => [device[row.session_id], names[row.session_id], duration(places.get(row.session_id))]);
    assert.equal(rows.length, 3);
    for (const [name, , , clock] of await texts(page.getByRole("region", { name: title }).locator("tbody tr"))) {
        assert.match(clock, said[Object.keys(device).find((id) => device[id] === name)]);
    }
    const [{ uncertainty }] = await sql(`SELECT uncertainty_ns AS uncertainty FROM session_collector_times WHERE session_id = ${TABLET}`);
    assert.ok(uncertainty >= 800000);
    await page.getByText(`± ${duration(uncertainty)}; the device's was`).waitFor();
    await openTwin(page);
    const wanted = [];
    for (const session of ALL) {
        const [call] = await sql(`SELECT t.name AS thread, c.start_ns, c.duration_ns, c.self_ns FROM calls c
            JOIN functions f USING (function_id) JOIN threads t ON t.thread_id = c.thread_id WHERE c.session_id = ${session} AND f.name = 'main'`);
        wanted.push([
            `${device[session]} · ${names[session]} · ${call.thread}`, 0, "main",
            duration(call.start_ns + places.get(session)), duration(call.duration_ns), duration(call.self_ns),
        ].join(" | "));
    }
    await comesTo(async () => (await single(page)).filter((row) => row.includes(" | 0 | main | ")), wanted.sort());
    await page.close();
});

test("single calls of several sessions are shifted by their clocks; the address keeps the window", async () => {
    const places = await offsets([PHONE, TABLET]);
    const [quick] = await sql(`SELECT start_ns AS "from", lead(start_ns, 24) OVER (ORDER BY call_id) - start_ns AS length FROM calls
        WHERE session_id = ${TABLET} AND stream_id = (SELECT s.stream_id FROM streams s JOIN threads t USING (thread_id)
        WHERE s.session_id = ${TABLET} AND t.is_main) ORDER BY length IS NULL, length LIMIT 1`);
    const from = quick.from + places.get(TABLET);
    const to = from + quick.length;
    const page = await openPage(`/timeline?sessions=${PHONE},${TABLET}&from=${from}&to=${to}`);
    await drawn(page);
    await openTwin(page);
    await rowsOf(page, "Calls of the timeline").first().waitFor();
    const wanted = await callsOf(from, to, places);
    assert.ok(wanted.length > 5, wanted.join("\n"));
    await comesTo(() => single(page), wanted);
    await page.getByRole("group", { name: "Timeline", exact: true }).press("s");
    await page.waitForURL((url) => Number(url.searchParams.get("to")) - Number(url.searchParams.get("from")) === 2 * quick.length);
    await page.close();
});

test("sessions are aligned by a mark or by their beginnings; one without the mark is named and left out", async () => {
    const { duration } = format;
    const page = await openPage(`/timeline?sessions=${ALL}`);
    await drawn(page);
    await page.getByLabel("Aligned by").selectOption("mark:go");
    await page.waitForURL((url) => url.searchParams.get("align") === "mark:go");
    await drawn(page);
    const later = GO[PHONE] - GO[TABLET];
    const rows = await checkPanel(page, title, (row) => [device[row.session_id], undefined, row.offset_ns === null ? "–" : duration(row.offset_ns)]);
    assert.deepEqual(rows.map((row) => [row[0], row[2]]), [["phone", "0 ns"], ["tablet", duration(later)], ["stranger", "–"]]);
    await page.getByText("has no mark go: not shown").waitFor();
    await page.getByText("its first go, by its own clock").first().waitFor();
    await openTwin(page);
    await page.waitForFunction(() => document.body.textContent.includes("tablet · on the tablet"));
    const [{ start_ns: begun }] = await sql(`SELECT start_ns FROM calls JOIN functions f USING (function_id) WHERE session_id = ${TABLET} AND f.name = 'main'`);
    const main = (await texts(rowsOf(page, "Calls of the timeline"))).find((row) => row[0].startsWith("tablet") && row[2] === "main");
    assert.equal(main[3], duration(begun + later));
    assert.ok((await texts(rowsOf(page, "Calls of the timeline"))).every((row) => !row[0].startsWith("stranger")));
    await page.reload();
    await comesTo(() => page.getByLabel("Aligned by").inputValue(), "mark:go");
    await page.getByLabel("Aligned by").selectOption("start");
    await page.getByText("not aligned by time: each begins at 0").first().waitFor();
    await page.getByRole("button", { name: `Remove session ${STRANGER}` }).click();
    await page.waitForURL((url) => url.searchParams.get("sessions") === `${PHONE},${TABLET}`);
    await page.close();
});

// Returns the pixels of the canvas as runs of equal pixels. Transferring millions of numbers would
// take seconds of CPU.
async function image(page) {
    const runs = await page.locator(".timeline canvas").evaluate((canvas) => {
        const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        const ends = [...pixels.keys()].filter((at) => pixels[at] !== pixels[at + 1]);
        return ends.map((end) => [pixels[end], end + 1]);
    });
    const pixels = new Uint32Array(runs.at(-1)[1]);
    runs.forEach(([pixel, end], index) => pixels.fill(pixel, index > 0 ? runs[index - 1][1] : 0, end));
    return pixels;
}

test("a mark's line goes through the tracks of its session only, wherever those are pinned", async () => {
    const [{ id }] = await sql(`SELECT stream_id AS id FROM streams s JOIN threads t USING (thread_id) WHERE s.session_id = ${TABLET} AND NOT t.is_main`);
    const mark = `session_id = ${TABLET} AND number = 91`;
    const page = await openPage(`/timeline?sessions=${PHONE},${TABLET}&align=start&pins=${id}`, { viewport: { width: 1280, height: 1200 } });
    const look = async () => {
        await drawn(page);
        let seen = await image(page);
        await comesTo(async () => {
            const before = seen;
            await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
            seen = await image(page);
            return seen.length > 100000 && seen.every((pixel, at) => pixel === before[at]);
        }, true);
        return seen;
    };
    const without = await look();
    change(`INSERT INTO marks (session_id, number, name, is_end, at_ns, source) SELECT ${TABLET}, 91, 'here', 0,
        (min(first_enter_ns) + max(last_leave_ns)) / 2, 'app' FROM streams WHERE session_id = ${TABLET}`);
    await page.reload();
    const wide = await page.locator(".timeline canvas").evaluate((canvas) => canvas.width);
    let differing = [];
    await comesTo(async () => {
        differing = [...(await look()).entries()].flatMap(([at, pixel]) => (pixel !== without[at] && at / wide > 36 ? [at] : []));
        return differing.length > 50;
    }, true);
    const spots = differing.filter((_, index) => index % (isLong ? 9 : 27) === 0);
    for (const at of spots) {
        await page.locator(".timeline canvas").hover({ position: { x: at % wide, y: Math.floor(at / wide) } });
        await comesTo(async () => (await page.locator(".timeline > p").textContent()).split(" · ")[0], "tablet");
    }
    change(`DELETE FROM marks WHERE ${mark}`);
    await page.close();
});

test("an area's sums, a call's details and the selected device are of the right session", async () => {
    const { count, duration } = format;
    const places = await offsets([PHONE, TABLET]);
    const [{ half }] = await sql(`SELECT start_ns AS half FROM calls JOIN functions f USING (function_id)
        WHERE session_id = ${TABLET} AND f.name = 'parse_line' ORDER BY start_ns LIMIT 1 OFFSET 150`);
    const area = [0, half + places.get(TABLET)];
    const page = await openPage(`/timeline?sessions=${PHONE},${TABLET}&area=${area.join("-")}`);
    await drawn(page);
    const rows = await checkPanel(page, "Calls that began in the selection", (row) => [
        row.device, row.title, row.name, count(row.calls), duration(row.self_ns), duration(row.total_ns), duration(row.max_ns),
    ]);
    for (const [session, offset] of places) {
        const [{ calls }] = await sql(`SELECT count(*) AS calls FROM calls WHERE session_id = ${session}
            AND start_ns >= ${area[0] - offset} AND start_ns < ${area[1] - offset}`);
        const shown = rows.filter((row) => row[0] === device[session]).reduce((sum, row) => sum + Number(row[3].replaceAll(",", "")), 0);
        assert.equal(shown, calls, device[session]);
    }
    const [call] = await sql(`SELECT call_id, duration_ns FROM calls JOIN functions f USING (function_id)
        WHERE session_id = ${TABLET} AND f.name = 'parse_line' LIMIT 1`);
    await page.goto(new URL(`/timeline?sessions=${PHONE},${TABLET}&call=${call.call_id}`, base).href);
    const details = page.getByRole("region", { name: "Selected call" });
    await details.getByRole("heading", { name: "parse_line" }).waitFor();
    assert.match(await details.getByRole("link", { name: "Call tree" }).getAttribute("href"), new RegExp(`^/sessions/${TABLET}\\?`));
    await page.getByLabel("Select a device").selectOption("71");
    await page.waitForURL(/device=71/);
    await page.waitForFunction(() => document.querySelector(".threads summary")?.textContent === "2 threads");
    await page.close();
    const none = await openPage("/timeline");
    await none.getByText("No session is chosen").waitFor();
    await none.close();
});

test("no page asked any other server for anything, or logged an error", () => {
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
