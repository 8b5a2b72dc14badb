// Makes the pictures of README and docs/ from pages of the dashboard, on recordings of the programs
// of docs/examples and of Debian's perl.
// SJ_PICTURES=1 writes them into docs/pictures. Without it, the test only checks that they can be
// made.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
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

const SIDE = 10; // sessions on each side of the comparison
const SHOP = 1; // the number of each session
const WORDS_SESSION = 2;
const A = Array.from({ length: SIDE }, (_, i) => i + 3).join();
const B = Array.from({ length: SIDE }, (_, i) => i + 3 + SIDE).join();

function run(...words) {
    const done = spawnSync(words[0], words.slice(1), { encoding: "utf8" });
    assert.equal(done.status, 0, done.stderr);
}

function record(name, options, ...words) {
    run(path.join(bin, "sojourn"), "record", "-q", "-o", database, "--name", name, ...options, "--", ...words);
}

function compile(source, name) {
    const program = path.join(output, name);
    mkdirSync(path.dirname(program), { recursive: true });
    run("gcc", "-g", "-O1", "-fno-inline", source, "-o", program);
    return program;
}

// The source of the shop of docs/compare-builds.md that looks a price up without a search.
function withoutSearch() {
    const lines = readFileSync(root("docs/examples/shop.c"), "utf8").split("\n");
    const first = lines.findIndex((line) => line.includes("for (int row"));
    const last = lines.findIndex((line, i) => i > first && line === "    }");
    assert.ok(first > 0 && last > first);
    lines.splice(first, last - first + 1, "    price = prices[item % ITEMS];");
    const source = path.join(output, "shop2.c");
    writeFileSync(source, lines.join("\n"));
    return source;
}

before(async () => {
    clean();
    const shop = compile(root("docs/examples/shop.c"), "old/shop");
    const changed = compile(withoutSearch(), "new/shop");
    const mistakes = compile(root("docs/examples/mistakes.c"), "mistakes");
    record("shop", [], shop);
    record("words", [], "/usr/bin/perl", "-e", WORDS);
    for (const [name, program] of [["before", shop], ["after", changed]]) {
        for (let i = 0; i < SIDE; i++) {
            record(name, [], program, "39", "10");
        }
    }
    record("mistakes", ["--zombies", "heap"], mistakes);
    await start();
});

after(stop);

// Takes the picture of a page as soon as `ready` is drawn. `prepare` works on the page before.
async function takePicture(name, target, ready, prepare = async () => {}) {
    const page = await openPage(target, { viewport: SIZE, colorScheme: "light" });
    await prepare(page);
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

test("the timeline of the tutorial", () => takePicture("timeline", `/sessions/${SHOP}?view=timeline`, /^[\d.]+ [mun]?s to [\d.]+ [mun]?s, /));
test("the flame graph of README", () => takePicture("flame", `/sessions/${WORDS_SESSION}?view=flame`, /^\d+ frames; /));
test("the hottest path of the call tree", () =>
    takePicture("tree", `/sessions/${WORDS_SESSION}?view=tree`, "Perl_runops_standard", async (page) => {
        await page.getByText("main", { exact: true }).waitFor();
        await page.getByRole("treegrid").press("h");
    }));
test("two builds beside each other", () => takePicture("compare", `/compare?a=${A}&b=${B}`, "price_of"));
test("a finding of freed memory", () => takePicture("freed-memory", "/zombies?finding=2", "count_orders"));
