// The timeline of a session, and why a call was slow: what is drawn equals what SQL answers.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
    ask, base, change, checkPanel, checkSums, clean, comesTo, foreign, format, openPage, openTwin, problems, record, rowsOf, slowCall, sql, start, stop,
    texts,
} from "./lab.mjs";

const VALUED = 1;
const BLOCKED = 2;

before(async () => {
    clean();
    assert.equal(record("valued", ["--value", "parse_line(number:int) -> int", "--cpu-time", "parse_line"], "300", "0").status, 0);
    assert.equal(record("blocked", [], "blocked").status, 0);
    await start();
    await checkSums();
});

after(stop);

// Returns the calls that overlap a window, as the timeline's table shows them.
async function callsOf(from, to) {
    const { duration } = format;
    const calls = await sql(
        `SELECT coalesce(t.name, '') AS thread, c.depth, f.name, c.start_ns, c.duration_ns, c.self_ns
         FROM calls c JOIN functions f USING (function_id) JOIN threads t ON t.thread_id = c.thread_id
         WHERE c.session_id = ${VALUED} AND c.start_ns <= ${to} AND c.end_ns >= ${from}`,
    );
    return calls
        .map((call) =>
            [call.thread, call.depth, call.name, duration(call.start_ns), duration(call.duration_ns), duration(call.self_ns)].join(" | "),
        )
        .sort();
}

const single = async (page) =>
    (await texts(rowsOf(page, "Calls of the timeline")))
        .filter((row) => row[6] === "1")
        .map((row) => row.slice(0, 6).join(" | "))
        .sort();

test("the timeline shows every single call of a window, and those open at its start", async () => {
    // Uses the 24 consecutive calls with the shortest total time. A pause would make the other
    // calls too narrow for bars of their own.
    const [{ from, length }] = await sql(
        `SELECT start_ns AS "from", lead(start_ns, 24) OVER (ORDER BY call_id) - start_ns AS length FROM calls
         WHERE session_id = ${VALUED} AND stream_id = (SELECT s.stream_id FROM streams s JOIN threads t USING (thread_id)
           WHERE s.session_id = ${VALUED} AND t.is_main) ORDER BY length IS NULL, length LIMIT 1`,
    );
    const to = from + length;
    const page = await openPage(`/sessions/${VALUED}?view=timeline&from=${from}&to=${to}`);
    const wanted = await callsOf(from, to);
    assert.ok(wanted.length > 5, wanted.join("\n"));
    await openTwin(page);
    await rowsOf(page, "Calls of the timeline").first().waitFor();
    assert.deepEqual(await single(page), wanted);
    assert.ok(wanted.some((row) => row.startsWith("recorded_progra | 0 | main")));
    await page.close();
});

const inked = (page) =>
    page.locator("canvas").first().evaluate((canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return data.filter((value, index) => index % 4 === 3 && value > 0).length;
    });

test("merged bars say how many calls they hold, and all add up to those recorded", async () => {
    const page = await openPage(`/sessions/${VALUED}?view=timeline`);
    await page.waitForFunction(() => document.querySelector(".timeline canvas")?.clientHeight > 100);
    await page.waitForFunction(() => !document.querySelector("canvas.stale"));
    assert.ok((await inked(page)) > 5000);
    const [{ calls }] = await sql(`SELECT sum(calls) AS calls FROM streams WHERE session_id = ${VALUED}`);
    const streams = await sql(`SELECT stream_id FROM streams WHERE session_id = ${VALUED}`);
    let sum = 0;
    for (const { stream_id: stream } of streams) {
        const address = new URL(`/api/v1/sessions/${VALUED}/calls?stream=${stream}&width=50`, base);
        const answer = await (await ask(address)).json();
        assert.ok(answer.rows.length < 50 * 12 + 300, String(answer.rows.length));
        sum += answer.rows.reduce((before, row) => before + row[8], 0);
    }
    assert.equal(sum, calls);
    await page.close();
});

// Counts the pixels of the canvas with one colour: of hatched gaps, of faded bars, or of stripes
// over a bar.
const points = (page, which) =>
    page.locator(".timeline canvas").evaluate((canvas, kind) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let found = 0;
        for (let at = 0; at < data.length; at += 4) {
            const [red, green, blue, alpha] = data.subarray(at, at + 4);
            const isHatched = alpha > 200 && red > 200 && green > 40 && green < 110 && blue < 60;
            const isStriped = alpha === 255 && Math.max(red, green, blue) < 165 && Math.min(red, green, blue) > 70;
            const isBelow = isHatched && at / 4 / canvas.width > 8 * devicePixelRatio; // not in the line for threads without a track
            found += { hatchedTrack: Number(isBelow), faded: Number(alpha === 0x38), hatched: Number(isHatched), striped: Number(isStriped) }[kind];
        }
        return found;
    }, which);

const drawn = (page) => page.locator(".timeline canvas:not(.stale)").waitFor();

test("one request brings all tracks of a window", async () => {
    const page = await openPage("/");
    const asked = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await page.goto(new URL(`/sessions/${VALUED}?view=timeline`, base).href);
    await drawn(page);
    const ofTracks = () => asked.filter((path) => /\/(timeline|calls)$/.test(path)).length;
    assert.equal(ofTracks(), 1, asked.join("\n"));
    const zoomed = page.waitForResponse((response) => /\/timeline\?/.test(response.url()));
    await page.keyboard.press("w");
    await zoomed;
    await drawn(page);
    assert.equal(ofTracks(), 2, asked.join("\n"));
    await page.close();
});

test("search fades what does not match, and gaps are hatched", async () => {
    const page = await openPage(`/sessions/${VALUED}?view=timeline`);
    await drawn(page);
    await comesTo(async () => (await points(page, "faded")) === 0 && (await points(page, "hatched")) === 0, true);
    await page.getByRole("searchbox").fill("fibonacci");
    await comesTo(async () => (await points(page, "faded")) > 1000, true);
    await page.getByRole("searchbox").fill("");
    await comesTo(() => points(page, "faded"), 0);
    const [stream] = await sql(`SELECT max(stream_id) AS id, min(first_enter_ns) AS "from", max(last_leave_ns) AS "to" FROM streams WHERE session_id = ${VALUED}`);
    const third = Math.floor((stream.to - stream.from) / 3);
    // A wait loses no call. Losses of threads without a track are not drawn in another track.
    change(`INSERT INTO gaps (session_id, stream_id, number, reason, calls, events, start_ns, end_ns)
        VALUES (${VALUED}, ${stream.id}, 91, 'waited', 0, 0, ${stream.from}, ${stream.from + third}),
            (${VALUED}, NULL, 92, 'no_thread_slot', 7, 14, ${stream.from}, ${stream.to})`);
    await page.reload();
    await drawn(page);
    await comesTo(async () => (await points(page, "hatched")) > 100 && (await points(page, "hatchedTrack")) === 0, true);
    change(`DELETE FROM gaps WHERE number = 92`);
    change(`INSERT INTO gaps (session_id, stream_id, number, reason, calls, events, start_ns, end_ns)
        VALUES (${VALUED}, ${stream.id}, 90, 'ring_full', 5, 10, ${stream.from + third}, ${stream.from + 2 * third})`);
    await page.reload();
    await drawn(page);
    await comesTo(async () => (await points(page, "hatched")) > 500, true);
    change(`DELETE FROM gaps WHERE session_id = ${VALUED} AND number IN (90, 91)`);
    await page.close();
});

test("calls without exact times are striped on the timeline, and marked in the table", async () => {
    const call = await slowCall(VALUED);
    const page = await openPage("/");
    let flags = 0;
    await page.route("**/api/v1/sessions/*/timeline**", async (route) => {
        const response = await route.fetch();
        const answer = await response.json();
        answer.tracks?.forEach((track) => track.rows.forEach((row) => (row[7] = flags)));
        await route.fulfill({ response, json: answer });
    });
    const address = new URL(`/sessions/${VALUED}?view=timeline&from=${call.start_ns}&to=${call.start_ns + call.duration_ns}`, base).href;
    const striped = async () => {
        await page.goto(address);
        await drawn(page);
        await openTwin(page);
        await rowsOf(page, "Calls of the timeline").first().waitFor();
        const said = (await texts(rowsOf(page, "Calls of the timeline"))).map((row) => row[7] === "▲ not exact");
        return { said: said.filter(Boolean).length, rows: said.length, points: await points(page, "striped") };
    };
    const exact = await striped();
    assert.equal(exact.said, 0);
    flags = 16; // an estimate is not counted as inexact
    assert.equal((await striped()).said, 0);
    flags = 2; // a gap lies within the call
    const doubtful = await striped();
    assert.equal(doubtful.said, doubtful.rows);
    assert.ok(doubtful.points > exact.points + 1000, `${exact.points} and ${doubtful.points}`);
    await page.close();
});

test("a pinned track stays in sight, in the address, while the others scroll", async () => {
    const page = await openPage(`/sessions/${VALUED}?view=timeline`, { viewport: { width: 1280, height: 420 } });
    await drawn(page);
    const threads = page.locator(".threads summary", { hasText: "2 threads" });
    const toggle = async () => {
        await threads.click();
        await page.getByRole("button", { name: "Pin worker", exact: true }).click();
        await threads.click();
    };
    const shows = async (name) => {
        await drawn(page);
        await page.locator(".tracks").evaluate((box) => box.scrollTo(0, box.scrollHeight));
        await comesTo(async () => {
            await page.locator(".timeline canvas").hover({ position: { x: 300 + (Date.now() % 7), y: 34 + 20 + 9 } });
            return (await page.locator(".timeline > p").textContent()).startsWith(name);
        }, true);
    };
    await shows("recorded_progra: ");
    await toggle();
    await page.waitForURL(/pins=\d+/);
    await shows("worker: ");
    await page.reload();
    await shows("worker: ");
    await toggle();
    await page.waitForURL((url) => !url.searchParams.has("pins"));
    await shows("recorded_progra: ");
    await page.close();
});

test("pinned tracks that would leave no room for the others scroll with them", async () => {
    const [{ id }] = await sql(`SELECT stream_id AS id FROM streams s JOIN threads t USING (thread_id) WHERE s.session_id = ${VALUED} AND NOT t.is_main`);
    const page = await openPage(`/sessions/${VALUED}?view=timeline&pins=${id}`, { viewport: { width: 1280, height: 300 } });
    await drawn(page);
    await page.locator(".tracks").evaluate((box) => box.scrollTo(0, box.scrollHeight));
    await comesTo(async () => {
        await page.locator(".timeline canvas").hover({ position: { x: 300 + (Date.now() % 7), y: 150 } });
        return (await page.locator(".timeline > p").textContent()).startsWith("recorded_progra: ");
    }, true);
    await page.close();
});

test("a pinned thread is drawn although it was not chosen; hiding it unpins it", async () => {
    const [{ id }] = await sql(`SELECT stream_id AS id FROM streams s JOIN threads t USING (thread_id) WHERE s.session_id = ${VALUED} AND t.is_main`);
    const page = await openPage(`/sessions/${VALUED}?view=timeline&streams=${id}`);
    await drawn(page);
    const summary = page.locator(".threads summary", { hasText: "threads" });
    await comesTo(() => summary.textContent(), "1 of 2 threads");
    await summary.click();
    const pin = page.getByRole("button", { name: "Pin worker", exact: true });
    await pin.click();
    await comesTo(() => summary.textContent(), "2 threads");
    assert.deepEqual([await pin.getAttribute("aria-pressed"), await pin.textContent()], ["true", "pin"]);
    await comesTo(async () => {
        await page.locator(".timeline canvas").hover({ position: { x: 900 + (Date.now() % 7), y: 34 + 20 + 9 } });
        return (await page.locator(".timeline > p").textContent()).startsWith("worker: ");
    }, true);
    await page.getByRole("checkbox", { name: /^worker / }).uncheck();
    await comesTo(() => summary.textContent(), "1 of 2 threads");
    assert.equal(new URL(page.url()).searchParams.has("pins"), false);
    await page.close();
});

test("keys, wheel and drag move, zoom and select without focus; the address keeps it all", async () => {
    const { count, duration } = format;
    const [span] = await sql(
        `SELECT min(first_enter_ns) AS "from", max(last_leave_ns) + 1 AS "to" FROM streams WHERE session_id = ${VALUED}`,
    );
    const length = span.to - span.from;
    const page = await openPage(`/sessions/${VALUED}?view=timeline`);
    const timeline = page.getByRole("group", { name: "Timeline" });
    await timeline.waitFor();
    const shown = async (from, to) => {
        await page.waitForURL((url) => url.searchParams.get("to") === String(to) && url.searchParams.get("from") === String(from));
    };
    await page.keyboard.press("w"); // without focus
    const half = [Math.round(span.from + length / 4), Math.round(span.from + length / 4) + Math.round(length / 2)];
    await shown(...half);
    await page.keyboard.press("ArrowLeft");
    const earlier = Math.round(half[0] - (half[1] - half[0]) / 4);
    await shown(earlier, earlier + half[1] - half[0]);
    await page.keyboard.press("f");
    await page.waitForURL((url) => !url.searchParams.has("from"));
    await page.keyboard.press("?");
    const help = page.getByRole("dialog", { name: "Keys and gestures" });
    await help.getByText("Shift drag, drag on the ruler").waitFor();
    await page.keyboard.press("w"); // belongs to the dialog
    await page.keyboard.press("Escape");
    await help.waitFor({ state: "hidden" });
    assert.equal(new URL(page.url()).searchParams.has("from"), false);
    await page.waitForFunction(() => !document.querySelector("canvas.stale"));
    const box = await page.locator(".timeline canvas").boundingBox();
    await page.keyboard.down("Shift");
    await page.mouse.move(box.x + box.width * 0.01, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.99, box.y + 60, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await page.waitForURL(/area=\d+-\d+/);
    const rows = await checkPanel(page, "Calls that began in the selection", (row) => [
        row.name,
        count(row.calls),
        duration(row.self_ns),
        undefined,
        duration(row.total_ns),
        duration(row.max_ns),
    ]);
    const [from, to] = new URL(page.url()).searchParams.get("area").split("-").map(Number);
    const [{ calls }] = await sql(
        `SELECT count(*) AS calls FROM calls WHERE session_id = ${VALUED} AND start_ns >= ${from} AND start_ns < ${to}`,
    );
    assert.equal(rows.reduce((sum, row) => sum + Number(row[1].replaceAll(",", "")), 0), calls);
    await page.reload();
    await page.getByRole("region", { name: "Calls that began in the selection" }).locator("tbody tr").first().waitFor();
    await page.getByRole("button", { name: /^Remove: / }).click();
    await page.waitForURL((url) => !url.searchParams.has("area"));
    await page.getByRole("region", { name: "Calls that began in the selection" }).waitFor({ state: "detached" });
    await page.locator(".timeline canvas").hover({ position: { x: 400, y: 50 } }); // the page may have scrolled
    await page.mouse.wheel(0, -100);
    await page.waitForURL(/from=\d+&to=\d+/);
    await page.close();
});

const windowOf = (page) => page.locator(".timeline").evaluate(({ dataset }) => [Number(dataset.from), Number(dataset.to)]);
const lengthOf = async (page) => windowOf(page).then(([from, to]) => to - from);

// Returns where the drawn canvas is, once two frames show it at the same place.
async function placeOf(page) {
    await drawn(page);
    const canvas = page.locator(".timeline canvas");
    await canvas.scrollIntoViewIfNeeded();
    let place;
    await comesTo(async () => {
        const before = await canvas.boundingBox();
        await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
        place = await canvas.boundingBox();
        return ["x", "y", "width", "height"].every((side) => before[side] === place[side]);
    }, true);
    return place;
}

// Opens the timeline on a call and a short time after it. Returns a point on its bar, too.
async function openOn(call, options = {}) {
    const [from, to] = [call.start_ns, call.start_ns + Math.round(1.2 * call.duration_ns)];
    const page = await openPage(`/sessions/${VALUED}?view=timeline&from=${from}&to=${to}`, options);
    const box = await placeOf(page);
    return { page, from, to, box, x: box.x + box.width / 2, y: box.y + 34 + 20 + 2 * 18 + 8 };
}

test("hovering shows the call beside the pointer, and redraws nothing else", async () => {
    const { duration } = format;
    const call = await slowCall(VALUED);
    const { page, x, y, box } = await openOn(call);
    await page.evaluate(() => {
        window.drawings = 0;
        const { putImageData } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.putImageData = function (...given) {
            window.drawings++;
            return putImageData.apply(this, given);
        };
    });
    await page.mouse.move(x, y);
    const tip = page.getByRole("tooltip");
    await tip.waitFor();
    const [cost] = await sql(`SELECT cpu_ns, cpu_self_ns FROM call_costs WHERE call_id = ${call.call_id}`);
    const facts = () => tip.locator("dl").evaluate((list) =>
        Object.fromEntries([...list.querySelectorAll("dt")].map((term) => [term.textContent, [...term.nextElementSibling.childNodes].map((part) => part.textContent).join(term.textContent === "Called by" ? " < " : "")])));
    await comesTo(facts, {
        Duration: duration(call.duration_ns),
        Self: duration(call.self_ns),
        "CPU time": `${duration(cost.cpu_ns)}, ${duration(cost.cpu_self_ns)} of it itself`,
        Waited: duration(Math.max(0, call.duration_ns - cost.cpu_ns)),
        number: "77",
        result: String((await sql(`SELECT value FROM arguments WHERE call_id = ${call.call_id} AND position = 0`))[0].value),
        "Called by": "load_file < main",
    });
    assert.equal(await tip.locator("strong").textContent(), "parse_line");
    const place = await tip.boundingBox();
    assert.ok(Math.min(Math.abs(place.x - x), Math.abs(place.x + place.width - x)) <= 20, `the pointer is at ${x}, the tooltip at ${place.x}`);
    for (let step = 0; step < 60; step++) {
        await page.mouse.move(box.x + 20 + (step * (box.width - 40)) / 60, y + 18 * (step % 3));
    }
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    assert.equal(await page.evaluate(() => window.drawings), 0);
    await page.keyboard.press("d"); // a move draws: the counter counts
    await comesTo(() => page.evaluate(() => window.drawings > 0), true);
    await tip.waitFor({ state: "detached" });
    await page.close();
});

test("a click selects and keeps the window, a double click zooms in, a drag moves it", async () => {
    const call = await slowCall(VALUED);
    const { page, from, to, x, y } = await openOn(call);
    await page.mouse.click(x, y);
    await page.waitForURL(new RegExp(`call=${call.call_id}`));
    assert.deepEqual(await windowOf(page), [from, to]);
    await page.keyboard.press("r");
    await page.waitForURL((url) => url.searchParams.get("area") === `${call.start_ns}-${call.start_ns + call.duration_ns + 1}`);
    await page.keyboard.press("Escape");
    await page.waitForURL((url) => !url.searchParams.has("area") && !url.searchParams.has("call"));
    await page.getByRole("region", { name: "Selected call" }).waitFor({ state: "detached" });
    const { y: top } = await placeOf(page); // chips above it and panels below it go
    await page.mouse.move(x, top + 60);
    await page.mouse.down();
    await page.mouse.move(x - 60, top + 60, { steps: 3 });
    await page.mouse.up();
    await comesTo(async () => (await windowOf(page))[0] > from && (await lengthOf(page)) === to - from, true);
    await page.mouse.dblclick(x - 60, top + 60);
    await comesTo(async () => (await lengthOf(page)) <= (to - from) / 2 + 1, true);
    await page.close();
});

test("a click on a bar of many calls selects the first of them, and does not zoom", async () => {
    const [{ stream }] = await sql(`SELECT s.stream_id AS stream FROM streams s JOIN threads t USING (thread_id)
        WHERE s.session_id = ${VALUED} AND t.is_main`);
    const page = await openPage("/");
    const answered = page.waitForResponse((response) => /\/timeline\?.*calls=/.test(response.url()));
    await page.goto(new URL(`/sessions/${VALUED}?view=timeline`, base).href);
    const { rows } = (await (await answered).json()).tracks.find((track) => track.stream_id === String(stream));
    const merged = rows.filter((row) => row[8] > 1).sort((one, other) => other[4] - other[3] - (one[4] - one[3]))[0];
    const box = await placeOf(page);
    const all = await windowOf(page);
    const middle = (merged[3] + merged[4]) / 2;
    const [x, y] = [box.x + ((middle - all[0]) / (all[1] - all[0])) * box.width, box.y + 34 + 20 + 18 * merged[2] + 8];
    await page.mouse.move(x, y);
    await page.getByRole("tooltip").getByText(`${merged[8]} calls at depth ${merged[2]}`).waitFor();
    await page.mouse.click(x, y);
    await page.waitForURL(new RegExp(`call=${merged[0]}`));
    await page.getByRole("region", { name: "Selected call" }).waitFor();
    assert.deepEqual(await windowOf(page), all);
    await page.close();
});

test("two fingers zoom, one finger moves", async () => {
    const call = await slowCall(VALUED);
    const { page, from, to, x, y } = await openOn(call, { hasTouch: true });
    const touch = await page.context().newCDPSession(page);
    const send = (type, ...places) => touch.send("Input.dispatchTouchEvent", { type, touchPoints: places.map((place, id) => ({ x: place, y, id })) });
    await send("touchStart", x - 50, x + 50);
    await send("touchMove", x - 60, x + 60);
    await send("touchMove", x - 100, x + 100);
    await send("touchEnd");
    await comesTo(async () => Math.abs((await lengthOf(page)) / (to - from) - 1 / 2) < 0.02, true);
    const [begin] = await windowOf(page);
    await send("touchStart", x);
    await send("touchMove", x - 40);
    await send("touchMove", x - 120);
    await send("touchEnd");
    await comesTo(async () => (await windowOf(page))[0] > begin && Math.abs((await lengthOf(page)) / (to - from) - 1 / 2) < 0.02, true);
    await page.close();
});

test("a click on a call shows its values, callers and callees; search finds the next call", async () => {
    const { count, duration } = format;
    const call = await slowCall(VALUED);
    const from = call.start_ns - 100;
    const to = call.start_ns + call.duration_ns + 100;
    change(`UPDATE call_costs SET allocated_bytes = 40960 WHERE call_id = ${call.call_id}`); // as for a Java call
    const page = await openPage(`/sessions/${VALUED}?view=timeline&from=${from}&to=${to}`);
    await page.waitForFunction(() => document.querySelector("canvas")?.clientHeight > 100 && !document.querySelector("canvas.stale"));
    const box = await page.locator(".timeline canvas").boundingBox();
    await page.mouse.click(box.x + box.width / 2, box.y + 34 + 20 + 2 * 18 + 8);
    await page.waitForURL(new RegExp(`call=${call.call_id}$`));
    const details = page.getByRole("region", { name: "Selected call" });
    await details.getByText(`${duration(call.duration_ns)}, ${duration(call.self_ns)} of it itself`).waitFor();
    const [cost] = await sql(`SELECT cpu_ns, cpu_self_ns FROM call_costs WHERE call_id = ${call.call_id}`);
    const waited = Math.max(0, call.duration_ns - cost.cpu_ns);
    await details
        .getByText(`${duration(cost.cpu_ns)}, ${duration(cost.cpu_self_ns)} of it itself; it waited ${duration(waited)}`)
        .waitFor();
    assert.equal(await details.locator("dt", { hasText: "Allocated" }).locator("+ dd").textContent(), format.bytes(40960));
    const values = await checkPanel(page, "Values", (row) => [row.position === 0 ? "result" : row.name, row.type ?? row.kind, row.value]);
    assert.deepEqual(values[0], ["number", "int", 77]);
    const callers = await checkPanel(page, "Callers, innermost first", (row) => [row.name, duration(row.duration_ns), duration(row.self_ns)]);
    assert.deepEqual(
        callers.map((row) => row[0]),
        ["load_file", "main"],
    );
    await checkPanel(page, "Callees", (row) => [row.name, count(row.calls), duration(row.total_ns), duration(row.longest_ns)]);
    await page.goto(new URL(`/sessions/${VALUED}?view=timeline`, base).href);
    await page.getByRole("searchbox").fill("fibonacci");
    const found = await sql(
        `SELECT c.call_id FROM calls c JOIN functions f USING (function_id)
         WHERE c.session_id = ${VALUED} AND f.name = 'fibonacci' LIMIT 2`,
    );
    for (const { call_id: id } of found) {
        await page.getByRole("button", { name: "Next call of fibonacci" }).click();
        await page.waitForURL(new RegExp(`call=${id}`));
        await details.getByText(String(id), { exact: true }).waitFor();
    }
    await page.close();
});

test("a slow call is explained beside a typical one", async () => {
    const { duration } = format;
    const call = await slowCall(VALUED);
    const page = await openPage(`/sessions/${VALUED}?view=why&call=${call.call_id}`);
    await page.getByRole("heading", { name: `Why did parse_line take ${duration(call.duration_ns)}?` }).waitFor();
    const rows = await texts(rowsOf(page, "Callees of both calls, greatest difference first"));
    const below = await sql(
        `SELECT f.name, d.depth - c.depth AS level, count(*) AS calls, sum(d.self_ns) AS self_ns FROM calls c
         JOIN descendants(c.call_id) d JOIN functions f ON f.function_id = d.function_id
         WHERE c.call_id = ${call.call_id} GROUP BY 1, 2`,
    );
    for (const part of below) {
        const row = rows.find((one) => one[0] === part.name && one[1] === String(part.level));
        assert.equal(row[3], duration(part.self_ns));
        assert.equal(row[5], String(part.calls));
    }
    const check = rows.find((row) => row[0] === "check_line");
    assert.equal(check[5], "401");
    assert.equal(check[6], "1");
    const itself = rows.filter((row) => row[1] === "0");
    assert.deepEqual(itself.map((row) => [row[0], row[3], row[5], row[6]]), [["parse_line", duration(call.self_ns), "1", "1"]]);
    assert.notEqual(itself[0][4], "–", "the typical call stands beside it");
    const [top] = rows;
    const where = top[1] === "0" ? "itself" : `${top[1]} below it`;
    const calls = top[5] === top[6] ? ", called as often in both." : `: ${top[5]} call${top[5] === "1" ? "" : "s"} instead of ${top[6]}.`;
    await page.getByText(`${top[0]} ${where}${calls}`).waitFor({ timeout: 5000 });
    const [measured] = await sql(`SELECT cpu_ns, duration_ns - self_ns AS below_ns FROM calls WHERE call_id = ${call.call_id}`);
    const parts = await texts(rowsOf(page, "Time of both calls, by what it was spent on"));
    assert.deepEqual(parts.map((row) => row[0]),
        ["CPU", "Ready, but not running", "Blocked", "Waiting for the recorder", "Calls below it", "Itself"]);
    assert.equal(parts[0][1], duration(measured.cpu_ns));
    assert.match(parts[0][3], /^\+/, "it took more CPU time than a typical call");
    assert.equal(parts[4][1], duration(measured.below_ns));
    assert.equal(parts[5][1], duration(call.self_ns));
    const values = await texts(rowsOf(page, "Values that differ"));
    assert.equal(values.find((row) => row[0] === "Argument 1")[1], "77");
    await page.close();
});

test("for a slow call that waited for a pipe or a lock, blocked time differs most", async () => {
    for (const name of ["receive_byte", "run_turn"]) {
        const [{ id, ns }] = await sql(`SELECT call_id AS id, duration_ns AS ns FROM calls JOIN functions USING (function_id)
            WHERE session_id = ${BLOCKED} AND name = '${name}' ORDER BY duration_ns DESC LIMIT 1`);
        assert.ok(ns > 2e8, `${name} was held up for ${ns} ns`);
        const page = await openPage(`/sessions/${BLOCKED}?view=why&call=${id}`);
        await page.getByText(/^The state of its thread that differs most: Blocked, ~\+/).waitFor();
        const parts = await texts(rowsOf(page, "Time of both calls, by what it was spent on"));
        assert.equal(parts.find((row) => row[0] === "Waiting for the recorder")[3], format.duration(0));
        await page.close();
    }
});

test("no page asked any other server for anything, or logged an error", () => {
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
