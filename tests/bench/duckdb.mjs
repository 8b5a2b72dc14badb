// The same calls, asked of Sojourn and of DuckDB in one run, one core each.
//
//   node tests/bench/duckdb.mjs BUILD_FOLDER DATABASE
//
// DATABASE is a recording. Its calls (seven columns of numbers) are written as CSV by `sojourn sql`,
// loaded into a DuckDB table, and the same questions are asked of both: best CPU time of three. The
// answers must agree. DuckDB comes from npm, into BUILD_FOLDER/duckdb; nothing of it is committed.
import { execFileSync, spawn } from "node:child_process";
import { createWriteStream, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [buildArgument, databaseArgument] = process.argv.slice(2);
if (!databaseArgument) {
    console.error("usage: node duckdb.mjs BUILD_FOLDER DATABASE");
    process.exit(2);
}
const build = resolve(buildArgument);
const database = resolve(databaseArgument);
const folder = join(build, "duckdb");
mkdirSync(folder, { recursive: true });
if (!existsSync(join(folder, "node_modules", "@duckdb", "node-api"))) {
    writeFileSync(join(folder, "package.json"), '{"private": true}\n');
    execFileSync("npm", ["install", "--silent", "@duckdb/node-api"], { cwd: folder, stdio: "inherit" });
}
const { DuckDBInstance } = createRequire(join(folder, "package.json"))("@duckdb/node-api");

const COLUMNS = [["session_id", "INTEGER"], ["function_id", "INTEGER"], ["call_id", "BIGINT"],
    ["parent_id", "BIGINT"], ["start_ns", "BIGINT"], ["duration_ns", "BIGINT"], ["self_ns", "BIGINT"]];

function cpuMs() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
}

// Writes the calls as CSV and gives how many bytes that took.
function exportCalls(csv) {
    const query = `SELECT ${COLUMNS.map(([name]) => name).join(", ")} FROM calls`;
    return new Promise((done, failed) => {
        const child = spawn(join(build, "bin", "sojourn"),
            ["sql", "--csv", "--timeout", "3600", query, database], { stdio: ["ignore", "pipe", "inherit"] });
        child.stdout.pipe(createWriteStream(csv)).on("finish", () => done(statSync(csv).size));
        child.on("exit", (code) => code === 0 || failed(new Error(`sojourn sql ended with ${code}`)));
    });
}

// Sojourn's side of a question, by query_bench: ms of CPU and the number in the last row.
function askSojourn(sql) {
    const text = execFileSync(join(build, "bench", "query_bench"), [database, "3", sql], { encoding: "utf8" });
    const [ms, answer] = text.trim().split(/\s+/);
    return { ms: Number(ms), answer };
}

async function askDuck(connection, sql) {
    let best = Infinity;
    let answer = "";
    for (let round = 0; round < 3; round++) {
        const begin = cpuMs();
        const rows = (await connection.runAndReadAll(sql)).getRows();
        best = Math.min(best, cpuMs() - begin);
        answer = String(rows[rows.length - 1][0]);
    }
    return { ms: best, answer };
}

function ask(question, part) {
    return askSojourn(`SELECT ${question} FROM calls ${part}`);
}

const csv = join(folder, "calls.csv");
const store = join(folder, "calls.duckdb");
for (const stale of [csv, store, `${store}.wal`]) {
    rmSync(stale, { force: true });
}
console.error("exporting the calls");
await exportCalls(csv);
const instance = await DuckDBInstance.create(store);
const duck = await instance.connect();
await duck.run("SET threads = 1");
console.error("loading them into DuckDB");
const loadBegin = cpuMs();
await duck.run(`CREATE TABLE calls AS SELECT * FROM read_csv('${csv}', header = true, columns = ` +
    `{${COLUMNS.map(([name, type]) => `'${name}': '${type}'`).join(", ")}})`);
await duck.run("CHECKPOINT");
const loadMs = cpuMs() - loadBegin;
const count = Number((await duck.runAndReadAll("SELECT count(*) FROM calls")).getRows()[0][0]);
const from = Number(ask("start_ns", `WHERE call_id = (SELECT stream_id << 38 | calls / 2 FROM streams
    ORDER BY calls DESC LIMIT 1)`).answer);
const inWindow = `WHERE start_ns BETWEEN ${from} AND ${from + 9999999}`;
const frequent = `WHERE function_id = ${askSojourn(`SELECT function_id FROM function_stats
    ORDER BY calls DESC LIMIT 1 OFFSET 20`).answer}`;
const middle = askSojourn("SELECT stream_id << 38 | calls / 2 FROM streams ORDER BY calls DESC LIMIT 1").answer;
const million = `call_id BETWEEN ${middle} AND ${middle} + 999999`;
const session = askSojourn("SELECT min(session_id) FROM sessions").answer;

const LONGEST = "SELECT sum(duration_ns) FROM (SELECT duration_ns FROM calls ORDER BY duration_ns DESC LIMIT 20)";
const TWO_KEYS = "SELECT sum(n) FROM (SELECT session_id, function_id, count(*) AS n, sum(duration_ns), " +
    "min(duration_ns), max(duration_ns), sum(self_ns)";
const JOINED = "SELECT sum(p.duration_ns) FROM calls AS c JOIN calls AS p ON p.call_id = c.parent_id";

// what is asked; Sojourn's SQL; DuckDB's
const questions = [
    ["count(*)", "SELECT count(*) FROM calls", "SELECT count(*) FROM calls"],
    ["GROUP BY function_id: count, sum; plain SQL",
        "SELECT sum(d) FROM (SELECT function_id, count(*), sum(duration_ns) AS d FROM calls GROUP BY function_id)",
        "SELECT sum(d) FROM (SELECT function_id, count(*), sum(duration_ns) AS d FROM calls GROUP BY function_id)"],
    ["the same of Sojourn's call_aggregate, min, max and self time besides",
        `SELECT sum(calls) FROM (SELECT function_id, calls, duration_ns, min_ns, max_ns FROM call_aggregate(${session}))`,
        "SELECT sum(n) FROM (SELECT function_id, count(*) AS n, sum(duration_ns), min(duration_ns), " +
        "max(duration_ns) FROM calls GROUP BY function_id)"],
    ["the same of Sojourn's stored sums", `SELECT sum(calls) FROM function_stats WHERE session_id = ${session}`,
        "SELECT sum(n) FROM (SELECT function_id, count(*) AS n, sum(duration_ns) FROM calls GROUP BY function_id)"],
    ["duration_ns > 100000", "SELECT count(*) FROM calls WHERE duration_ns > 100000",
        "SELECT count(*) FROM calls WHERE duration_ns > 100000"],
    ["duration_ns > 1000000", "SELECT count(*) FROM calls WHERE duration_ns > 1000000",
        "SELECT count(*) FROM calls WHERE duration_ns > 1000000"],
    ["the 20 longest", LONGEST, LONGEST],
    ["GROUP BY session_id, function_id, five aggregates, plain SQL", `${TWO_KEYS} FROM calls GROUP BY 1, 2)`,
        `${TWO_KEYS} FROM calls GROUP BY 1, 2)`],
    ["the same by call_groups", "SELECT sum(calls) FROM call_groups('session,function')",
        `${TWO_KEYS} FROM calls GROUP BY 1, 2)`],
    ["join to the parent of a million calls", `${JOINED} WHERE c.${million}`, `${JOINED} WHERE c.${million}`],
    ["one function", `SELECT count(*) FROM calls ${frequent}`, `SELECT count(*) FROM calls ${frequent}`],
    ["10 ms window by call_aggregate",
        `SELECT sum(calls + open) FROM call_aggregate(${session}, ${from}, ${from + 10000000})`,
        `SELECT sum(n) FROM (SELECT function_id, count(*) AS n FROM calls ${inWindow} GROUP BY function_id)`],
];

const megabytes = (path) => `${(statSync(path).size / 1e6).toFixed(1)} MB`;
console.log(`${(count / 1e6).toFixed(1)} M calls; Sojourn's file ${megabytes(database)} (everything), ` +
    `DuckDB's ${megabytes(store)} (${COLUMNS.length} columns), loaded from CSV at ${(count / loadMs / 1e3).toFixed(1)} M calls/s`);
console.log("| question | Sojourn ms | M calls/s | DuckDB ms | M calls/s | DuckDB/Sojourn |");
console.log("|---|---|---|---|---|---|");
let agree = true;
for (const [what, ours, theirs] of questions) {
    const left = askSojourn(ours);
    const right = await askDuck(duck, theirs);
    agree = agree && left.answer === right.answer;
    const rate = (ms) => (count / ms / 1e3).toFixed(1);
    console.log(`| ${what}${left.answer === right.answer ? "" : ` (${left.answer} and ${right.answer})`} | ` +
        `${left.ms.toFixed(2)} | ${rate(left.ms)} | ${right.ms.toFixed(2)} | ${rate(right.ms)} | ` +
        `${(right.ms / left.ms).toFixed(2)} |`);
}
for (const stale of [csv, store]) {
    rmSync(stale, { force: true });
}
if (!agree) {
    console.error("the answers differ");
    process.exit(1);
}
