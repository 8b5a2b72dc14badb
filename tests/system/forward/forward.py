#!/usr/bin/env python3
"""A lab's sums in ClickHouse: every row once, whoever is killed; what was changed is replaced, what was
removed is gone; whoever is away, or was changed by hand, is named, and the lab works on.

forward.py BUILD_FOLDER [SEED]: some kills, 200 with SJ_LONG=1.
"""
import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from clickhouse_node import Node
from fleet_testing import free_port
from sojourn_testing import PATIENCE_S, check, main, wait_for

KILLS = 200 if os.environ.get("SJ_LONG") else 6
HOSTILE = "'); DROP TABLE sessions; --\\ \t\n\\N \u2603"
# Of each table: the sums that both engines must agree on to the last row.
SUMS = {
    "sessions": ("count(*), sum(stored_calls), sum(stored_events), sum(stored_bytes)", "sessions"),
    "function_stats": ("count(*), sum(calls), sum(total_ns), sum(self_ns), sum(max_ns)", "function_stats"),
    "functions": ("count(*)", "function_stats"),
    "call_edges": ("count(*), sum(calls), sum(total_ns), sum(self_ns)", "call_edges"),
    "call_paths": ("count(*), sum(calls), sum(total_ns), sum(self_ns), sum(depth)", "call_paths"),
    "slow_calls": ("count(*), sum(duration_ns), sum(place)", "slow_calls"),
    "marks": ("count(*), sum(at_ns), sum(is_end)", "marks"),
    "coverage": ("count(*)", "session_modules"),
    "gaps": ("count(*), sum(calls)", "gaps"),
    "commands": ("count(*), sum(command_id), sum(timeout_ms), sum(length(state))", "commands"),
}


class Lab:
    """A database with sessions of its own."""

    def __init__(self, sojourn, name, ends):
        self.sojourn, self.database, self.ends = sojourn, sojourn.path(name), ends

    def record(self, how="return", *options):
        done, _ = self.sojourn.record([self.ends, how], self.database, options)
        check(os.path.exists(self.database), f"record: {done.stderr}")

    def command(self, who="somebody"):
        """One more in the audit, as somebody who drives devices leaves it."""
        with sqlite3.connect(self.database, timeout=PATIENCE_S) as database:
            database.execute(
                "INSERT INTO commands(device_id, kind, arguments, state, requested_by, timeout_ms, created_realtime_ns, result) "
                "SELECT min(device_id), 'ping', ?, 'queued', ?, 1000 + coalesce((SELECT max(command_id) FROM commands), 0), "
                "1700000000000000000, ? FROM devices", ("{}", who, HOSTILE))

    def forward(self, *words, code=0, says=""):
        done = self.sojourn.run(["forward", "--database", self.database, *words], capture_output=True, text=True)
        check(done.returncode == code and says in done.stdout + done.stderr,
              f"forward {words}: {done.returncode} {done.stdout} {done.stderr}")
        return done.stdout

    def sums(self, table):
        what, local = SUMS[table]
        with sqlite3.connect(self.database) as database:
            return [number or 0 for number in database.execute(f"SELECT {what} FROM {local}").fetchone()]


def check_equal(node, labs):
    for table, (what, _) in SUMS.items():
        there = [int(number) if number != "\\N" else 0 for number in
                 node.rows(f"SELECT {what.replace('count(*)', 'count()')} FROM {table}")[0]]
        here = [sum(numbers) for numbers in zip(*(lab.sums(table) for lab in labs))]
        check(there == here, f"{table}: {there} in the cluster, {here} in the labs")
    for lab in labs:
        with sqlite3.connect(lab.database) as database:
            known = {row[0] for row in database.execute("SELECT lower(hex(uuid)) FROM sessions")}
        uuid = sqlite3.connect(lab.database).execute("SELECT lower(hex(uuid)) FROM lab").fetchone()[0]
        check({row[0] for row in node.rows(f"SELECT session FROM sessions WHERE lab = '{uuid}'")} == known,
              "not the sessions of the lab")


def refusals(sojourn, node, lab):
    """Each is named, and nothing is lost by it."""
    away = f"http://127.0.0.1:{free_port()}"
    lab.forward("send", away, code=1, says="is not reached")
    lab.forward("send", "clickhouse.example", code=1, says="give http://HOST")
    lab.forward("send", node.url, code=1, says="does not let default in")
    lab.forward("--cluster-password", sojourn.path("nowhere"), "send", node.url, code=1, says="cannot read the password")


def sent_once(node, lab, other, words):
    lab.forward(*words, "send", node.url, code=3, says="sojourn forward init")
    lab.forward(*words, "init", node.url)
    lab.forward(*words, "init", node.url)
    lab.forward(*words, "send", node.url, says="3 sessions were sent")
    check_equal(node, [lab])
    lab.forward(*words, "send", node.url, says="0 sessions were sent")
    questions_agree(lab.sojourn, node, lab, words)
    other.forward(*words, "send", node.url)
    check_equal(node, [lab, other])
    check(node.rows("SELECT count() FROM sessions WHERE name LIKE '%DROP TABLE%'") == [["1"]],
          "a name was changed on its way")
    lab.forward(*words, "status", node.url, says="0 owed")


def histograms_merge(node):
    """The bins of a path hold all of its calls that have ended, and add up in SQL."""
    rows = node.rows("SELECT sum(arraySum(counts)), sum(calls) FROM function_stats WHERE unwound = 0")
    check(rows[0][0] == rows[0][1], f"calls in histograms: {rows}")
    check(int(node.rows("SELECT length(tupleElement(sumMap(bins, counts), 1)) FROM function_stats")[0][0]) > 0, "no bins")


def answers(sojourn, *words, code=0, says=""):
    done = sojourn.run(["sql", "--json", *words], capture_output=True, text=True)
    check(done.returncode == code and says in done.stderr, f"sql {words}: {done.returncode} {done.stderr}")
    return json.loads(done.stdout) if code == 0 else None


def rounded(rows):
    """Rows in any order; floating-point numbers differ in their last digits."""
    return sorted(json.dumps({name: f"{value:.9g}" if isinstance(value, float) else value
                              for name, value in row.items()}, sort_keys=True) for row in rows)


MAY_BE_EMPTY = ("loss", "recursion")  # of these programs


def questions_agree(sojourn, node, lab, words):
    """Every question that both engines have gives the same rows of the same lab."""
    names = {line.split()[0] for line in sojourn.run(["sql", "--cluster", node.url, "--queries"], capture_output=True,
                                                     text=True).stdout.splitlines()}
    check(len(names) >= 9, f"questions for a cluster: {names}")
    uuid = sojourn.sql(lab.database, "SELECT lower(hex(uuid)) AS uuid FROM sessions WHERE session_id = 2")[0]["uuid"]
    for name in sorted(names):
        for parameters in ([], ["--param", "function=ends_*", "--param", "limit=7"]):
            here = answers(sojourn, "--query", name, "--session", "2", *parameters, lab.database)
            there = answers(sojourn, "--cluster", node.url, *words, "--query", name, "--session", uuid[:9], *parameters,
                            says=f"answered by ClickHouse 18.16.1 at {node.url}: 3 sessions of 1 labs")
            check(name in MAY_BE_EMPTY or here, f"{name} has no answer")
            check(rounded(here) == rounded(there), f"{name}: {here} here, {there} in the cluster")
    last = answers(sojourn, "--cluster", node.url, *words, "--query", "hot_spots")
    check(rounded(last) == rounded(answers(sojourn, "--query", "hot_spots", lab.database)), "not the last session")


def statements(sojourn, node, words):
    """Read-only, with parameters, limits and formats as for a lab's database."""
    ask = ["--cluster", node.url, *words]
    rows = answers(sojourn, *ask, "--param", f"it={HOSTILE}", "SELECT :it AS it, ':it' AS text, 18446744073709551615 AS most -- :no")
    check(rows == [{"it": HOSTILE, "text": ":it", "most": "18446744073709551615"}], f"parameters: {rows}")
    rows = answers(sojourn, *ask, "--limit", "3", "SELECT number FROM system.numbers", says="cut")
    check([row["number"] for row in rows] == [0, 1, 2], f"--limit: {rows}")
    answers(sojourn, *ask, "DROP TABLE raw_marks", code=1, says="refuses")
    answers(sojourn, *ask, "INSERT INTO raw_marks SELECT * FROM raw_marks", code=1, says="refuses")
    answers(sojourn, *ask, "SELECT nothing FROM nowhere", code=3, says="nowhere")
    answers(sojourn, *ask, "SELECT :it", code=1, says="--param it=VALUE")
    answers(sojourn, *ask, "--query", "slowest_calls", code=3, says="for a cluster")
    answers(sojourn, *ask, "--query", "hot_spots", "--session", "ffffffff", code=3, says="no session")
    answers(sojourn, *ask, "--query", "hot_spots", "--session", "7'", code=1, says="beginning of a session's uuid")


EXACT = ("function", "calls", "total_ns", "self_ns", "min_ns", "max_ns", "untrusted")
COMPARED = ("name", "verdict", "self_ns_a", "self_ns_b", "total_ns_a", "total_ns_b", "calls_a", "calls_b",
            "sessions_a", "sessions_b", "symbol_key")
TREE = ("SELECT p.depth, p.recursive, p.rare, f.name, coalesce(g.name, '') AS caller, sum(p.calls) AS calls,"
        " sum(p.total_ns) AS total_ns, sum(p.self_ns) AS self_ns FROM call_paths p JOIN functions f USING (function_id)"
        " LEFT JOIN call_paths q ON q.path_id = p.parent_path_id"
        " LEFT JOIN functions g ON g.function_id = q.function_id JOIN sessions s ON s.session_id = p.session_id"
        " WHERE lower(hex(s.uuid)) = '{}' GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5, 6, 7")


def json_of(sojourn, *words):
    done = sojourn.run([*words, "--json"], capture_output=True, text=True)
    check(done.returncode == 0, f"{words}: {done.stderr}")
    return json.loads(done.stdout)


def fetched_is_the_same(sojourn, node, labs, words):
    """A copy of sessions of all labs answers report, tree and diff as the labs do; it says what it lacks."""
    copy = sojourn.path("copy.db")
    labs[0].forward(*words, "-o", copy, "fetch", node.url, "all", says="4 sessions, sums only")
    sets = []
    for lab in labs:
        for row in sojourn.sql(lab.database, "SELECT session_id, lower(hex(uuid)) AS uuid, name FROM sessions"):
            here = [{name: line[name] for name in EXACT} for line in
                    json_of(sojourn, "report", "--session", row["uuid"], "--all", lab.database)]
            there = [{name: line[name] for name in EXACT} for line in
                     json_of(sojourn, "report", "--session", row["uuid"], "--all", copy)]
            check(here and rounded(here) == rounded(there), f"report of {row}: {here} here, {there} in the copy")
            check(sojourn.sql(lab.database, TREE.format(row["uuid"])) == sojourn.sql(copy, TREE.format(row["uuid"])),
                  f"the tree of {row} differs")
            names = sojourn.sql(copy, f"SELECT name FROM sessions WHERE lower(hex(uuid)) = '{row['uuid']}'")
            check(names == [{"name": row["name"]}], f"the name of {row} is {names}")
            sets.append(row["uuid"])
    # Typical times come from histograms, whose bins are of ticks here and of nanoseconds there.
    compared = [rounded([{name: row[name] for name in COMPARED} for row in
                         json_of(sojourn, "diff", sets[0], sets[1], database)]) for database in (labs[0].database, copy)]
    check(compared[0] == compared[1], f"diff: {compared[0]} here, {compared[1]} in the copy")
    done = sojourn.run(["verify", copy], capture_output=True, text=True)
    check(done.returncode == 0 and "sound" in done.stdout, f"verify: {done.stdout}")
    done = sojourn.run(["verify", "--rebuild", "all", copy], capture_output=True, text=True)
    check(len(json_of(sojourn, "report", "--session", sets[0], "--all", copy)) > 0, "rebuilding took the sums away")
    labs[0].forward(*words, "-o", copy, "fetch", node.url, code=1, says="is there already")
    few = sojourn.path("few.db")
    labs[0].forward(*words, "-o", few, "fetch", node.url, sets[0][:9], sets[0], says="1 sessions, sums only")
    check(len(sojourn.sql(few, "SELECT 1 FROM sessions")) == 1, "a session that was not asked for")
    for wanted, code, says in (("name:nobody", 3, ""), ("what is this", 1, "")):
        lost = sojourn.path("lost.db")
        labs[0].forward(*words, "-o", lost, "fetch", node.url, wanted, code=code, says=says)
        check(not os.path.exists(lost), "a copy that failed is left")


def page_answers(sojourn, database, uuids):
    """What the dashboard's pages are made of, of sessions by uuid."""
    with subprocess.Popen([sojourn.program, "ui", "--no-open", database], stdout=subprocess.PIPE, text=True,
                          env=sojourn.environment) as server:
        try:
            port = int(re.search(r":(\d+)", server.stdout.readline())[1])

            def get(path):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=PATIENCE_S) as answer:
                    return json.loads(answer.read())
            page = get("sessions")
            listed = {row["uuid"]: row for row in page["items"]}
            found = []
            for uuid in uuids:
                one = listed[uuid]
                functions = get(f"sessions/{one['id']}/functions?limit=500")["items"]
                tree = get(f"sessions/{one['id']}/call-tree")["items"]
                shown = ("name", "module", "calls", "total_ns", "self_ns", "min_ns", "max_ns", "untrusted")
                found.append([uuid, one["name"], one["stored_calls"], one["state"], one["device_name"],
                              *(rounded([{name: row.get(name) for name in shown} for row in rows]) for rows in (functions, tree))])
            return page["totals"], found
        finally:
            server.terminate()


def pages_agree(sojourn, node, labs, words):
    """The dashboard over a copy of all labs' sessions: list, functions, call tree, and p95 by device and build."""
    copy = sojourn.path("pages.db")
    labs[0].forward(*words, "-o", copy, "fetch", node.url, "all")
    uuids = {lab: [row["uuid"] for row in sojourn.sql(lab.database, "SELECT lower(hex(uuid)) AS uuid FROM sessions")] for lab in labs}
    here = [page_answers(sojourn, lab.database, uuids[lab]) for lab in labs]
    totals, there = page_answers(sojourn, copy, [uuid for lab in labs for uuid in uuids[lab]])
    check(there == [row for _, rows in here for row in rows], f"pages: {there} of the copy, {here} of the labs")
    check(totals["calls"] == sum(one["calls"] for one, _ in here) and totals["sessions"] == len(there), f"totals: {totals}")
    columns = ("function", "build", "sessions", "calls")
    rows = [rounded([{name: row[name] for name in columns} for row in answers(sojourn, *asked, "--query", "p99_by_build", "--param",
                                                                             "function=*")])
            for asked in ([copy], ["--cluster", node.url, *words])]
    check(rows[0] and rows[0] == rows[1], f"devices and builds: {rows[0]} of the copy, {rows[1]} of the cluster")


CALLS = "count() AS calls, sum(duration_ns) AS ns, sum(self_ns) AS own, sum(depth) AS depth, uniqExact(call_id) AS ids"


def calls_are_given(sojourn, node, lab, words):
    """Windows of single calls, again and overlapping: each call once, as the lab has it."""
    def here(where):
        return sojourn.sql(lab.database, "SELECT count(*) AS calls, sum(duration_ns) AS ns, sum(self_ns) AS own,"
                                         f" sum(depth) AS depth, count(*) AS ids FROM calls WHERE session_id = 1{where}")[0]

    def there():
        rows = node.rows(f"SELECT {CALLS} FROM calls")[0]
        return dict(zip(("calls", "ns", "own", "depth", "ids"), (int(number) if number != "\\N" else None for number in rows)))

    start = sojourn.sql(lab.database, "SELECT start_ns FROM calls WHERE session_id = 1 ORDER BY start_ns LIMIT 1 OFFSET 300")
    middle = start[0]["start_ns"]
    lab.forward(*words, "--session", "1", "--to", f"{middle}ns", "calls", node.url, says="calls of session 1 were sent")
    check(there() == here(f" AND start_ns < {middle}") and there()["calls"] > 0, f"a window: {there()}")
    for _ in range(2):
        lab.forward(*words, "--session", "1", "calls", node.url)
        check(there() == here(""), f"all: {there()} there, {here('')} here")
    functions = node.rows("SELECT count() FROM calls WHERE symbol_key NOT IN (SELECT symbol_key FROM functions)")
    check(functions == [["0"]], f"calls of functions that nobody knows: {functions}")
    lab.forward(*words, "--session", "99", "calls", node.url, code=3, says="99")


def audit(node, labs, words):
    """Commands as they are now, each once; what is gone is gone; from tables of the second version on."""
    lab = labs[0]
    lab.command(HOSTILE)
    for statement in ("DROP TABLE sojourn.commands", "DROP TABLE sojourn.raw_commands",
                      "DROP TABLE sojourn.schema_version",
                      "CREATE TABLE sojourn.schema_version (version UInt64, cluster String) ENGINE = TinyLog",
                      "INSERT INTO sojourn.schema_version VALUES (2, '')"):
        node.ask(statement)
    lab.forward(*words, "send", node.url, code=1, says='run "sojourn forward init" with it again')
    lab.forward(*words, "init", node.url)
    with sqlite3.connect(lab.database) as database:
        database.execute("DELETE FROM forwarded_commands")
        database.execute("UPDATE sessions SET name = name || '.'")
    labs[1].command("another")
    for one in (*labs, *labs):
        one.forward(*words, "send", node.url)
    check_equal(node, labs)
    with sqlite3.connect(lab.database) as database:
        database.execute("UPDATE commands SET state = 'done', finished_realtime_ns = 1800000000000000000 WHERE command_id = 1")
        database.execute("DELETE FROM commands WHERE command_id = 2")
    lab.forward(*words, "send", node.url, says="0 sessions were sent")
    check_equal(node, labs)
    rows = node.rows("SELECT command_id, state, finished_realtime_ns FROM commands WHERE state = 'done'")
    check(rows == [["1", "done", "1800000000000000000"]], f"a command that is done: {rows}")
    check(int(node.rows("SELECT count() FROM raw_commands WHERE removed = 1")[0][0]) == 1, "no word of a removed command")
    check([row["requested_by"] for row in answers(lab.sojourn, "--cluster", node.url, *words,
                                                  "SELECT requested_by FROM commands WHERE command_id = 3")] == [HOSTILE],
          "a name was changed on its way")


def changes_replace(sojourn, node, labs, words):
    lab = labs[0]
    with sqlite3.connect(lab.database) as database:
        database.execute("UPDATE sessions SET tags = '{\"run\":\"7\"}' WHERE session_id = 1")
    lab.forward(*words, "send", node.url, says="1 sessions were sent")
    check(node.rows("SELECT count() FROM sessions WHERE tags LIKE '%run%'") == [["1"]], "a tag has not come")
    done = sojourn.run(["session", "--database", lab.database, "remove", "2"], capture_output=True, text=True)
    check(done.returncode == 0, f"remove: {done.stderr}")
    lab.forward(*words, "send", node.url, says="1 sessions were sent")
    check_equal(node, labs)


def restored_lab(node, labs, words):
    """A copy of the database from before: all is given again, nothing is there twice."""
    lab = labs[0]
    copy = lab.database + ".copy"
    with contextlib.closing(sqlite3.connect(lab.database)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
        source.backup(target)
        target.execute("DELETE FROM forwarded_sessions")
        target.commit()
    for end in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(lab.database + end)
    os.replace(copy, lab.database)
    lab.forward(*words, "send", node.url, says="2 sessions were sent")
    check_equal(node, labs)


def far_ahead(node, labs, words):
    """What was given by a clock that was 30 years ahead is replaced all the same by what is newer."""
    uuid, newest = node.rows("SELECT session, version FROM sessions LIMIT 1")[0]
    for (table,) in node.rows("SELECT name FROM system.tables WHERE database = 'sojourn' AND name LIKE 'raw_%'"):
        names = [row[0] for row in node.rows(f"DESCRIBE TABLE {table}")]
        if "session" in names and table != "raw_calls":
            values = ", ".join({"version": "version + 1000000000000000000"}.get(name, name) for name in names)
            node.ask(f"INSERT INTO sojourn.{table} SELECT {values} FROM sojourn.{table} WHERE session = '{uuid}' "
                     f"AND version = {newest}")
    check_equal(node, labs)
    for one in labs:
        with sqlite3.connect(one.database) as database:
            database.execute("UPDATE sessions SET name = 'the clock is right' WHERE lower(hex(uuid)) = ?", (uuid,))
        one.forward(*words, "send", node.url)
    check(node.rows(f"SELECT name FROM sessions WHERE session = '{uuid}'") == [["the clock is right"]], "an older version is seen")
    check_equal(node, labs)


def rebuilt_lab(sojourn, node, labs, words):
    """A block that cannot be read, and sums made anew without it: they replace what was there."""
    lab = labs[0]
    calls = node.rows("SELECT sum(calls) FROM function_stats")
    with sqlite3.connect(lab.database) as database:
        block, data = database.execute("SELECT block_id, data FROM blocks WHERE kind = 1 AND call_count > 0 ORDER BY call_count "
                                       "LIMIT 1").fetchone()
        database.execute("UPDATE blocks SET data = zeroblob(100) WHERE block_id = ?", (block,))
    sojourn.run(["verify", "--rebuild", "all", lab.database], capture_output=True)
    lab.forward(*words, "send", node.url)
    check(node.rows("SELECT sum(calls) FROM function_stats") != calls, "the sums are those from before")
    check_equal(node, labs)
    with sqlite3.connect(lab.database) as database:
        database.execute("UPDATE blocks SET data = ? WHERE block_id = ?", (data, block))
    sojourn.run(["verify", lab.database], capture_output=True)
    sojourn.run(["verify", "--rebuild", "all", lab.database], capture_output=True)
    lab.forward(*words, "send", node.url)
    check(node.rows("SELECT sum(calls) FROM function_stats") == calls, "the sums have not come back")
    check_equal(node, labs)


def from_version_1(node, labs, words):
    """Tables of the first version had no single calls: init adds them."""
    for statement in ("DROP TABLE sojourn.calls", "DROP TABLE sojourn.raw_calls", "DROP TABLE sojourn.schema_version",
                      "CREATE TABLE sojourn.schema_version (version UInt64, cluster String) ENGINE = TinyLog",
                      "INSERT INTO sojourn.schema_version VALUES (1, '')"):
        node.ask(statement)
    labs[0].forward(*words, "send", node.url, code=1, says='run "sojourn forward init" with it again')
    labs[0].forward(*words, "init", node.url)
    labs[0].forward(*words, "--session", "1", "calls", node.url)
    check(node.rows("SELECT count() FROM calls") != [["0"]], "no calls after init")


def over_tls(sojourn, node, lab, words):
    """https:// with the node's certificate trusted, and refused where it is not."""
    url = f"https://localhost:{node.https}"
    lab.forward(*words, "--cluster-ca", node.certificate, "status", url, says="sessions there")
    rows = answers(sojourn, "--cluster", url, *words, "--cluster-ca", node.certificate, "SELECT count() AS n FROM sessions")
    check(rows == [{"n": int(node.rows("SELECT count() FROM sessions")[0][0])}], f"over TLS: {rows}")
    lab.forward(*words, "status", url, code=1, says="is not reached")
    lab.forward(*words, "--cluster-ca", node.certificate, "status", f"https://127.0.0.1:{node.https}", code=1,
                says="is not reached")


def changed_by_hand(node, labs, words):
    node.ask("RENAME TABLE sojourn.raw_slow_calls TO sojourn.elsewhere")
    labs[0].record("return", "--name", "late")
    labs[0].forward(*words, "send", node.url, code=3, says="slow_calls")
    node.ask("RENAME TABLE sojourn.elsewhere TO sojourn.raw_slow_calls")
    node.ask("DROP TABLE sojourn.schema_version")
    node.ask("CREATE TABLE sojourn.schema_version (version UInt64, cluster String) ENGINE = TinyLog")
    node.ask("INSERT INTO sojourn.schema_version VALUES (99, '')")
    labs[0].forward(*words, "send", node.url, code=1, says="version 99")
    labs[0].forward(*words, "init", node.url, code=1, says="version 99")
    node.ask("DROP TABLE sojourn.schema_version")
    labs[0].forward(*words, "init", node.url)
    from_version_1(node, labs, words)
    labs[0].forward(*words, "send", node.url)
    check_equal(node, labs)


def one_is_unreadable(node, labs, words):
    """A session whose sums cannot be read is named and holds up no other."""
    lab = labs[0]
    for how in ("return", "throw", "exit"):
        lab.record(how)
    with sqlite3.connect(lab.database) as database:
        session, function, histogram = database.execute(
            "SELECT session_id, function_id, histogram FROM function_stats WHERE histogram IS NOT NULL "
            "ORDER BY session_id DESC LIMIT 1").fetchone()
        change = "UPDATE function_stats SET histogram = ? WHERE session_id = ? AND function_id = ?"
        database.execute(change, (b"\x63", session, function))
        database.execute("UPDATE sessions SET name = 'all are owed'")
    others = lab.sums("sessions")[0] - 1
    done = lab.forward(*words, "send", node.url, code=1, says="a histogram of function_stats cannot be read")
    check(f"{others} sessions were sent" in done, f"not the other {others}: {done}")
    with sqlite3.connect(lab.database) as database:
        database.execute(change, (histogram, session, function))
    lab.forward(*words, "send", node.url, says="1 sessions were sent")
    check_equal(node, labs)


def killed(node, labs, words, dice):
    """kill -9 of the sender or of the server, at any moment of a batch."""
    lab = labs[0]
    for number in range(KILLS):
        if number % 3 == 0:
            lab.record(dice.choice(["return", "throw"]))
        lab.command()
        with sqlite3.connect(lab.database, timeout=PATIENCE_S) as database:
            database.execute("UPDATE sessions SET name = 'round ' || ?", (number,))
        sender = subprocess.Popen([lab.sojourn.program, "forward", "--database", lab.database, *words, "send", node.url],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0, 0.15))
        if dice.random() < 0.3:
            node.stop(signal.SIGKILL)
            sender.wait(PATIENCE_S)
            node.start()
        else:
            sender.kill()
            sender.wait(PATIENCE_S)
    lab.forward(*words, "send", node.url)
    check_equal(node, labs)
    names = node.rows("SELECT DISTINCT name FROM sessions WHERE name LIKE 'round%'")
    check(names == [[f"round {KILLS - 1}"]], f"an older version is seen: {names}")


def by_the_collector(sojourn, node, labs, words):
    """sojournd forwards by itself; while the cluster is away, it collects."""
    program = os.path.join(os.path.dirname(sojourn.program), "sojournd")
    port = free_port()
    lab = Lab(sojourn, "server.db", labs[0].ends)
    node.stop()
    collector = subprocess.Popen([program, "--listen", f"tcp://127.0.0.1:{port}", "--database", lab.database, "--forward",
                                  node.url, "--forward-password", words[1]], stderr=subprocess.PIPE, text=True)
    try:
        wait_for("the collector", lambda: os.path.exists(lab.database))
        done = sojourn.run(["record", "--quiet", "--collector", f"tcp://127.0.0.1:{port}", "--wait", "60", "--",
                            lab.ends, "return"], capture_output=True, text=True)
        check("sojourn:" not in done.stderr, f"record: {done.stderr}")
        node.start()
        wait_for("the session in the cluster", lambda: int(node.rows("SELECT count() FROM sessions")[0][0]) ==
                 sum(lab.sums("sessions")[0] for lab in (*labs, lab)))
    finally:
        collector.terminate()
        log = collector.communicate()[1]
    check(collector.returncode == 0 and "is not reached" in log, f"the collector: {log}")
    check_equal(node, [*labs, lab])


def test(sojourn, arguments):
    seed = int(arguments[0]) if arguments else random.randrange(1 << 30)
    print(f"seed {seed}, {KILLS} kills", flush=True)
    ends = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests/samples/ends")
    secret = sojourn.path("password")
    with open(secret, "w", encoding="utf-8") as file:
        file.write("cluster's own\n")
    words = ["--cluster-password", secret]
    node = Node(sojourn.path("node"), "cluster's own", tls=True)
    lab, other = Lab(sojourn, "lab.db", ends), Lab(sojourn, "other.db", ends)
    for how in ("return", "throw", "exit"):
        lab.record(how)
    other.record("return", "--name", HOSTILE)
    lab.command()
    lab.command("somebody else")
    try:
        node.start()
        refusals(sojourn, node, lab)
        sent_once(node, lab, other, words)
        histograms_merge(node)
        statements(sojourn, node, words)
        labs = [lab, other]
        fetched_is_the_same(sojourn, node, labs, words)
        pages_agree(sojourn, node, labs, words)
        calls_are_given(sojourn, node, lab, words)
        over_tls(sojourn, node, lab, words)
        changes_replace(sojourn, node, labs, words)
        audit(node, labs, words)
        restored_lab(node, labs, words)
        far_ahead(node, labs, words)
        rebuilt_lab(sojourn, node, labs, words)
        changed_by_hand(node, labs, words)
        one_is_unreadable(node, labs, words)
        killed(node, labs, words, random.Random(seed))
        by_the_collector(sojourn, node, labs, words)
    finally:
        node.stop()


if __name__ == "__main__":
    main(test)
