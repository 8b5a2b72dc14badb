// Every page is accessible in both themes and fits a phone. SJ_LONG=1 checks each size in each
// theme, and saves pictures for review.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { addressOf, pages, startFilled, VALUED } from "./every_page.mjs";
import { base, checkLooks, foreign, newStranger, openPage, problems, saveOne, stop } from "./lab.mjs";

before(startFilled);
after(stop);

const opened = [
    ["help", "/", "dialog[open]", (page) => page.keyboard.press("?")],
    ["palette", `/sessions/${VALUED}`, "[role=option]", (page) => page.keyboard.press("Control+k")],
    ["exports", `/sessions/${VALUED}`, ".threads[open] ul", (page) => page.getByText("Export", { exact: true }).click()],
    ["import", "/", ".import[open] input[type=file]", (page) => page.getByText("Import", { exact: true }).click()],
    ["area", `/sessions/${VALUED}?view=timeline&area=0-99999999999`, "section[aria-label='Calls that began in the selection'] tbody tr"],
    ["differences", `/compare?a=name:before&b=name:after&verdict=slower&function=1`, ".verdict"],
];

const quiet = { colorScheme: "light", reducedMotion: "reduce" };
let shared; // a new page for each test would cost two seconds of CPU

async function pageOf(name, target) {
    if (name === "error") {
        return openPage(await addressOf(target), { ...quiet, expects: /404/ });
    }
    const address = await addressOf(target);
    shared ??= await openPage("about:blank", quiet);
    await shared.setViewportSize({ width: 1440, height: 900 });
    await shared.emulateMedia(quiet);
    await shared.goto(new URL(address, base).href);
    return shared;
}

for (const [name, target, ready, open] of [...pages, ...opened]) {
    test(`${name} is accessible in both themes, and fits a phone`, async () => {
        const page = await pageOf(name, target);
        await page.locator(".live.on").waitFor();
        await page.locator("main h1").first().waitFor();
        await open?.(page);
        await page.locator(ready).first().waitFor();
        await checkLooks(page, name);
    });
}

test("the page that asks for the token is accessible in both themes, and fits a phone", async () => {
    const context = await newStranger(quiet);
    const page = await context.newPage();
    await page.goto(base);
    await page.getByLabel("The token of this server").waitFor();
    await checkLooks(page, "sign-in");
    await context.close();
});

test("a page for one file is accessible in both themes, and fits a phone", async () => {
    const page = await openPage(`/sessions/${VALUED}`);
    const alone = await saveOne(page, "looks.html", { colorScheme: "light", reducedMotion: "reduce" });
    await alone.locator(".flame canvas").waitFor();
    await checkLooks(alone, "one-file");
    await alone.close();
    await page.close();
});

test("no page asked any other server for anything, or logged an error", () => {
    assert.deepEqual(foreign, []);
    assert.deepEqual(problems, []);
});
