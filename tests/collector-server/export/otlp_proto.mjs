// Decodes an otlp-proto export with the messages that OpenTelemetry for JavaScript sends to collectors. The spans equal
// those of the otlp export of the same calls, one by one, and SQL's calls in number and time.
//
//   node otlp_proto.mjs BUILD_FOLDER
//
// The messages come from npm, into BUILD_FOLDER/tests/export_packages (package-lock.json here).
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const build = resolve(process.argv[2]);
const require = createRequire(join(build, "tests", "export_packages", "package.json"));
const messages = require("@opentelemetry/otlp-proto-exporter-base/build/src/generated/root.js");
const Request = messages.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;
const sojourn = join(build, "bin", "sojourn");
const folder = mkdtempSync(join(tmpdir(), "sojourn-otlp-"));
const database = join(folder, "calls.db");
const environment = { ...process.env, XDG_CACHE_HOME: join(folder, "cache"), XDG_STATE_HOME: join(folder, "state") };
const OPTIONS = { maxBuffer: 1 << 30, env: environment, encoding: "utf8" };
const run = (...words) => execFileSync(sojourn, words, OPTIONS);

// Names the spans as protobuf's JSON does: bytes of ids in hexadecimal digits, large numbers as texts.
function spansOf(groups) {
    return groups.flatMap(({ resource, scopeSpans }) => scopeSpans.flatMap(({ scope, spans }) => spans.map((span) => ({ resource, scope, ...span }))));
}

const hex = (bytes) => Buffer.from(bytes, "base64").toString("hex");

function decoded(file) {
    const request = Request.toObject(Request.decode(readFileSync(file)), { longs: String, bytes: String });
    return spansOf(request.resourceSpans).map((span) => ({ ...span, traceId: hex(span.traceId), spanId: hex(span.spanId),
        ...(span.parentSpanId ? { parentSpanId: hex(span.parentSpanId) } : {}) }));
}

try {
    run("record", "--quiet", "-o", database, "--", join(build, "tests/samples/gcc-O2/s_throw"));
    const whole = spawnSync(sojourn, ["export", "--format", "otlp-proto", "-o", join(folder, "whole.otlp.pb"), database], OPTIONS);
    assert.equal(whole.status, 1);
    assert.match(whole.stderr, /otlp-proto has a span for each call: choose a part/);
    run("export", "--depth", "9", "-o", join(folder, "part.otlp.pb"), database);
    run("export", "--depth", "9", "-o", join(folder, "part.otlp.json"), database);
    const lines = readFileSync(join(folder, "part.otlp.json"), "utf8").trimEnd().split("\n");
    const wanted = spansOf(lines.flatMap((line) => JSON.parse(line).resourceSpans));
    const spans = decoded(join(folder, "part.otlp.pb"));
    const [{ calls, ns }] = JSON.parse(run("sql", "--json", "SELECT count(*) AS calls, sum(duration_ns) AS ns FROM calls WHERE depth < 10", database)).rows;
    assert.ok(spans.length > 256); // more than one group
    assert.equal(spans.length, calls);
    assert.equal(spans.reduce((sum, span) => sum + BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano), 0n), BigInt(ns));
    assert.deepEqual(spans, wanted);
} finally {
    rmSync(folder, { recursive: true, force: true });
}
