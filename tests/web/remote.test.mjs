// The dashboard and the API on other interfaces than loopback: by TLS, and only with the
// collector's token. The server listens on all addresses, and the test connects by loopback.
// Environment: SJ_BIN (folder of the built programs), SJ_WEB_PACKAGES, SJ_WEB_OUTPUT, SJ_CHROMIUM.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import https from "node:https";
import net from "node:net";
import path from "node:path";
import { after, before, test } from "node:test";
import tls from "node:tls";

const environment = (name) => {
    const value = process.env[name];
    assert.ok(value, `${name} is not set: run these tests with ctest -L web`);
    return value;
};
const bin = environment("SJ_BIN");
const output = path.join(environment("SJ_WEB_OUTPUT"), "remote");
const require = createRequire(path.join(environment("SJ_WEB_PACKAGES"), "package.json"));
const database = path.join(output, "lab.db");

let server;
let log = "";
let port;
let token;
let certificate;

before(async () => {
    rmSync(output, { recursive: true, force: true });
    mkdirSync(output, { recursive: true });
    server = spawn(path.join(bin, "sojournd"), [
        ...["--database", database, "--listen", `ipc://${output}/s.ipc`, "--http", "0.0.0.0:0"],
    ]);
    const serving = new Promise((resolve, reject) => {
        server.stderr.on("data", (text) => {
            log += text;
            const place = /dashboard at https:\/\/0\.0\.0\.0:(\d+)\//.exec(log);
            if (place) {
                resolve(Number(place[1]));
            }
        });
        server.on("exit", () => reject(new Error(`sojournd ended: ${log}`)));
    });
    port = await serving;
    token = readFileSync(`${database}.token`, "utf-8").trim();
    certificate = readFileSync(`${database}.tls/certificate.pem`, "utf-8");
});

after(async () => {
    const ended = new Promise((resolve) => server.on("exit", resolve));
    server.kill("SIGTERM");
    assert.equal(await ended, 0, log);
});

const basic = (password) => ({
    authorization: `Basic ${Buffer.from(`anybody:${password}`).toString("base64")}`,
});
const bearer = (text) => ({ authorization: `Bearer ${text}` });

// Connects only to a server with the collector's own certificate, under any host name.
function request(target, headers = {}, options = {}) {
    return new Promise((resolve, reject) => {
        const asked = https.request(
            {
                host: "127.0.0.1",
                port,
                path: target,
                headers,
                ca: certificate,
                checkServerIdentity: () => undefined,
                agent: false,
                ...options,
            },
            (answer) => {
                let body = "";
                answer.setEncoding("utf-8");
                answer.on("data", (text) => {
                    body += text;
                    if (options.until && body.includes(options.until)) {
                        asked.destroy();
                        resolve({ status: answer.statusCode, headers: answer.headers, body });
                    }
                });
                answer.on("end", () =>
                    resolve({ status: answer.statusCode, headers: answer.headers, body }),
                );
            },
        );
        asked.on("error", reject);
        asked.end(options.body);
    });
}

test("requests without the token are refused with an explanation", async () => {
    for (const target of ["/", "/api/v1/sessions", "/api/v1/health", "/metrics", "/nowhere"]) {
        for (const headers of [{}, bearer("guess"), basic("guess"), bearer(""), basic("")]) {
            const answer = await request(target, headers);
            assert.equal(answer.status, 401, `${target} ${JSON.stringify(headers)}`);
            assert.match(answer.headers["www-authenticate"], /^Basic realm="Sojourn"/);
            assert.match(JSON.parse(answer.body).error, /token of the collector/);
        }
    }
});

test("a supervisor gets the health without the token, and nothing else", async () => {
    for (const headers of [{}, bearer("guess"), bearer(token)]) {
        const answer = await request("/healthz", headers);
        assert.equal(answer.status, 200);
        assert.deepEqual(JSON.parse(answer.body), { status: "ok" });
    }
    const post = { method: "POST", body: "{}" };
    assert.equal((await request("/healthz", { "content-length": "2" }, post)).status, 401);
});

test("the token opens everything that can be read, as password or as bearer", async () => {
    for (const headers of [bearer(token), basic(token)]) {
        assert.equal((await request("/healthz", headers)).status, 200);
        assert.equal((await request("/api/v1/sessions", headers)).status, 200);
        assert.match((await request("/metrics", headers)).body, /^sojourn_frames_total 0$/m);
        const events = await request("/api/v1/events", headers, { until: "event: hello" });
        assert.equal(events.status, 200);
    }
});

test("credentials that a browser sends by itself change nothing, and other sites are refused", async () => {
    const post = { method: "POST", body: "{}" };
    const json = { "content-type": "application/json", "content-length": "2" };
    const commands = "/api/v1/commands";
    assert.equal((await request(commands, { ...json, ...basic(token) }, post)).status, 401);
    const answer = await request(commands, { ...json, ...bearer(token) }, post);
    assert.equal(answer.status, 400, answer.body);
    const own = { origin: `https://127.0.0.1:${port}` };
    assert.equal((await request("/", { ...basic(token), ...own })).status, 200);
    for (const origin of [`http://127.0.0.1:${port}`, "https://other.example", "null"]) {
        assert.equal((await request("/", { ...basic(token), origin })).status, 403, origin);
    }
    const site = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" };
    assert.equal((await request("/", { ...basic(token), ...site })).status, 403);
});

test("TLS 1.1 and plain HTTP get no answer", async () => {
    const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" };
    await assert.rejects(request("/", bearer(token), old), /alert|version|protocol|reset|disconnected/i);
    for (const version of ["TLSv1.2", "TLSv1.3"]) {
        const only = { minVersion: version, maxVersion: version };
        assert.equal((await request("/healthz", bearer(token), only)).status, 200, version);
    }
    const said = await new Promise((resolve) => {
        let bytes = "";
        const plain = net.connect(port, "127.0.0.1", () => plain.write("GET / HTTP/1.1\r\n\r\n"));
        plain.on("data", (data) => (bytes += data.toString("latin1")));
        plain.on("error", () => resolve(bytes));
        plain.on("close", () => resolve(bytes));
    });
    assert.doesNotMatch(said, /HTTP/);
});

test("peers that begin a handshake and stop do not keep others out for long", async () => {
    const silent = [];
    for (let i = 0; i < 150; i++) {
        const peer = net.connect(port, "127.0.0.1", () => peer.write("\x16\x03\x01"));
        peer.on("error", () => undefined);
        silent.push(peer);
    }
    const deadline = Date.now() + 60000;
    let answer;
    while (answer?.status !== 200) {
        assert.ok(Date.now() < deadline, "no connection succeeds");
        answer = await request("/healthz", bearer(token), { timeout: 5000 }).catch(() => undefined);
        await new Promise((resolve) => setTimeout(resolve, 200));
    }
    silent.forEach((peer) => peer.destroy());
});

// A reader sees who is signed in, and no SQL. The page says which role an import needs.
async function showsRole(browser, base) {
    const made = spawnSync(path.join(bin, "sojourn"), ["token", "add", "anna", "--role", "reader", "-d", database]);
    assert.equal(made.status, 0, made.stderr.toString());
    const reader = await browser.newContext({
        ignoreHTTPSErrors: true,
        httpCredentials: { username: "anna", password: made.stdout.toString().trim() },
    });
    const page = await reader.newPage();
    page.setDefaultTimeout(60000);
    await page.goto(`${base}#token=${made.stdout.toString().trim()}`);
    await page.locator(".who", { hasText: "anna (reader)" }).waitFor();
    assert.equal(await page.getByRole("link", { name: "SQL" }).count(), 0);
    await page.getByText("Import", { exact: true }).click();
    await page.getByText("needs the role admin or a higher one; token:anna has the role reader").waitFor();
}

test("a browser asks for the password and shows the dashboard", async () => {
    const { chromium } = require("playwright-core");
    const browser = await chromium.launch({
        executablePath: process.env.SJ_CHROMIUM || "/usr/bin/chromium-headless-shell",
        args: ["--no-sandbox", "--disable-gpu"],
    });
    try {
        const base = `https://127.0.0.1:${port}/`;
        const stranger = await browser.newContext({ ignoreHTTPSErrors: true });
        const refused = await (await stranger.newPage()).goto(base).catch((error) => error);
        assert.ok(refused instanceof Error || refused.status() === 401, String(refused));
        const known = await browser.newContext({
            ignoreHTTPSErrors: true,
            httpCredentials: { username: "anybody", password: token },
        });
        const page = await known.newPage();
        page.setDefaultTimeout(60000);
        assert.equal((await page.goto(base)).status(), 200);
        await page.locator(".live.on").waitFor();
        await page.getByText("Nothing recorded yet").waitFor();
        await page.locator(".who", { hasText: "admin" }).waitFor();
        await page.getByRole("link", { name: "SQL" }).waitFor();
        await showsRole(browser, base);
    } finally {
        await browser.close();
    }
});

test("the token is in no log, and names for --http are refused", () => {
    assert.ok(!log.includes(token), log);
    const done = spawnSync(path.join(bin, "sojournd"), [
        ...["--database", database, "--listen", `ipc://${output}/t.ipc`, "--http", "nowhere:1"],
    ]);
    assert.equal(done.status, 1);
    assert.match(done.stderr.toString(), /'nowhere' is not a numeric IPv4 or IPv6 address/);
});

test("the certificate that is shown is the collector's own", async () => {
    const shown = await new Promise((resolve, reject) => {
        const peer = tls.connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
            resolve(peer.getPeerX509Certificate().toString());
            peer.destroy();
        });
        peer.on("error", reject);
    });
    assert.equal(shown.replace(/\s/g, ""), certificate.replace(/\s/g, ""));
});
