// Pages of another site, in a browser whose user has signed in. They read nothing, the answers that
// they get do not depend on stored data, and the server computes nothing for them. Also tests how a
// tab gets the token.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { ask, base, clean, comesTo, newContext, newStranger, OTHER_SITE, record, start, stop, token } from "./lab.mjs";

const PATIENCE_MS = Number(process.env.SJ_WEB_TIMEOUT_MS ?? 120000);
let other; // the server of the other site

before(async () => {
    clean();
    assert.equal(record("secret-42", [], "100").status, 0);
    await start();
    other = createServer((request, answer) => {
        answer.writeHead(200, { "Content-Type": "text/html" });
        answer.end("<!doctype html><title>Another site</title><body>");
    }).listen(0, "127.0.0.1");
    await once(other, "listening");
});

after(async () => {
    other?.close();
    await stop();
});

// Requests whose real answers would differ. The first two cost more or less time, depending on
// stored data.
const guess = (name) =>
    `api/v1/sql?sql=${encodeURIComponent(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        SELECT count(*) FROM n, sessions WHERE name GLOB '${name}'`)}`;
const SESSION = "api/v1/sessions/1";
const TARGETS = [guess("secret-*"), guess("other-*"), SESSION, "api/v1/sessions/2", "api/v1/events", "metrics", "healthz", "sessions/1", "favicon.svg"];

// Runs in the other site's page. Uses every way in which a page can make the browser request an
// address.
function askInEachWay(addresses) {
    window.read = [];
    const add = (name, attributes) => document.body.append(Object.assign(document.createElement(name), attributes));
    addresses.forEach((address, number) => {
        for (const init of [{ mode: "no-cors", credentials: "include" }, { mode: "cors", credentials: "include" }, { mode: "no-cors", method: "POST", body: "{}" }]) {
            fetch(address, init).then(async (answer) => window.read.push(await answer.text()), () => {});
        }
        add("img", { src: address });
        add("script", { src: address });
        add("link", { rel: "stylesheet", href: address });
        add("iframe", { src: address });
        add("object", { data: address });
        for (const method of ["GET", "POST"]) {
            add("iframe", { name: `${method}${number}` });
            add("form", { action: address, method, target: `${method}${number}` });
            document.body.lastChild.submit();
        }
        const events = new EventSource(address);
        events.onmessage = ({ data }) => window.read.push(data);
        events.onerror = () => events.close();
    });
}

const KINDS = ["EventSource", "Fetch", "Image", "Script", "Stylesheet"]; // names of request kinds in the browser's protocol

// Collects the server's answers to a page: kind, url, status and size of each. The status is also
// seen if the browser hides the answer from the page.
async function collectAnswers(page) {
    const answers = new Map();
    const tell = (id, told) => answers.set(id, { ...answers.get(id), ...told });
    const session = await page.context().newCDPSession(page);
    session.on("Network.requestWillBeSent", ({ requestId, request, type }) => tell(requestId, { kind: type, url: request.url }));
    session.on("Network.responseReceivedExtraInfo", ({ requestId, statusCode, headers }) => tell(requestId, { got: `${statusCode} ${headers["Content-Length"]}` }));
    await session.send("Network.enable");
    page.on("response", (answer) => {
        if (answer.request().resourceType() === "document") {
            tell(answer, { kind: "Document", url: answer.url(), got: `${answer.status()} ${answer.headers()["content-length"]}` });
        }
    });
    return () => [...answers.values()].filter(({ url, got }) => url && got);
}

// Returns the server's answers to a page of `site` in a browser whose user has signed in.
async function answersTo(site) {
    const context = await newContext();
    const own = await context.newPage(); // the user's own tab
    await own.goto(base);
    await own.getByRole("link", { name: "secret-42" }).waitFor();
    const page = await context.newPage();
    await page.goto(`http://${site}:${other.address().port}/`);
    const answers = await collectAnswers(page);
    await page.evaluate(askInEachWay, TARGETS.map((target) => base + target));
    const countOf = (target, wanted) => answers().filter(({ kind, url }) => kind === wanted && url === new URL(target, base).href).length;
    // an iframe, an object and a form load documents
    const missing = (target) => [...KINDS.filter((kind) => countOf(target, kind) === 0), ...(countOf(target, "Document") < 3 ? ["Document"] : [])];
    await comesTo(async () => TARGETS.flatMap((target) => missing(target).map((kind) => `${kind} ${target}`)), []);
    const read = await page.evaluate(() => window.read.join(""));
    await context.close();
    return { read, kinds: [...new Set(answers().map(({ got }) => got))] };
}

test("a page of another site, or of another port, gets one and the same refusal for whatever it asks", async () => {
    for (const site of [OTHER_SITE, "127.0.0.1"]) {
        const { read, kinds } = await answersTo(site);
        assert.equal(read.replaceAll('{"error":"requests of other sites are refused"}', ""), "", site);
        assert.equal(kinds.length, 1, `${site}: ${kinds}`);
        assert.match(kinds[0], /^403 \d/);
    }
});

test("a link of another site opens a page that asks for nothing before its user does", async () => {
    const context = await newContext();
    const page = await context.newPage();
    await page.goto(`http://${OTHER_SITE}:${other.address().port}/`);
    const open = async (target) => {
        const asked = [];
        context.on("request", (request) => asked.push(new URL(request.url()).pathname));
        await page.evaluate((address) => {
            document.body.innerHTML = "<button>open</button>";
            document.body.firstChild.onclick = () => (window.opened = window.open(address));
        }, base + target);
        const [opened] = await Promise.all([context.waitForEvent("page"), page.getByRole("button").click()]);
        await opened.waitForLoadState();
        assert.equal(await page.evaluate(() => window.opened.closed), true, "its opener sees it");
        return { opened, asked };
    };
    const { opened: refused } = await open(SESSION);
    assert.match(await refused.textContent("body"), /requests of other sites are refused/);
    const { opened, asked } = await open("sql?sql=SELECT 41 %2B 1 AS sum");
    const show = opened.getByRole("link", { name: /^Show \/sql/ });
    await show.waitFor();
    assert.deepEqual(asked.filter((path) => path.startsWith("/api")), []);
    await show.click();
    await opened.getByRole("cell", { name: "42", exact: true }).waitFor();
    await context.close();
});

test("a link of another site with a token opens the first page, and computes nothing that the site chose", async () => {
    const context = await newContext();
    const own = await context.newPage(); // this tab has the token and shares it with other tabs
    await own.goto(base);
    await own.getByRole("link", { name: "secret-42" }).waitFor();
    const page = await context.newPage();
    await page.goto(`http://${OTHER_SITE}:${other.address().port}/`);
    const asked = [];
    context.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await page.evaluate((address) => location.assign(address), `${base}sql?sql=SELECT 41 %2B 1 AS sum#token=0`);
    await page.getByRole("link", { name: "secret-42" }).waitFor();
    assert.equal(page.url(), base);
    assert.deepEqual(asked.filter((path) => path.endsWith("/sql")), ["/sql"]); // only the page is loaded; its statement does not run
    await context.close();
});

test("a tab asks for the token, and shares it with other tabs", async () => {
    const context = await newStranger();
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const signIn = async (text) => {
        await page.getByLabel("The token of this server").fill(text);
        await page.getByRole("button", { name: "Sign in" }).click();
    };
    await page.goto(base);
    await page.getByRole("button", { name: "Sign in" }).waitFor();
    assert.equal(await page.getByRole("alert").count(), 0); // no token was given yet
    await signIn("guess");
    await page.getByRole("alert").getByText("The server refused this token").waitFor();
    await comesTo(() => page.getByLabel("The token of this server").inputValue(), ""); // the token was refused, so the page asks again
    await signIn(token);
    await page.getByRole("link", { name: "secret-42" }).waitFor();
    await page.locator(".live.on").waitFor();
    const second = await context.newPage();
    const refused = [];
    second.on("response", (answer) => answer.status() === 401 && refused.push(answer.url()));
    await second.goto(new URL("/sessions/1", base).href);
    await second.getByRole("heading", { name: "secret-42" }).waitFor();
    assert.deepEqual(refused, []);
    await context.close();
});

test("an address with the token opens the page, which removes the token", async () => {
    const context = await newStranger();
    const page = await context.newPage();
    await page.goto(`${base}sessions/1?view=tree#token=${token}`);
    await page.getByRole("heading", { name: "secret-42" }).waitFor();
    assert.equal(page.url(), `${base}sessions/1?view=tree`);
    await context.close();
});

test("other users of this machine need the token in a header", async () => {
    assert.equal((await ask(`/${SESSION}`)).status, 200);
    const basic = { Authorization: `Basic ${Buffer.from(`x:${token}`).toString("base64")}` };
    for (const headers of [{}, basic, { Authorization: "Bearer guess" }]) {
        const answer = await fetch(base + SESSION, { headers });
        assert.equal(answer.status, 401);
        assert.equal(answer.headers.get("www-authenticate"), 'Bearer realm="Sojourn"');
    }
    assert.equal((await fetch(base)).status, 200); // the sign-in page
});
