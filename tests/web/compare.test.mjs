// Tests the comparison of two sets of sessions: verdicts, intervals, durations, and how sets are
// chosen.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
    bin, change, checkPanel, clean, database, foreign, format, openPage, openTwin, output, problems, record, rowsOf, sql, start, stop, texts,
} from "./lab.mjs";

const SIDE = 8; // sessions on each side of the comparison
const A = "1,2,3,4,5,6,7,8";
const B = "9,10,11,12,13,14,15,16";

// Records the same program with other functions of the same names, as another compiler option would
// make it.
function recordRebuilt() {
    const folder = path.join(output, "rebuilt");
    mkdirSync(folder);
    const rebuilt = path.join(folder, "recorded_program");
    const source = fileURLToPath(new URL("recorded_program.c", import.meta.url));
    const built = spawnSync("gcc", ["-g", "-O0", "-pthread", "-w", source, "-o", rebuilt], { encoding: "utf8" });
    assert.equal(built.status, 0, built.stderr);
    const words = ["record", "-q", "-o", database, "--name", "after rebuilt", "--", rebuilt, "200", "0"];
    assert.equal(spawnSync(path.join(bin, "sojourn"), words).status, 0);
}

before(async () => {
    clean();
    for (const [name, extra] of [["before", "0"], ["after", "20000"]]) {
        for (let i = 0; i < SIDE; i++) {
            assert.equal(record(name, [], "200", extra).status, 0);
        }
    }
    recordRebuilt();
    await start();
});

after(stop);

function callsChange({ calls_ratio: ratio, calls_change: text }) {
    return ratio === null || ratio === 1 ? text : `${Math.abs(100 * ratio - 100).toFixed(1)} % ${ratio > 1 ? "more" : "fewer"} in total`;
}

test("two sets are compared with a verdict, and their durations drawn", async () => {
    const { change: ratio, count, duration } = format;
    const page = await openPage("/compare");
    await page.getByLabel("A, before").fill(A);
    await page.getByLabel("B, after").fill(B);
    await page.getByRole("button", { name: "Compare" }).click();
    await page.waitForURL(/a=1%2C2/);
    await page.getByText("8 and 8 sessions").waitFor();
    const rows = await checkPanel(page, "Functions", (row) => [
        undefined,
        undefined,
        row.ratio === null && row.compared_a === 0 && row.compared_b > 0 ? "new" : ratio(row.ratio),
        row.ratio_low === null ? "–" : `${ratio(row.ratio_low)} to ${ratio(row.ratio_high)}`,
        row.p_adjusted === null ? "–" : row.p_adjusted.toPrecision(2),
        duration(row.compared_a),
        duration(row.compared_b),
        count(row.calls_a),
        count(row.calls_b),
        callsChange(row),
    ]);
    assert.ok(rows.length > 5 && rows.some((row) => row[3] !== "–" && row[4] !== "–"));
    const [{ unclear }] = await sql(`SELECT count(*) AS unclear FROM diff_functions('${A}', '${B}') WHERE row > 0 AND verdict IN ('inconclusive', 'minor', 'unmatched')`);
    assert.equal(await page.locator("tr.unclear").count(), unclear);
    assert.equal(await page.locator("tr.unclear", { hasText: /slower|faster/ }).count(), 0);
    const [total] = await sql(`SELECT * FROM diff_functions('${A}', '${B}') WHERE row = 0`);
    await page.getByText(`${duration(total.compared_a)} → ${duration(total.compared_b)} (${ratio(total.ratio)}), 8 and 8 sessions.`).waitFor();
    const spin = rowsOf(page, "Functions compared").filter({ hasText: "spin" });
    assert.match((await texts(spin))[0][0], /slower$/);
    await spin.getByRole("button", { name: "spin" }).click();
    await page.getByText(/Durations of spin/).waitFor();
    await page.locator(".chart canvas").waitFor();
    const [merged] = await sql(
        `SELECT sum(calls) AS calls FROM function_stats JOIN functions USING (function_id) WHERE name = 'spin' AND session_id IN (${B})`,
    );
    await page.getByText(`${count(merged.calls)} calls, half of them`).first().waitFor();
    await page.getByRole("button", { name: /^slower/ }).click();
    await page.waitForURL(/verdict=slower/);
    await page.reload();
    await rowsOf(page, "Functions compared").first().waitFor();
    for (const row of await texts(rowsOf(page, "Functions compared"))) {
        assert.match(row[0], /slower$/);
    }
    await page.getByRole("group", { name: "Call paths compared", exact: true }).waitFor();
    await openTwin(page);
    const paths = await sql(`SELECT name, verdict, total_ns_a, total_ns_b, compared_a, compared_b FROM diff_tree('${A}', '${B}') WHERE row > 0`);
    const wanted = paths.map((row) => [row.name, row.verdict, ...[row.total_ns_a, row.total_ns_b, row.compared_a, row.compared_b].map(duration)].join(" | "));
    const shown = (await texts(rowsOf(page, "Call paths compared, as a table"))).map(([name, verdict, ...times]) => [name, verdict.slice(2), ...times].join(" | "));
    assert.ok(shown.length > 5);
    shown.forEach((row) => assert.ok(wanted.includes(row), `${row} is none of\n${wanted.join("\n")}`));
    await page.close();
    const wrong = await openPage("/compare?a=nonsense:&b=2", { expects: /status of 40/ });
    await wrong.getByRole("alert").first().waitFor();
    await wrong.close();
});

// Returns the calls and shares of each bin, as a table shows them.
async function binsOf(page) {
    await page.locator("figure.durations details.twin summary").click();
    const label = rowsOf(page, "Durations, as a table");
    await label.first().waitFor();
    return (await texts(label)).map((row) => row.map((text) => Number(text.replace(/[,%<]/g, ""))));
}

test("durations of two sets by name lie over each other, of all builds with that function", async () => {
    const { count } = format;
    for (const [a, b] of [["name:before", "name:after*"], ["name:before+last:20", "17"]]) {
        const [row] = await sql(`SELECT row, function_id_b AS id FROM diff_functions('${a}', '${b}') WHERE name = 'spin'`);
        const page = await openPage(`/compare?a=${a.replaceAll("+", "%2B")}&b=${b}&function=${row.row}`);
        await page.getByText(/Durations of spin/).waitFor();
        await page.locator("figure.durations .chart canvas").waitFor();
        const bins = await binsOf(page);
        for (const [side, set] of [[0, a], [1, b]]) {
            const [{ calls }] = await sql(`SELECT sum(calls) AS calls FROM function_stats JOIN functions USING (function_id)
                WHERE name = 'spin' AND session_id IN (SELECT session_id FROM session_set('${set}'))`);
            assert.equal(bins.reduce((sum, row) => sum + row[2 + 2 * side], 0), calls, set);
            await page.getByText(`${count(calls)} calls, half of them`).first().waitFor();
            const shares = bins.reduce((sum, row) => sum + row[3 + 2 * side], 0);
            assert.ok(Math.abs(shares - 100) <= 0.1 * bins.length, String(shares)); // each is rounded to 0.1 %
        }
        await page.close();
    }
    const builds = await sql("SELECT DISTINCT function_id FROM function_stats JOIN functions USING (function_id) WHERE name = 'spin'");
    assert.equal(builds.length, 2, "the set of those after is of two builds");
});

test("durations of a mark are those of the calls between its begin and end", async () => {
    const [{ half }] = await sql(`SELECT start_ns AS half FROM calls JOIN functions USING (function_id)
        WHERE session_id = 16 AND name = 'parse_line' ORDER BY start_ns LIMIT 1 OFFSET 100`);
    change(`INSERT INTO marks (session_id, number, name, is_end, at_ns, source) VALUES (16, 1, 'first', 0, 0, 'app'), (16, 2, 'first', 1, ${half}, 'app')`);
    const [row] = await sql(`SELECT row FROM diff_functions('name:before', 'mark:first') WHERE name = 'parse_line'`);
    const page = await openPage(`/compare?a=name:before&b=mark:first&function=${row.row}`);
    await page.getByText(/Durations of parse_line/).waitFor();
    assert.equal((await binsOf(page)).reduce((sum, row) => sum + row[4], 0), 100);
    await page.getByText("marks are compared by function").waitFor();
    await page.close();
});

test("sessions are chosen for a comparison in their list", async () => {
    const page = await openPage("/");
    await page.getByRole("button", { name: "after in set B" }).first().click();
    await page.getByRole("button", { name: "before in set A" }).first().click();
    await page.getByRole("link", { name: "Compare", exact: true }).last().click();
    await page.waitForURL(new RegExp(`/compare\\?a=${SIDE}&b=${2 * SIDE}$`));
    await page.getByText("1 and 1 sessions. Too few sessions: this needs 6 per side; 10 per side decide most changes.").waitFor();
    await page.close();
});

test("p95 of a function is shown by the build of its file", async () => {
    const builds = (await sql(`SELECT DISTINCT lower(substr(hex(build_id), 1, 12)) AS build FROM modules
        JOIN functions USING (module_id) WHERE functions.name = 'spin'`)).map(({ build }) => build);
    assert.equal(builds.length, 2);
    const page = await openPage("/fleet?function=spin");
    const rows = page.getByRole("region", { name: "p95 of spin", exact: true }).locator("tbody tr");
    await rows.first().waitFor();
    assert.deepEqual((await texts(rows)).map((row) => row[0]).sort(), builds.sort());
    await page.close();
});

test("no page asked any other server for anything, or logged an error", () => {
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
