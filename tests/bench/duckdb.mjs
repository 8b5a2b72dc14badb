// Asks Sojourn and DuckDB about the same calls in one run, with one core each.
//
//   node tests/bench/duckdb.mjs BUILD_FOLDER DATABASE [ROUNDS]
//
// DATABASE is a recording. `sojourn export` writes its calls as Parquet, from which seven columns of
// numbers are loaded into a DuckDB table; the same questions are asked of both, and of DuckDB over the
// Parquet files: best CPU time of ROUNDS (3). The answers must agree. DuckDB comes from npm
// (`ctest -R collector-server.export.packages`); nothing of it is committed.
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [buildArgument, databaseArgument, roundsArgument = "3"] = process.argv.slice(2);
if (!databaseArgument) {
    console.error("usage: node duckdb.mjs BUILD_FOLDER DATABASE [ROUNDS]");
    process.exit(2);
}
const build = resolve(buildArgument);
const database = resolve(databaseArgument);
const rounds = Number(roundsArgument);
const folder = join(build, "duckdb");
mkdirSync(folder, { recursive: true });
const { DuckDBInstance } = createRequire(join(build, "tests", "export_packages", "package.json"))("@duckdb/node-api");

const COLUMNS = [["session_id", "INTEGER"], ["function_id", "INTEGER"], ["call_id", "BIGINT"],
    ["parent_id", "BIGINT"], ["start_ns", "BIGINT"], ["duration_ns", "BIGINT"], ["self_ns", "BIGINT"]];

function cpuMs() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
}

// Sojourn's side of a question, by query_bench: ms of CPU and the number in the last row.
function askSojourn(sql) {
    const text = execFileSync(join(build, "bench", "query_bench"), [database, roundsArgument, sql], { encoding: "utf8" });
    const [ms, answer] = text.trim().split(/\s+/);
    return { ms: Number(ms), answer };
}

async function askDuck(connection, sql) {
    let best = Infinity;
    let answer = "";
    for (let round = 0; round < rounds; round++) {
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

const store = join(folder, "calls.duckdb");
for (const stale of [store, `${store}.wal`]) {
    rmSync(stale, { force: true });
}
console.error("exporting the calls");
const sessions = execFileSync(join(build, "bin", "sojourn"),
    ["sql", "--csv", "SELECT session_id FROM sessions", database], { encoding: "utf8" }).trim().split("\n").slice(1);
const exportBegin = process.hrtime.bigint();
const files = sessions.map((number) => {
    const path = join(folder, `${number}.parquet`);
    execFileSync(join(build, "bin", "sojourn"), ["export", "--format", "parquet", "--session", number, "-o", path, database]);
    return path;
});
const exportMs = Number(process.hrtime.bigint() - exportBegin) / 1e6;
const parquet = `read_parquet([${files.map((path) => `'${path}'`).join(", ")}])`;
const instance = await DuckDBInstance.create(store);
const duck = await instance.connect();
await duck.run("SET threads = 1");
console.error("loading them into DuckDB");
const loadBegin = cpuMs();
await duck.run(`CREATE TABLE calls AS SELECT ${COLUMNS.map(([name, type]) => `${name}::${type} AS ${name}`).join(", ")} FROM ${parquet}`);
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
    `DuckDB's ${megabytes(store)} (${COLUMNS.length} columns), Parquet ${(files.reduce((sum, path) => sum + statSync(path).size, 0) / 1e6).toFixed(1)} MB (16 columns) ` +
    `written at ${(count / exportMs / 1e3).toFixed(1)} M calls/s (elapsed time), loaded at ${(count / loadMs / 1e3).toFixed(1)}`);
console.log("| question | Sojourn ms | DuckDB ms | DuckDB/Sojourn | DuckDB over Parquet ms |");
console.log("|---|---|---|---|---|");
let agree = true;
for (const [what, ours, theirs] of questions) {
    const left = askSojourn(ours);
    const right = await askDuck(duck, theirs);
    agree = agree && left.answer === right.answer;
    const over = await askDuck(duck, theirs.replaceAll("FROM calls", `FROM ${parquet}`).replaceAll("JOIN calls", `JOIN ${parquet}`));
    agree = agree && over.answer === right.answer;
    console.log(`| ${what}${left.answer === right.answer ? "" : ` (${left.answer} and ${right.answer})`} | ` +
        `${left.ms.toFixed(2)} | ${right.ms.toFixed(2)} | ${(right.ms / left.ms).toFixed(2)} | ${over.ms.toFixed(2)} |`);
}
for (const stale of [store, ...files]) {
    rmSync(stale, { force: true });
}
if (!agree) {
    console.error("the answers differ");
    process.exit(1);
}
