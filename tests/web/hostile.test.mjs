// Hostile names (scripts, text direction, very long words) are shown as plain text on every page.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { addressOf, pages, startFilled } from "./every_page.mjs";
import { base, checkInert, database, foreign, openPage, problems, saveOne, stop } from "./lab.mjs";

before(startFilled);
after(stop);

test("hostile names are shown as plain text in their place on every page", async () => {
    const rename = `
import sqlite3
names = "<script>document.title = 'taken'</script><img src=x onerror=alert(1)>\\u202e😀" + "w" * 100000
with sqlite3.connect(${JSON.stringify(database)}, timeout=60) as held:
    held.execute("UPDATE functions SET name = ? || name", (names,))
    held.execute("UPDATE threads SET name = ?", (names,))
    held.execute("UPDATE devices SET name = ?, build = ?", (names, names))
    held.execute("UPDATE sessions SET name = ?", (names,))
    held.execute("UPDATE zombie_frames SET function = ?, module = ?", (names, names))
`;
    const run = spawnSync("/usr/bin/python3", ["-c", rename], { encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
    const phone = { viewport: { width: 390, height: 844 } };
    const watch = (page, name) => page.on("dialog", (dialog) => problems.push(`${name}: ${dialog.message()}`));
    const shared = await openPage("about:blank", phone);
    watch(shared, "pages");
    for (const [name, target, ready] of pages) {
        const address = await addressOf(target);
        const page = name === "error" ? await openPage(address, { ...phone, expects: /404/ }) : shared;
        await page.goto(new URL(address, base).href);
        await page.locator(ready).first().waitFor();
        await checkInert(page, name);
        if (name === "functions") {
            const alone = await saveOne(page, "hostile.html", phone);
            watch(alone, "one file");
            await alone.locator(".flame canvas").waitFor();
            await checkInert(alone, "one file");
            await alone.close();
        }
    }
});

test("no page asked any other server for anything, or logged an error", () => {
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
