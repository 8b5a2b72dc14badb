// The Arrow and Parquet files of `sojourn export` equal the rows of SQL. apache-arrow and DuckDB read
// the files. The calls returned, threw, or were ended by the end of their program. They come from
// several streams, and are more than one batch.
//
//   node columnar.mjs BUILD_FOLDER
//
// The readers come from npm, into BUILD_FOLDER/tests/export_packages (package-lock.json here).
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const build = resolve(process.argv[2]);
const require = createRequire(join(build, "tests", "export_packages", "package.json"));
const { tableFromIPC } = require("apache-arrow");
const { DuckDBInstance } = require("@duckdb/node-api");
const sojourn = join(build, "bin", "sojourn");
const folder = mkdtempSync(join(tmpdir(), "sojourn-columnar-"));
const database = join(folder, "calls.db");
const environment = { ...process.env, XDG_CACHE_HOME: join(folder, "cache"), XDG_STATE_HOME: join(folder, "state") };
const LIMIT = { maxBuffer: 1 << 30, env: environment };
const COLUMNS = ["call_id", "session_id", "stream_id", "thread_id", "function_id", "parent_id", "depth",
    "start_ns", "end_ns", "duration_ns", "self_ns", "ending", "flags"];
const BATCH_ROWS = 131072;

function record(...command) {
    spawnSync(sojourn, ["record", "--quiet", "-o", database, "--", ...command], { env: environment, stdio: "ignore" });
}

function sql(query) {
    const text = execFileSync(sojourn, ["sql", "--csv", "--limit", "10000000", query, database],
        { ...LIMIT, encoding: "utf8" });
    return text.trimEnd().split("\n").slice(1).map((line) => line.split(","));
}

function exported(format, session) {
    const path = join(folder, `${session}.${format}`);
    execFileSync(sojourn, ["export", "--format", format, "--session", session, "-o", path, database], LIMIT);
    const piped = execFileSync(sojourn, ["export", "--format", format, "--session", session, database], LIMIT);
    assert.ok(piped.equals(readFileSync(path)), `${format}: a pipe gets the same`);
    return path;
}

// A column's value as SQL writes it.
function asText(value) {
    return value === null || value === undefined ? "" : String(value);
}

function same(rows, agrees, what) {
    const at = rows.findIndex((row, number) => !agrees(row, number));
    assert.equal(at, -1, `${what} of row ${at}: ${rows[at]}`);
}

function checkArrow(session, rows, names, started) {
    const table = tableFromIPC(readFileSync(exported("arrow", session)));
    assert.equal(table.numRows, rows.length);
    assert.equal(table.batches.length, Math.ceil(rows.length / BATCH_ROWS));
    assert.deepEqual(table.schema.fields.map((field) => field.name), [...COLUMNS, "function", "start_time", "end_time"]);
    assert.equal(String(table.schema.fields[14].type), "Timestamp<NANOSECOND, UTC>");
    assert.equal(String(table.schema.fields[13].type), "Dictionary<Int32, Utf8>");
    COLUMNS.forEach((name, column) => {
        const vector = table.getChild(name);
        same(rows, (row, at) => asText(vector.get(at)) === row[column], name);
    });
    const functions = table.getChild("function");
    same(rows, (row, at) => functions.get(at) === (names.get(row[4]) ?? null), "function");
    const starts = table.getChild("start_time").toArray();
    same(rows, (row, at) => starts[at] === started + BigInt(row[7]), "start_time");
    const ends = table.getChild("end_time");
    same(rows, (row, at) => (ends.get(at) === null) === (row[8] === ""), "end_time");
}

// DuckDB compares, both ways: its table of the CSV, and the Parquet file.
async function checkParquet(duck, session, csv, namesCsv, started) {
    const path = exported("parquet", session);
    const numbers = COLUMNS.map((name) => `'${name}': '${name === "ending" ? "VARCHAR" : "BIGINT"}'`).join(", ");
    const expected = `SELECT c.*, n.name, ${started} + start_ns, ${started} + end_ns FROM read_csv('${csv}', header = true,
        columns = {${numbers}}) AS c LEFT JOIN read_csv('${namesCsv}', header = true,
        columns = {'function_id': 'BIGINT', 'name': 'VARCHAR'}) AS n USING (function_id)`;
    // DuckDB's times with a zone have microseconds
    const told = `SELECT * REPLACE (epoch_us(start_time) AS start_time, epoch_us(end_time) AS end_time) FROM '${path}'`;
    const wanted = `SELECT * REPLACE (start_time // 1000 AS start_time, end_time // 1000 AS end_time) FROM (${expected}) AS
        t(${COLUMNS.join(", ")}, function, start_time, end_time)`;
    for (const [one, other] of [[told, wanted], [wanted, told]]) {
        const different = await duck.runAndReadAll(`SELECT * FROM (${one} EXCEPT ALL ${other}) LIMIT 3`);
        assert.deepEqual(different.getRows(), [], "rows that only one of both has");
    }
    // the ranges of the footer are true: they leave no row out
    const [[least, count]] = (await duck.runAndReadAll(
        `SELECT min(duration_ns), count(*) FROM '${path}' WHERE duration_ns >= 0 AND depth >= 0`)).getRows();
    const [[same]] = (await duck.runAndReadAll(
        `SELECT count(*) FROM (${expected}) WHERE duration_ns >= 0`)).getRows();
    assert.ok(least === null || least >= 0n);
    assert.equal(count, same);
    if (same < BATCH_ROWS) { // the texts of many calls take long to read
        await checkSums(duck, session, path);
        await checkLines(duck, session, path, started);
    }
}

// The plain tables reach DuckDB as CSV: a database's own sums are those that DuckDB makes of each export.
async function checkSums(duck, session, path) {
    const csv = join(folder, "sums.csv");
    writeFileSync(csv, execFileSync(sojourn, ["sql", "--csv", "--limit", "10000000",
        `SELECT f.name, sum(s.calls) AS calls, sum(s.self_ns) AS self_ns, sum(s.total_ns) AS total_ns FROM function_stats AS s
         JOIN functions AS f USING (function_id) WHERE s.session_id = ${session} AND s.calls > 0 GROUP BY f.name`, database], LIMIT));
    const sums = `read_csv('${csv}', header = true, columns = {'name': 'VARCHAR', 'calls': 'BIGINT', 'self_ns': 'BIGINT', 'total_ns': 'BIGINT'})`;
    // A recursive call is not counted on top of the call that it lies in.
    const calls = `SELECT function AS name, count(duration_ns) AS calls, sum(self_ns) AS self_ns, sum(CASE WHEN is_inner THEN 0
        ELSE duration_ns END) AS total_ns FROM (SELECT *, coalesce(max(end_ns) OVER (PARTITION BY stream_id, function_id ORDER BY call_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), -1) > start_ns AS is_inner FROM '${path}') GROUP BY 1 HAVING calls > 0`;
    const report = `SELECT trim(line[211:]) AS name, sum(trim(line[1:14])::BIGINT) AS calls, sum(trim(line[31:44])::BIGINT) AS self_ns,
        sum(trim(line[16:29])::BIGINT) AS total_ns FROM ${linesOf(exported("report.txt", session))} WHERE number > 9 GROUP BY 1 HAVING calls > 0`;
    // of single calls each is rounded to whole ns, of a sum only the sum
    for (const [what, made, rounded_ns] of [["Parquet", calls, 1], ["report.txt", report, 0]]) {
        const different = await duck.runAndReadAll(`SELECT * FROM ${sums} AS s FULL JOIN (${made}) AS m USING (name) WHERE s.calls IS DISTINCT
            FROM m.calls OR abs(s.self_ns - m.self_ns) > ${rounded_ns} * s.calls OR abs(s.total_ns - m.total_ns) > ${rounded_ns} * s.calls LIMIT 3`);
        assert.deepEqual(different.getRows(), [], `sums of ${what}`);
    }
}

// The lines of a text, numbered from 1, as DuckDB reads them.
const linesOf = (path) => `(SELECT line, row_number() OVER () AS number FROM read_csv('${path}', header = false, delim = '\x01',
    quote = '', escape = '', columns = {'line': 'VARCHAR'}))`;

// function.txt has an entry for each call and an exit for each that ended, at its time and by its name.
async function checkLines(duck, session, path, started) {
    const lines = `SELECT regexp_extract(line, '^\\d+\\[(\\d+),(\\d+)\\](enter|leave):(.*)$', ['s', 'ns', 'what', 'text']) AS part
        FROM ${linesOf(exported("function.txt", session))}`;
    const written = `SELECT part.s::BIGINT * 1000000000 + part.ns::BIGINT AS at, part.what AS what, regexp_replace(part.text,
        CASE part.what WHEN 'enter' THEN '( tid:\\d+)?( ~)?$' ELSE 'ret:[-!?]( tid:\\d+)?( ~)?$' END, '') AS name FROM (${lines})`;
    const wanted = `SELECT ${started} + start_ns AS at, 'enter' AS what, function AS name FROM '${path}' UNION ALL
        SELECT ${started} + end_ns, 'leave', function FROM '${path}' WHERE ending <> 'open'`;
    for (const [one, other] of [[written, wanted], [wanted, written]]) {
        const different = await duck.runAndReadAll(`SELECT * FROM ((${one}) EXCEPT ALL (${other})) LIMIT 3`);
        assert.deepEqual(different.getRows(), [], "lines of function.txt that only one of both has");
    }
}

async function main() {
    const samples = join(build, "tests", "samples", "gcc-O2");
    record("perl", "-e", "sub f { my $n = shift; $n < 2 ? 1 : f($n - 1) + f($n - 2) } f(18);");
    record(join(samples, "s_throw"));
    record(join(samples, "s_coroutine"));
    record("perl", "-e", "kill 9, $$");
    const duck = await (await DuckDBInstance.create(":memory:")).connect();
    const seen = { open: 0, unwound: 0, batches: 0, streams: 0 };
    const sessions = sql("SELECT session_id, started_realtime_ns FROM sessions ORDER BY session_id");
    assert.equal(sessions.length, 4);
    for (const [session, started] of sessions) {
        const rows = sql(`SELECT ${COLUMNS.join(", ")} FROM calls WHERE session_id = ${session} ORDER BY call_id`);
        const names = new Map(JSON.parse(execFileSync(sojourn, ["sql", "--json", "--limit", "10000000",
            "SELECT function_id, name FROM functions", database], { ...LIMIT, encoding: "utf8" })).rows.map(
            (row) => [String(row.function_id), row.name]));
        const csv = join(folder, "rows.csv");
        const namesCsv = join(folder, "names.csv");
        writeFileSync(csv, [COLUMNS.join(","), ...rows.map((row) => row.join(","))].join("\n"));
        writeFileSync(namesCsv, ["function_id,name", ...[...names].map(
            ([id, name]) => `${id},"${name.replaceAll('"', '""')}"`)].join("\n"));
        checkArrow(session, rows, names, BigInt(started));
        await checkParquet(duck, session, csv, namesCsv, started);
        seen.open += rows.filter((row) => row[11] === "open").length;
        seen.unwound += rows.filter((row) => row[11] === "unwound").length;
        seen.batches = Math.max(seen.batches, Math.ceil(rows.length / BATCH_ROWS));
        seen.streams = Math.max(seen.streams, new Set(rows.map((row) => row[2])).size);
    }
    assert.ok(seen.open > 0 && seen.unwound > 0 && seen.batches > 1 && seen.streams > 1, JSON.stringify(seen));
    console.log(JSON.stringify(seen));
}

try {
    await main();
} finally {
    rmSync(folder, { recursive: true, force: true });
}
