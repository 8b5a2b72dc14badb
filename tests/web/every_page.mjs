// All pages of the dashboard, and recordings with data for each page.
import assert from "node:assert/strict";
import { clean, record, slowCall, sql, start } from "./lab.mjs";

const SIDE = 4; // sessions on each side of the comparison
const A = "1,2,3,4";
const B = "5,6,7,8";
export const VALUED = 9;
const FALLEN = 10;

export async function startFilled() {
    clean();
    for (const [name, extra] of [["before", "0"], ["after", "20000"]]) {
        for (let i = 0; i < SIDE; i++) {
            assert.equal(record(name, [], "200", extra).status, 0);
        }
    }
    assert.equal(record("valued", ["--value", "parse_line(number:int) -> int", "--cpu-time", "parse_line"], "300", "0").status, 0);
    record("fallen", ["--zombies", "heap"], "crash");
    await start();
}

// For each page: its name, its address, and text that shows that the page is ready.
export const pages = [
    ["functions", `/sessions/${VALUED}`, "[role=grid] .rows .mono"],
    ["tree", `/sessions/${VALUED}?view=tree`, "[role=treegrid] .rows .mono"],
    ["missing", `/sessions/${VALUED}?view=missing`, "tbody tr"],
    ["overview", `/sessions/${VALUED}?view=overview`, "tbody tr"],
    ["crash", `/sessions/${FALLEN}?view=overview`, "tbody tr"],
    ["timeline", `/sessions/${VALUED}?view=timeline`, ".timeline canvas:not(.stale)"],
    ["call", `/sessions/${VALUED}?view=timeline&call=CALL`, ".call-details"],
    ["flame", `/sessions/${VALUED}?view=flame`, ".flame canvas"],
    ["around", `/sessions/${VALUED}?view=flame&mode=around`, ".flame canvas"],
    ["live", `/sessions/${VALUED}?view=live`, ".chart canvas, .tile dd"],
    ["why", `/sessions/${VALUED}?view=why&call=CALL`, "tbody tr"],
    ["list", `/?a=1&b=2`, "table.sessions tbody tr"],
    ["function", "/sessions/VALUED?view=function&function=FUNCTION", ".chart canvas"],
    ["compare", `/compare?a=${A}&b=${B}&function=1`, ".verdict"],
    ["coverage", `/coverage?a=${A}&b=${B}`, "tbody tr"],
    ["sql", "/sql", ".result tbody tr"],
    ["timelines", "/timeline?sessions=1,5,9", ".timeline canvas:not(.stale)"],
    ["zombies", "/zombies?finding=1", ".stack li"],
    ["fleet", "/fleet", "tbody tr"],
    ["empty", "/?q=no-session-has-this", ".empty"],
    ["error", "/sessions/4711", "[role=alert]"],
];

export async function addressOf(target) {
    const [{ id }] = await sql(`SELECT max(function_id) AS id FROM function_stats WHERE session_id = ${VALUED}`);
    const { call_id: call } = target.includes("CALL") ? await slowCall(VALUED) : { call_id: "" };
    return target.replace("VALUED", String(VALUED)).replace("FUNCTION", String(id)).replace("CALL", String(call));
}
