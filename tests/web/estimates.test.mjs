// Times of calls that were counted without a clock, and self times of their callers: every page
// marks these estimates with ~.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
    ask, base, change, checkPanel, clean, comesTo, foreign, format, openPage, openTwin, problems, record, rowsOf, saveOne, sql, start, stop, texts,
} from "./lab.mjs";

const ADAPTIVE = 1;
const EXACT = 2;
const KILLED = 3; // adaptive, too

let untimed; // by name: how many calls of a function of ADAPTIVE were counted without a clock
let counting; // names of functions that call such functions

before(async () => {
    clean();
    assert.equal(record("adaptive", ["--clock", "adaptive"], "20000", "0").status, 0);
    assert.equal(record("exact", [], "300", "0").status, 0);
    assert.equal(record("killed", ["--clock", "adaptive"], "20000", "0").status, 0);
    await start();
    change(`UPDATE sessions SET state = 'killed' WHERE session_id = ${KILLED}`);
    const rows = await sql(`SELECT f.name, coalesce(s.untimed_calls, 0) AS untimed FROM function_stats s JOIN functions f USING (function_id)
        WHERE s.session_id = ${ADAPTIVE}`);
    untimed = new Map(rows.map((row) => [row.name, row.untimed]));
    assert.ok(untimed.get("spin") > 0 && untimed.get("main") === 0, JSON.stringify(rows));
    const edges = await sql(`SELECT c.name AS caller, f.name AS callee FROM call_edges e JOIN functions f ON f.function_id = e.callee_function_id
        JOIN functions c ON c.function_id = e.caller_function_id WHERE e.session_id = ${ADAPTIVE}`);
    counting = new Set(edges.filter(({ callee }) => isEstimate(callee)).map(({ caller }) => caller));
    assert.ok([...counting].some((name) => !isEstimate(name)), `all of ${[...counting]} are counted themselves`);
});

after(stop);

const isEstimate = (name) => untimed.get(name) > 0;
const isSelfOfCall = (name, flags) => (flags & 16) !== 0 || counting.has(name);
const isSelfEstimate = (name) => isEstimate(name) || counting.has(name);
const nameIn = (text) => [...untimed.keys()].find((name) => text.startsWith(name));
const isMarked = (text) => text.includes("~");
const grid = (page, role) =>
    page.locator(`[role=${role}] .rows [role=row]`).evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent.trim())));

// Checks that each time of a row is marked if its function has estimates. "–" means that a time is
// not known.
function checkCells(name, cells, isMark) {
    cells.filter((text) => text !== "–" && text !== "").forEach((text) => assert.equal(isMarked(text), isMark, `${name}: ${cells.join(" | ")}`));
}

function checkRow(name, cells, selves = []) {
    checkCells(name, cells, isEstimate(name));
    checkCells(`self of ${name}`, selves, isSelfEstimate(name));
}

// Checks that the columns is_estimate and is_self_estimate of a panel's statement agree with
// function_stats and call_edges. Returns is_self_estimate if the row has it, else is_estimate.
function agreed(row) {
    assert.equal(Boolean(row.is_estimate ?? isEstimate(row.name)), isEstimate(row.name), row.name);
    assert.equal(Boolean(row.is_self_estimate ?? isSelfEstimate(row.name)), isSelfEstimate(row.name), `self of ${row.name}`);
    return row.is_self_estimate ?? row.is_estimate;
}

const functionId = async (name) =>
    (await sql(`SELECT s.function_id AS id FROM function_stats s JOIN functions f USING (function_id) WHERE s.session_id = ${ADAPTIVE} AND f.name = '${name}'`))[0].id;

test("each view of a session explains ~ once, and a session without estimates has no ~", async () => {
    const { count, counted } = format;
    const [{ all }] = await sql(`SELECT sum(untimed_calls) AS "all" FROM function_stats WHERE session_id = ${ADAPTIVE}`);
    const [{ calls }] = await sql(`SELECT stored_calls AS calls FROM sessions WHERE session_id = ${ADAPTIVE}`);
    for (const view of ["", "tree", "flame", "timeline", "overview", "live"]) {
        const page = await openPage(`/sessions/${ADAPTIVE}?view=${view}`);
        await page.getByText(`~ marks estimates. ${counted(all, "call")} of ${count(calls)} were counted without a clock.`).waitFor();
        await page.close();
    }
    const page = await openPage(`/sessions/${EXACT}`);
    await page.locator("[role=grid] .rows .mono").first().waitFor();
    assert.equal(await page.getByText("~").count(), 0);
    await page.close();
});

test("the table of functions marks every time, and gives the error of a total", async () => {
    const { duration } = format;
    const rows = await sql(`SELECT f.name, s.calls, s.total_ns, s.error_ns FROM function_stats s JOIN functions f USING (function_id)
        WHERE s.session_id = ${ADAPTIVE} AND s.calls > 0`);
    for (const chosen of ["", "&functions=*", "&area=0-100000000000"]) {
        const page = await openPage(`/sessions/${ADAPTIVE}?view=functions${chosen}`);
        await page.locator("[role=grid] .rows .mono").first().waitFor();
        const shown = await grid(page, "grid");
        for (const { name, total_ns: total, error_ns: error } of rows) {
            const [, self, sum, , mean, ...rest] = shown.find(([text]) => nameIn(text) === name);
            checkRow(name, [sum, mean, ...rest.slice(0, 5)], [self]);
            assert.equal(sum, `${isEstimate(name) ? "~" : ""}${duration(total)}`);
            if (isEstimate(name)) {
                const hint = await page.locator("[role=grid] .rows [role=row]", { hasText: name }).first().locator("[role=gridcell]").nth(2).locator("span").getAttribute("title");
                const known = chosen.startsWith("&area") ? "" : `; total ± ${duration(error)} (standard error)`;
                assert.equal(hint, `estimate: calls counted without a clock${known}`);
            }
        }
        await page.close();
    }
});

test("the page of a function marks its times, and gives the error of their sum", async () => {
    const { compact, count, duration, estimated } = format;
    const id = await functionId("spin");
    const quantile = (part) => `histogram_quantile(s.histogram, ${part}, s.session_id, s.min_ns, s.max_ns)`;
    const [fn] = await sql(`SELECT s.*, ${quantile(0.5)} AS p50_ns, ${quantile(0.99)} AS p99_ns FROM function_stats s
        WHERE session_id = ${ADAPTIVE} AND function_id = ${id}`);
    const page = await openPage(`/sessions/${ADAPTIVE}?view=function&function=${id}`);
    await page.getByText(`${count(fn.calls)} calls, ~${duration(fn.total_ns)} total, ~${duration(fn.self_ns)} self`).waitFor();
    await page.getByText(`${compact(fn.untimed_calls)} counted without a clock: the total is an estimate, ± ${duration(fn.error_ns)} (standard error)`).waitFor();
    for (const key of ["min", "p50", "p99", "max"]) {
        await page.getByRole("button", { name: `${key} ~${duration(fn[`${key}_ns`])}`, exact: true }).waitFor();
    }
    const callers = await checkPanel(page, "Callers", (row) => [row.name, count(row.calls), `~${duration(row.total_ns)}`]);
    assert.ok(callers.length > 1);
    await page.goto(new URL(`/sessions/${ADAPTIVE}?view=function&function=${id}&area=0-100000000000`, base).href);
    await page.getByText("times are estimates", { exact: false }).last().waitFor();
    await checkPanel(page, "Callers", (row) => [row.name, count(row.calls), `~${duration(row.total_ns)}`]);
    const [first] = await sql(`SELECT start_ns, thread_id FROM calls WHERE session_id = ${ADAPTIVE} AND function_id = ${id} AND flags & 16 AND duration_ns < ${fn.max_ns} LIMIT 1`);
    const area = `${first.start_ns - 200}-${first.start_ns + 1000000}`;
    await page.goto(new URL(`/sessions/${ADAPTIVE}?view=function&function=${id}&threads=${first.thread_id}&area=${area}&range=0-${fn.max_ns}`, base).href);
    const sameDuration = (name) => checkPanel(page, "Calls of this duration, in order of entry, at most 100", (row) => {
        const sign = row.flags & 16;
        return [estimated(row.start_ns, sign), undefined, estimated(row.duration_ns, sign), estimated(row.self_ns, isSelfOfCall(name, row.flags)), `${row.ending}${row.flags & 15 ? " ▲" : ""}`];
    });
    assert.ok((await sameDuration("spin")).some((row) => isMarked(row[2])));
    const exact = await functionId("load_file");
    await page.goto(new URL(`/sessions/${ADAPTIVE}?view=function&function=${exact}&range=0-1000000000000`, base).href);
    assert.ok((await sameDuration("load_file")).every((row) => !isMarked(row[2]) && isMarked(row[3]) === counting.has("load_file")));
    for (const chosen of ["", "&area=0-100000000000"]) {
        await page.goto(new URL(`/sessions/${ADAPTIVE}?view=function&function=${exact}${chosen}`, base).href);
        await page.getByRole("heading", { name: "load_file" }).waitFor();
        const line = await page.locator("p", { hasText: "1 call," }).textContent();
        checkRow("load_file", [/[^ ]+ [^ ]+(?= total)/.exec(line)[0]], [/[^ ]+ [^ ]+(?= self)/.exec(line)[0]]);
        await checkPanel(page, "Callees", (row) => [row.name, count(row.calls), estimated(row.total_ns, agreed(row))]);
    }
    await page.close();
});

test("the call tree marks paths of functions with estimated times", async () => {
    for (const chosen of ["", "&area=0-100000000000"]) {
        const page = await openPage(`/sessions/${ADAPTIVE}?view=tree&function=${await functionId("hash_word")}${chosen}`);
        await page.locator("[role=treegrid] .rows .mono", { hasText: "hash_word" }).first().waitFor();
        const rows = (await grid(page, "treegrid")).filter(([text]) => nameIn(text));
        assert.ok(rows.length >= 4);
        rows.forEach(([name, total, self, , p50, p95]) => checkRow(nameIn(name), [total, p50, p95], [self]));
        const rest = (await grid(page, "treegrid")).filter(([text]) => text === "show the siblings" || / more$/.test(text));
        rest.flatMap(([, total, self]) => [total, self]).filter((text) => text !== "" && text !== "–").forEach((text) => assert.ok(isMarked(text), text));
        await page.close();
    }
});

test("flame graphs and their tables mark estimated times", async () => {
    const { estimated } = format;
    const page = await openPage(`/sessions/${ADAPTIVE}?view=flame`);
    const label = "Call paths, callers above callees";
    const tableOf = (name) => rowsOf(page, `${name}, as a table`);
    await page.locator(".flame canvas").waitFor();
    await openTwin(page);
    await tableOf(label).first().waitFor();
    const shown = await texts(tableOf(label));
    assert.ok(shown.some(([name]) => isEstimate(name)));
    shown.forEach(([name, , total, self]) => checkRow(name, [total], [self]));
    const flame = page.getByRole("group", { name: label, exact: true });
    await flame.focus();
    const paths = await sql(`SELECT name, path_id, total_ns, self_ns FROM flame(${ADAPTIVE})`);
    for (let step = 0; step < 3; step++) {
        const before = page.url();
        await page.keyboard.press("ArrowDown");
        await page.waitForURL((url) => url.href !== before);
        const path = paths.find((row) => String(row.path_id) === new URL(page.url()).searchParams.get("frame").split("-")[0]);
        await page.getByText(new RegExp(`^${path.name}: ${estimated(path.total_ns, isEstimate(path.name)).replace(".", "\\.")}, .*, ${estimated(path.self_ns, isSelfEstimate(path.name)).replace(".", "\\.")} self$`)).waitFor();
    }
    await page.goto(new URL(`/sessions/${ADAPTIVE}?view=flame&fold=1`, base).href);
    await page.locator(".flame canvas").waitFor();
    await openTwin(page);
    await tableOf(label).first().waitFor();
    (await texts(tableOf(label))).forEach(([name, , total]) => checkRow(name, [total]));
    for (const chosen of ["", "&area=0-100000000000"]) {
        await page.goto(new URL(`/sessions/${ADAPTIVE}?view=flame&mode=bottom${chosen}`, base).href);
        await page.locator(".flame canvas").waitFor();
        await openTwin(page);
        await tableOf("Functions above their callers").first().waitFor();
        (await texts(tableOf("Functions above their callers"))).filter((row) => row[1] === "0").forEach(([name, , self]) => checkRow(name, [], [self]));
        await page.goto(new URL(`/sessions/${ADAPTIVE}?view=flame&mode=around&function=${await functionId("hash_word")}${chosen}`, base).href);
        await page.getByText(/^hash_word: ~.* total, ~.* self/).waitFor();
        await page.locator(".flame canvas").nth(1).waitFor();
        await openTwin(page);
        await tableOf("The function above its callees").first().waitFor();
        (await texts(tableOf("The function above its callees"))).forEach(([name, , total]) => checkRow(name, [total]));
    }
    await page.close();
});

test("overview, live view and crash page mark functions and single calls", async () => {
    const { compact, duration, estimated, percent } = format;
    const page = await openPage(`/sessions/${ADAPTIVE}?view=overview`);
    for (const chosen of ["", "&area=0-100000000000"]) {
        await page.goto(new URL(`/sessions/${ADAPTIVE}?view=overview${chosen}`, base).href);
        const hot = await checkPanel(page, "Where the time goes", (row) => [row.name, percent(row.share, 1), estimated(row.self_ns, agreed(row)), compact(row.calls)]);
        assert.ok(hot.some((row) => isMarked(row[2])));
    }
    await checkPanel(page, "Calls with the most self time", (row) => [
        undefined,
        undefined,
        estimated(row.self_ns, isSelfOfCall(row.name, row.flags)),
        estimated(row.duration_ns, row.flags & 16),
    ]);
    await page.goto(new URL(`/sessions/${ADAPTIVE}?view=live`, base).href);
    const live = await checkPanel(page, "Where the time goes so far", (row) => [row.name, estimated(row.self_ns, agreed(row))]);
    assert.ok(live.some((row) => isMarked(row[1])));
    await page.goto(new URL(`/sessions/${KILLED}?view=overview`, base).href);
    const flags = await sql(`SELECT flags, duration_ns FROM calls WHERE session_id = ${KILLED} AND flags & 16 ORDER BY call_id DESC LIMIT 100`);
    const last = await checkPanel(page, "Last calls, at most 100 of each thread, latest first", (row) => [
        undefined, undefined, row.name, estimated(row.start_ns, row.is_estimate), estimated(row.duration_ns, row.is_estimate),
    ]);
    assert.ok(last.some((row) => flags.some((call) => row[4] === `~${duration(call.duration_ns)}`)));
    await page.close();
});

test("the timeline marks calls, their callers and callees, and the sums of an area", async () => {
    const { count, duration, estimated } = format;
    const [call] = await sql(`SELECT c.call_id, c.start_ns, c.end_ns, c.duration_ns, c.self_ns, c.depth, f.name FROM calls c JOIN functions f USING (function_id)
        WHERE c.session_id = ${ADAPTIVE} AND c.flags = 16 AND c.duration_ns BETWEEN 20 AND 2000 AND f.name = 'hash_word' LIMIT 1`);
    const room = Math.max(40, call.duration_ns);
    const page = await openPage(`/sessions/${ADAPTIVE}?view=timeline&call=${call.call_id}&from=${call.start_ns - room}&to=${call.end_ns + room}`);
    const details = page.getByRole("region", { name: "Selected call" });
    await details.getByText(`~${duration(call.duration_ns)}, ~${duration(call.self_ns)} of it itself`, { exact: true }).waitFor();
    await details.getByText(`~${duration(call.start_ns)}`, { exact: true }).waitFor();
    const callers = await sql(`SELECT f.name, a.duration_ns, a.flags FROM ancestors(${call.call_id}) a JOIN functions f USING (function_id)`);
    await comesTo(
        async () => (await texts(details.getByRole("region", { name: "Callers, innermost first" }).locator("tbody tr"))).map((row) => row.slice(0, 2)),
        callers.map((row) => [row.name, estimated(row.duration_ns, row.flags & 16)]),
    );
    await page.locator(".timeline canvas:not(.stale)").waitFor();
    await openTwin(page);
    const row = rowsOf(page, "Calls of the timeline").filter({ hasText: `~${duration(call.start_ns)}` }).filter({ hasText: call.name });
    await row.first().waitFor();
    assert.ok((await texts(row)).some((cells) => cells[4] === `~${duration(call.duration_ns)}` && cells[5] === `~${duration(call.self_ns)}`));
    await page.locator(".timeline").evaluate((timeline) => timeline.scrollIntoView({ block: "center" }));
    const box = await page.locator(".timeline canvas").boundingBox();
    const said = page.locator(".timeline > p[role=status]");
    let hit = "";
    for (let y = 40; y < box.height && !hit.includes(`${call.name}, ~`); y += 9) {
        await page.mouse.move(box.x + box.width / 2, box.y + y);
        hit = await said.textContent();
    }
    assert.match(hit, new RegExp(`${call.name}, ~`));
    const [timed] = await sql(`SELECT c.call_id, c.start_ns, c.end_ns, c.duration_ns, c.self_ns, f.name FROM calls c JOIN functions f USING (function_id)
        WHERE c.session_id = ${ADAPTIVE} AND NOT c.flags & 16 AND c.duration_ns > 0 AND f.name = 'parse_line' LIMIT 1`);
    assert.ok(counting.has(timed.name));
    await page.goto(new URL(`/sessions/${ADAPTIVE}?view=timeline&call=${timed.call_id}`, base).href);
    await details.getByText(`${duration(timed.duration_ns)}, ~${duration(timed.self_ns)} of it itself`, { exact: true }).waitFor();
    await page.goto(new URL(`/sessions/${ADAPTIVE}?view=timeline&call=${timed.call_id}&from=${timed.start_ns}&to=${timed.end_ns}`, base).href);
    await openTwin(page);
    const its = rowsOf(page, "Calls of the timeline").filter({ hasText: timed.name }).filter({ hasText: `~${duration(timed.self_ns)}` });
    await its.first().waitFor();
    assert.equal((await texts(its))[0][4], duration(timed.duration_ns));
    for (const target of [`/sessions/${ADAPTIVE}?view=timeline&area=0-100000000000`, `/timeline?sessions=${ADAPTIVE},${EXACT}&align=start&area=0-100000000000`]) {
        await page.goto(new URL(target, base).href);
        const several = target.startsWith("/timeline");
        const sums = await checkPanel(page, "Calls that began in the selection", (one) => {
            const sign = one.session_id === EXACT ? one.is_self_estimate : agreed(one);
            assert.ok(one.session_id !== EXACT || !sign, "all of the other session were timed");
            const self = estimated(one.self_ns, sign);
            return several ? [undefined, undefined, one.name, count(one.calls), self] : [one.name, count(one.calls), self];
        });
        assert.ok(sums.some((cells) => isMarked(cells.at(-1))) && sums.some((cells) => !isMarked(cells.at(-1))));
    }
    await page.close();
});

test("the API marks self times of functions and paths, and bars that contain an estimated call", async () => {
    const of = async (path) => (await ask(`/api/v1/sessions/${ADAPTIVE}/${path}`)).json();
    const { items } = await of("functions");
    assert.ok(items.length > 5);
    items.forEach((row) => assert.equal(row.is_self_estimate, isSelfEstimate(row.name), row.name));
    const { focus } = await of(`call-tree?function=${await functionId("hash_word")}`);
    assert.ok(focus.length > 2);
    focus.forEach((row) => assert.deepEqual([row.is_estimate, row.is_self_estimate], [isEstimate(row.name), isSelfEstimate(row.name)], row.name));
    const [{ stream }] = await sql(`SELECT stream_id AS stream FROM streams WHERE session_id = ${ADAPTIVE} ORDER BY calls DESC LIMIT 1`);
    let differ = 0; // bars whose first call is marked differently from the other calls
    for (const [call, , depth, , , , , flags, count] of (await of(`calls?stream=${stream}&width=50`)).rows.filter((row) => row[8] > 1)) {
        const calls = await sql(`SELECT flags FROM calls WHERE stream_id = ${stream} AND depth = ${depth} AND call_id >= ${call} ORDER BY call_id LIMIT ${Math.min(count, 1000)}`);
        const seen = calls.reduce((all, one) => all | one.flags, 0);
        assert.equal(count <= 1000 ? flags : flags & seen, seen, `${count} calls at depth ${depth}`);
        differ += flags !== calls[0].flags;
    }
    assert.ok(differ > 0);
});

test("the explanation of a slow call marks the estimates of both calls", async () => {
    const [first] = await sql(`SELECT start_ns FROM calls WHERE session_id = ${ADAPTIVE} AND function_id = ${await functionId("hash_word")} AND flags & 16 LIMIT 1`);
    const timed = await sql(`SELECT call_id FROM calls WHERE session_id = ${ADAPTIVE} AND function_id = ${await functionId("parse_line")}
        AND flags = 0 AND start_ns > ${first.start_ns} LIMIT 40`);
    let call; // has a callee that was not timed
    let below = [];
    for (let at = 0; at < timed.length && !below.some((row) => row.flag); at++) {
        call = timed[at];
        below = await sql(`SELECT f.name, d.depth - c.depth AS level, max(d.flags & 16) AS flag, sum(d.self_ns) AS self_ns
            FROM calls c JOIN descendants(c.call_id) d JOIN functions f ON f.function_id = d.function_id
            WHERE c.call_id = ${call.call_id} GROUP BY d.function_id, level`);
    }
    assert.ok(below.some((row) => row.flag));
    const page = await openPage(`/sessions/${ADAPTIVE}?view=why&call=${call.call_id}`);
    const rows = rowsOf(page, "Callees of both calls, greatest difference first");
    await rows.first().waitFor();
    const shown = await texts(rows);
    for (const { name, level, flag, self_ns: self } of below) {
        const [, , difference, own] = shown.find((row) => row[0] === name && row[1] === String(level));
        const sign = isSelfOfCall(name, flag);
        assert.equal(own, format.estimated(self, sign), name);
        assert.ok(!sign || isMarked(difference), difference);
    }
    await page.close();
});

test("a comparison marks the side that is estimated", async () => {
    const { duration, estimated } = format;
    const page = await openPage(`/compare?a=${ADAPTIVE}&b=${EXACT}`);
    const rows = await checkPanel(page, "Functions", (row) => {
        assert.equal(row.error_ns_a !== null, isEstimate(row.name), row.name);
        assert.equal(Boolean(row.is_self_estimate_a), isSelfEstimate(row.name), row.name);
        assert.ok(row.error_ns_b === null && !row.is_self_estimate_b, row.name);
        return [undefined, undefined, undefined, undefined, undefined, estimated(row.compared_a, row.is_self_estimate_a), duration(row.compared_b)];
    });
    assert.ok(rows.some((row) => isMarked(row[5])) && rows.some((row) => !isMarked(row[5])));
    await page.getByText("~ marks estimates: times of calls that were counted without a clock, and the self time of their callers.").waitFor();
    const spin = rowsOf(page, "Functions compared").filter({ has: page.getByRole("button", { name: "spin", exact: true }) });
    const [{ error }] = await sql(`SELECT error_ns AS error FROM function_stats WHERE session_id = ${ADAPTIVE} AND function_id = ${await functionId("spin")}`);
    assert.equal(await spin.locator("td").nth(5).locator("span").getAttribute("title"), `estimate: calls counted without a clock; total ± ${duration(error)} (standard error)`);
    await spin.getByRole("button", { name: "spin", exact: true }).click();
    await page.getByText(/A: .* calls, half of them up to ~.*B: .* calls, half of them up to [0-9]/).waitFor();
    await page.locator(".flame canvas").waitFor();
    await page.locator("summary", { hasText: "The same as a table" }).last().click();
    const paths = rowsOf(page, "Call paths compared, as a table");
    await paths.first().waitFor();
    (await texts(paths)).forEach(([name, , totalA, totalB, selfA, selfB]) => {
        checkRow(name, [totalA], [selfA]);
        assert.ok(!isMarked(totalB) && !isMarked(selfB), name);
    });
    await page.close();
});

test("the heat map of devices and builds marks a p95 of estimates", async () => {
    const page = await openPage("/fleet?function=spin");
    const [row] = await checkPanel(page, "p95 of spin", (one) => [one.build, one.device, undefined, `~${format.duration(one.p95_ns)}`]);
    assert.ok(row);
    await page.goto(new URL("/fleet?function=load_file", base).href);
    await checkPanel(page, "p95 of load_file", (one) => [one.build, one.device, undefined, format.duration(one.p95_ns)]);
    await page.close();
});

test("a page saved as one file marks estimates without extra columns", async () => {
    const page = await openPage(`/sessions/${ADAPTIVE}`);
    const alone = await saveOne(page, "estimates.html");
    await alone.getByText("~ marks estimates.").waitFor();
    const table = alone.getByRole("region", { name: "Functions", exact: true });
    const heads = (await table.locator("th").allTextContents()).map((text) => text.trim());
    assert.deepEqual(heads, ["Function", "Module", "Calls", "Total", "Self", "Mean", "Min", "p50", "p95", "p99", "Max"]);
    for (const [name, , , total, self, ...times] of await texts(table.locator("tbody tr"))) {
        checkRow(name, [total, ...times], [self]);
    }
    const slow = await sql(`SELECT s.flags, s.self_ns, f.name FROM calls s JOIN functions f USING (function_id) WHERE s.session_id = ${ADAPTIVE} AND s.self_ns >= 1000 ORDER BY s.self_ns DESC LIMIT 10`);
    const shown = await texts(rowsOf(alone, "Calls with the most self time"));
    assert.deepEqual(shown.map((row) => row[5]), slow.map((row) => format.estimated(row.self_ns, isSelfOfCall(row.name, row.flags))));
    await openTwin(alone);
    const paths = rowsOf(alone, "Call paths, callers above callees, as a table");
    await paths.first().waitFor();
    (await texts(paths)).forEach(([name, , total, self]) => checkRow(name, [total], [self]));
    await alone.close();
    await page.close();
});

test("the error of a total can be read without a mouse", async () => {
    const { duration } = format;
    const [fn] = await sql(`SELECT total_ns, error_ns FROM function_stats WHERE session_id = ${ADAPTIVE} AND function_id = ${await functionId("spin")}`);
    const page = await openPage(`/sessions/${ADAPTIVE}`);
    await page.getByLabel("Search functions", { exact: true }).fill("spin");
    const grid = page.locator("[role=grid][aria-busy=false]");
    await grid.focus();
    const note = `spin: total ~${duration(fn.total_ns)} ± ${duration(fn.error_ns)} (standard error)`;
    await page.getByText(note, { exact: true }).waitFor();
    assert.equal(await grid.getAttribute("aria-describedby"), await page.getByText(note, { exact: true }).getAttribute("id"));
    await page.goto(new URL(`/compare?a=${ADAPTIVE}&b=${EXACT}`, base).href);
    await page.getByRole("button", { name: "spin", exact: true }).press("Enter");
    await page.getByText(new RegExp(`A: .* calls, half of them up to ~.*, total ± ${duration(fn.error_ns).replace(".", "\\.")} \\(standard error\\)\\. B: [^±]*$`)).waitFor();
    await page.close();
});

test("the search in a saved page ignores columns that only mark estimates", async () => {
    const hidden = 777777777;
    change(`WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 25)
            INSERT INTO functions (module_id, offset, size_bytes, name, symbol, symbol_key)
            SELECT (SELECT min(module_id) FROM functions), 10000000 + n, 1, 'padding_' || n, '', 10000000 + n FROM n;
        INSERT INTO function_stats (session_id, function_id, calls, total_ns, self_ns, unwound, untrusted, untimed_calls)
            SELECT ${EXACT}, function_id, 1, 1, 1, 0, 0, ${hidden} FROM functions WHERE name LIKE 'padding%'`);
    change(`UPDATE sessions SET missing_blocks = 1 WHERE session_id = ${EXACT}`);
    const page = await openPage(`/sessions/${EXACT}`);
    const alone = await saveOne(page, "search.html");
    await alone.getByText("▲ 1 block of the session is not stored.").waitFor();
    const rows = alone.getByRole("region", { name: "Functions", exact: true }).locator("tbody tr");
    const search = alone.getByLabel("Search in Functions", { exact: true });
    await search.fill("padding");
    await comesTo(() => rows.count(), 25);
    await search.fill(String(hidden));
    await comesTo(() => rows.count(), 0);
    await alone.close();
    await page.close();
});

test("no page asked any other server for anything, or logged an error", () => {
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
