// Makes the pictures of README and docs/ from pages of the dashboard on two recordings.
// SJ_PICTURES=1 writes them into docs/pictures. Without it, the test only checks that they can be
// made.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, statSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { bin, clean, database, openPage, output, problems, start, stop } from "./lab.mjs";

const LEAST_BYTES = 20 * 1024; // the picture of an empty page is smaller
const MOST_BYTES = 200 * 1024;
const SIZE = { width: 1280, height: 720 };
const WORDS = `my %count; for my $n (1 .. 3000) { my $word = join "", map { chr 97 + ($n * $_) % 26 } 1 .. 5; $count{$word}++ }
print scalar(keys %count), " words\\n";`;
const root = (name) => fileURLToPath(new URL(`../../${name}`, import.meta.url));

function record(name, ...words) {
    const run = spawnSync(path.join(bin, "sojourn"), ["record", "-q", "-o", database, "--name", name, "--", ...words], { encoding: "utf8" });
    assert.equal(run.status, 0, run.stderr);
}

before(async () => {
    clean();
    const shop = path.join(output, "shop");
    assert.equal(spawnSync("gcc", ["-g", "-O1", "-fno-inline", root("docs/examples/shop.c"), "-o", shop]).status, 0);
    record("shop", shop);
    record("words", "/usr/bin/perl", "-e", WORDS);
    await start();
});

after(stop);

// Takes the picture of a page as soon as `ready` is drawn.
async function takePicture(name, target, ready) {
    const page = await openPage(target, { viewport: SIZE, colorScheme: "light" });
    await page.getByText(ready).first().waitFor();
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const made = path.join(output, `${name}.png`);
    await page.screenshot({ path: made });
    await page.close();
    const { size } = statSync(made);
    assert.ok(size > LEAST_BYTES && size < MOST_BYTES, `${name}.png has ${size} bytes`);
    assert.deepEqual(problems, []);
    if (process.env.SJ_PICTURES === "1") {
        copyFileSync(made, root(`docs/pictures/${name}.png`));
    }
}

test("the timeline of the tutorial", () => takePicture("timeline", "/sessions/1?view=timeline", /^[\d.]+ [mun]?s to [\d.]+ [mun]?s, /));
test("the flame graph of README", () => takePicture("flame", "/sessions/2?view=flame", /^\d+ frames; /));
