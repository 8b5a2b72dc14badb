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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from clickhouse_node import Node
from fleet_testing import free_port
from json_shape import problem
from served_pages import Pages
from sojourn_testing import PATIENCE_S, check, main, wait_for

QUERIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "schema", "queries")
KILLS = 200 if os.environ.get("SJ_LONG") else 6
HOSTILE = "'); DROP TABLE sessions; --\\ \t\n\\N \u2603"
# Of each table: the sums that both engines must agree on to the last row.
SUMS = {
    "sessions": ("count(*), sum(stored_calls), sum(stored_events), sum(stored_bytes)", "sessions"),
    "function_stats": ("count(*), sum(calls), sum(total_ns), sum(self_ns), sum(max_ns), sum(untimed_calls), sum(error_ns)", "function_stats"),
    "functions": ("count(*)", "function_stats"),
    "call_edges": ("count(*), sum(calls), sum(total_ns), sum(self_ns)", "call_edges"),
    "call_paths": ("count(*), sum(calls), sum(total_ns), sum(self_ns), sum(depth)", "call_paths"),
    "slow_calls": ("count(*), sum(duration_ns), sum(place)", "slow_calls"),
    "marks": ("count(*), sum(at_ns), sum(is_end)", "marks"),
    "coverage": ("count(*), sum(functions), sum(hooked)",
                 "(SELECT function_count AS functions, hooked_count AS hooked FROM session_modules)"),
    "zombie_reports": ("count(*), sum(at_ns), sum(length(kind))", "(SELECT r.at_ns, z.kind FROM zombie_reports r "
                       "JOIN zombies z USING (zombie_id))"),
    "gaps": ("count(*), sum(calls)", "gaps"),
    "threads": ("count(*), sum(calls), sum(max_depth), sum(tid), sum(is_main), sum(run_time_ns)", "thread_stats"),
    "open_calls": ("count(*), sum(depth), sum(start_ns)", "open_calls"),
    "unhooked": ("sum(functions), sum(bytes)", "(SELECT 1 AS functions, size_bytes AS bytes FROM unhooked_functions)"),
    "commands": ("count(*), sum(command_id), sum(timeout_ms), sum(length(state))", "commands"),
}


class Lab:
    """A database with sessions of its own."""

    def __init__(self, sojourn, name, ends):
        self.sojourn, self.database, self.ends = sojourn, sojourn.path(name), ends

    def record(self, how="return", *options):
        done, _ = self.sojourn.record([self.ends, how], self.database, options)
        check(os.path.exists(self.database), f"record: {done.stderr}")

    def enrich(self):
        """Session 2 gets marks and a gap, and session 3 a device of its own, so that no question is without an answer."""
        with sqlite3.connect(self.database) as database:
            stream, thread, first, last = database.execute(
                "SELECT s.stream_id, t.number, s.first_enter_ns, s.last_leave_ns FROM streams s JOIN threads t USING (thread_id) "
                "WHERE s.session_id = 2 ORDER BY s.calls DESC LIMIT 1").fetchone()
            step = (last - first) // 4
            for number, (name, is_end, at) in enumerate((("phase", 0, first + 1), ("phase", 1, first + 2 * step),
                                                         ("phase", 0, first + 3 * step), ("it's open", 0, first + step))):
                database.execute("INSERT INTO marks(session_id, number, name, is_end, at_ns, source) VALUES (2, ?, ?, ?, ?, 'cli')",
                                 (900 + number, name, is_end, at))
            database.execute("INSERT INTO gaps(session_id, stream_id, thread_number, reason, calls, events, start_ns, end_ns) "
                             "VALUES (2, ?, ?, 'torn', 3, 6, ?, ?)", (stream, thread, first + step, first + step + 10))
            report = database.execute("INSERT INTO reports(session_id, monitor, number, at_ns, kind, payload) "
                                      "VALUES (2, 'heap', 900, 7, 'overflow', '{}')").lastrowid
            zombie = database.execute("INSERT INTO zombies(fingerprint, kind, used_in, freed_in, allocated_in, reports, "
                                      "first_seen_realtime_ns, last_seen_realtime_ns, state) VALUES (?, 'overflow', ?, '', '', 1, "
                                      "1, 1, 'open')", ("planted", HOSTILE)).lastrowid
            database.execute("INSERT INTO zombie_reports(report_id, zombie_id, session_id, at_ns, thread_name, tid, size, offset) "
                             "VALUES (?, ?, 2, 7, 'main', 1, 8, 8)", (report, zombie))
            database.execute("INSERT INTO devices(uuid, name, first_seen_realtime_ns, last_seen_realtime_ns) "
                             "VALUES (randomblob(16), 'another', 1, 2)")
            database.execute("UPDATE sessions SET device_id = (SELECT max(device_id) FROM devices) WHERE session_id = 3")

    def name_methods(self):
        with sqlite3.connect(self.database) as database:
            database.execute("UPDATE functions SET name = '-[Ends(More) step:with:]' WHERE name = 'ends_step'")
            database.execute("UPDATE functions SET name = '+[Sub:Ends work:]' WHERE name = 'ends_work'")

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
    lab.forward(*words, "--shards", "labs", "init", node.url, code=1, says="of one node: init them without --shards")
    lab.forward(*words, "send", node.url, says="3 sessions were sent")
    check_equal(node, [lab])
    lab.forward(*words, "send", node.url, says="0 sessions were sent")
    questions_agree(lab.sojourn, node, lab, words)
    other.forward(*words, "send", node.url)
    check_equal(node, [lab, other])
    check(node.rows("SELECT count() FROM sessions WHERE name LIKE '%DROP TABLE%'") == [["1"]],
          "a name was changed on its way")
    lab.forward(*words, "status", node.url, says="0 owed")
    with open(os.path.join(QUERIES, "..", "commands.schema.json"), encoding="utf-8") as file:
        shape = json.load(file)["$defs"]["forward"]
    for action in ("init", "send", "status"):
        said = json.loads(lab.forward(*words, "--json", action, node.url))
        check(problem(said, shape, action) is None and said["action"] == action, f"{said}")
    check(said["owed"] == 0 and said["sessions"] > 0, f"{said}")


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


STEP, WORK = "function=-[Ends(More) step:with:]", "function=+[Sub:Ends work:]"
MAY_BE_EMPTY = ("recursion", "open_calls")  # of some of these programs
# Beside the defaults: values with which each question has an answer.
ASKED = {
    "calls_between": ["to_ns=1000000000000", "limit=100000"],
    "callees_of": ["function=*"],
    "callers_of": ["function=*"],
    "concurrent": [STEP],
    "containing": ["outer=main", "inner=-[Ends(More) step:with:]"],
    "deviating_devices": ["factor=0.01", "least_calls=1"],
    "entered_in_marks": ["function=*"],
    "first_after_mark": ["limit=100000"],
    "inside_slowest": [WORK, "calls=2", "limit=1000"],
    "main_thread_blocks": ["least_ns=1", "limit=100000"],
    "only_in": ["name=*ends*"],
    "p99_by_build": ["function=*"],
    "per_mark": ["limit=1000"],
    "slowest_calls": ["limit=100000"],
    "time_between_calls": [STEP],
    "waiting_calls": ["factor=0.0001", "least_ns=1"],
}
# What differs by rounding: bins are of ticks in the lab and of nanoseconds in the cluster, and there sums are of calls that
# were rounded each.
ROUGH = {"waiting_calls": (("p50_ns", "p99_ns", "times"), lambda row, value: 1 + 0.07 * value),
         "entered_in_marks": (("total_ns",), lambda row, value: row["calls"]),
         "per_mark": (("self_ns",), lambda row, value: row["calls"])}


def same_rows(name, here, there):
    columns, most = ROUGH.get(name, ((), None))
    exact = [sorted(((rounded([{column: value for column, value in row.items() if column not in columns}])[0], row) for row in rows),
                    key=lambda pair: pair[0]) for rows in (here, there)]
    return [text for text, _ in exact[0]] == [text for text, _ in exact[1]] and all(
        abs(row[column] - other[column]) <= most(row, row[column])
        for (_, row), (_, other) in zip(*exact) for column in columns)


def questions_of(sojourn, *words):
    lines = sojourn.run(["sql", *words, "--queries"], capture_output=True, text=True).stdout.splitlines()
    return {line.split()[0]: line for line in lines}


def parameters_of(name, values):
    """Those of the values that a question has a parameter for, as options."""
    with open(os.path.join(QUERIES, f"{name}.sql"), encoding="utf-8") as file:
        text = file.read()
    return [word for value in values if f"-- parameter: {value.split('=')[0]} " in text for word in ("--param", value)]


def refused_question(sojourn, node, lab, words, name, uuid):
    """It says why, and which lab has an answer."""
    done = sojourn.run(["sql", "--cluster", node.url, *words, "--query", name, "--session", uuid], capture_output=True, text=True)
    check(done.returncode == 1 and f"the query '{name}' is not for a cluster: " in done.stderr, f"{name}: {done.stderr}")
    with open(os.path.join(QUERIES, f"{name}.sql"), encoding="utf-8") as file:
        is_of_session = ":session" in file.read()
    it = sojourn.run(["forward", "--database", lab.database, *words, "status", node.url], capture_output=True, text=True).stdout
    own = re.search("this is lab ([0-9a-f]{32})", it)[1]
    check(not is_of_session or f"in lab {own}: sojourn sql --query {name} --session {uuid}" in done.stderr, f"{name}: {done.stderr}")


def questions_agree(sojourn, node, lab, words):
    """Every shipped question has a form for a cluster, which gives the same rows of the same lab, or says why it has none."""
    names = questions_of(sojourn, "--cluster", node.url)
    check(set(names) == set(questions_of(sojourn)), f"not of both: {set(names) ^ set(questions_of(sojourn))}")
    answered = 0
    for session in (2, 3):
        uuid = sojourn.sql(lab.database, f"SELECT lower(hex(uuid)) AS uuid FROM sessions WHERE session_id = {session}")[0]["uuid"]
        ask = ["--cluster", node.url, *words, "--session", uuid[:9], "--query"]
        answers(sojourn, *ask, "slowest_calls", code=1, says=f"sojourn forward --session {uuid} calls {node.url}")
        lab.forward(*words, "--session", str(session), "calls", node.url)
        for name in sorted(names):
            if "(not for a cluster)" in names[name]:
                refused_question(sojourn, node, lab, words, name, uuid)
                continue
            for values in ([], ["limit=7", "function=*nd*"], ASKED.get(name)):
                parameters = parameters_of(name, values or [])
                here = answers(sojourn, "--query", name, "--session", str(session), *parameters, lab.database)
                there = answers(sojourn, *ask, name, *parameters,
                                says=f"answered by ClickHouse 18.16.1 at {node.url}: 3 sessions of 1 labs")
                check(same_rows(name, here, there), f"{name} {values} of session {session}: {here} here, {there} in the cluster")
                answered += len(here) > 0
                check(here or session == 3 or name in MAY_BE_EMPTY or values is not ASKED.get(name, []), f"{name} has no answer")
    check(answered > 50, f"only {answered} questions had answers")
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
    answers(sojourn, *ask, "--query", "no_such", code=3, says="for a cluster")
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
    labs[0].forward(*words, "-o", few, "fetch", node.url, sets[0][:20], sets[0], says="1 sessions, sums only")
    check(len(sojourn.sql(few, "SELECT 1 FROM sessions")) == 1, "a session that was not asked for")
    for wanted, code, says in (("name:nobody", 3, ""), ("what is this", 1, "")):
        lost = sojourn.path("lost.db")
        labs[0].forward(*words, "-o", lost, "fetch", node.url, wanted, code=code, says=says)
        check(not os.path.exists(lost), "a copy that failed is left")


def page_answers(sojourn, database, uuids):
    """What the dashboard's pages are made of, of sessions by uuid."""
    pages = Pages(sojourn, database)
    try:
        page = pages.get("sessions")
        listed = {row["uuid"]: row for row in page["items"]}
        found = []
        for uuid in uuids:
            one = listed[uuid]
            found.append([uuid, one["name"], one["stored_calls"], one["state"], one["device_name"],
                          *(rounded([{name: row.get(name) for name in SHOWN} for row in pages.get(path)["items"]])
                            for path in (f"sessions/{one['id']}/functions?limit=500", f"sessions/{one['id']}/call-tree"))])
        return page["totals"], found
    finally:
        pages.stop()


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


LISTED = ("uuid", "name", "command", "mode", "state", "tags", "stored_calls", "stored_events", "lost_calls", "duration_ns",
          "device_name", "mark_count")
SHOWN = ("name", "module", "calls", "total_ns", "self_ns", "min_ns", "max_ns", "untrusted", "untimed_calls", "error_ns", "is_estimate")
DIFFERENCE = "SELECT verdict, name, self_ns_a, self_ns_b, calls_a, calls_b FROM diff_functions(:a, :b)"
HEAT = ("SELECT device_name AS device, uniqExact(session) AS sessions FROM function_stats WHERE name = :name GROUP BY device_name")


def lists_agree(pages, of_labs):
    def listed(server, **filters):
        return rounded([{name: row[name] for name in LISTED} for row in server.listed(**filters).values()])
    for filters in ({}, {"search": "another"}, {"state": "completed"}, {"mark": "phase"}, {"app": "ends"}, {"tag": "a=b"}):
        here = sorted(row for server in of_labs for row in listed(server, **filters))
        check(here == listed(pages, **filters), f"list {filters}: {here} in the labs, {listed(pages, **filters)} in the cluster")
    totals = pages.get("sessions")["totals"]
    for name in ("sessions", "matching", "calls", "lost_calls"):
        check(totals[name] == sum(server.get("sessions")["totals"][name] for server in of_labs), f"{name}: {totals}")
    facets = [(row["facet"], row["label"], row["sessions"]) for row in pages.get("sessions/facets")["items"]]
    for facet in (("app", "ends", 4), ("build", "ends", 4), ("mark", "phase", 1), ("device", "another", 1)):
        check(facet in facets, f"{facet} is not in {facets}")


def sums_agree(pages, server):
    """Functions and trees of each session of a lab; which id it has there."""
    ids = {}
    for uuid, row in server.listed().items():
        there = pages.listed()[uuid]
        ids[row["id"]] = there["id"]
        for path in ("functions?limit=500", "call-tree"):
            shown = [rounded([{name: one.get(name) for name in SHOWN} for one in asked.get(f"sessions/{number}/{path}")["items"]])
                     for asked, number in ((server, row["id"]), (pages, there["id"]))]
            check(shown[0] == shown[1] and shown[0], f"{path} of {uuid}: {shown}")
    return ids


def pages_follow(sojourn, node, labs, words):
    """`sojourn ui --cluster`: list with search, facets and totals, functions, tree and comparison have the labs' numbers; what
    changes there changes; which engine answers is said, and that it is away."""
    of_labs = [Pages(sojourn, lab.database) for lab in labs]
    pages = Pages(sojourn, "--cluster", node.url, *words)
    try:
        lists_agree(pages, of_labs)
        ids = [sums_agree(pages, server) for server in of_labs][0]
        here = of_labs[0].rows(DIFFERENCE, **{"p.a": "1", "p.b": "2,3"})
        there = pages.rows(DIFFERENCE, **{"p.a": ids["1"], "p.b": f"{ids['2']},{ids['3']}"})
        check(here and rounded(here) == rounded(there), f"comparison: {here} of the lab, {there} of the cluster")
        heat = pages.rows(HEAT, engine="cluster", **{"p.name": "main"})
        check({row["device"]: row["sessions"] for row in heat}["another"] == 1, f"devices: {heat}")
        engine = pages.get("health")
        check(engine["engine"] == f"answered by ClickHouse 18.16.1 at {node.url}: 4 sessions of 2 labs" and engine["is_cluster"],
              f"engine: {engine}")
        check(of_labs[0].get("health")["engine"].startswith("answered by SQLite "), "the engine of a lab")
        pages_change(sojourn, node, labs, words, pages)
    finally:
        for server in (pages, *of_labs):
            server.stop()
    check(not os.listdir(sojourn.environment["TMPDIR"]), "the database of sums is left")


def pages_change(sojourn, node, labs, words, pages):
    lab = labs[0]
    ids = {uuid: row["id"] for uuid, row in pages.listed().items()}
    with sqlite3.connect(lab.database, timeout=PATIENCE_S) as database:
        database.execute("UPDATE sessions SET name = 'seen by all' WHERE session_id = 1")
    lab.record("return", "--name", "comes and goes")
    lab.forward(*words, "send", node.url, says="2 sessions were sent")
    wait_for("the list follows", lambda: {"seen by all", "comes and goes"} <= {row["name"] for row in pages.listed().values()})
    one = [row for row in pages.listed().values() if row["name"] == "seen by all"][0]
    check(one["id"] == ids[one["uuid"]], f"another id: {one['id']}, before {ids[one['uuid']]}")
    check([row["id"] for row in pages.listed().values() if row["name"] == "comes and goes"][0] not in ids.values(), "an id of before")
    node.ask("DETACH TABLE sojourn.gaps")
    for path in ("functions", "export?format=folded"):
        code, text = pages.text(f"sessions/{one['id']}/{path}")
        check(code == 500 and "gaps" in text, f"{path} without a table there: {code} {text}")
    node.ask("ATTACH TABLE sojourn.gaps")
    code, text = pages.text(f"sessions/{one['id']}/export?format=folded")
    check(code == 200 and "main" in text, f"the first look is an export: {code} {text}")
    check(pages.get(f"sessions/{one['id']}/functions")["items"], "no sums of a session that has changed")
    number = sojourn.sql(lab.database, "SELECT session_id FROM sessions WHERE name = 'comes and goes'")[0]["session_id"]
    done = sojourn.run(["session", "--database", lab.database, "remove", str(number)], capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    lab.forward(*words, "send", node.url)
    wait_for("it is gone", lambda: "comes and goes" not in {row["name"] for row in pages.listed().values()})
    node.stop()
    wait_for("it says that the cluster is away", lambda: pages.get("health")["engine"].startswith("NOT AS IT IS NOW: "))
    check(len(pages.listed()) == 4, "the list of before is gone")
    node.start()
    wait_for("it is there again", lambda: pages.get("health")["engine"].startswith("answered by "))


def interrupted(sojourn, node, ask):
    """Ctrl-C while the cluster is asked leaves nothing."""
    node.process.send_signal(signal.SIGSTOP)
    try:
        for command in ("report", "ui"):
            for number in (signal.SIGINT, signal.SIGTERM):
                process = subprocess.Popen([sojourn.program, command, *ask], env=sojourn.environment, stdout=subprocess.DEVNULL)
                wait_for("a copy", lambda: os.listdir(sojourn.environment["TMPDIR"]))
                process.send_signal(number)
                check(process.wait(PATIENCE_S) == -number, f"{command}: {process.returncode}, not -{number}")
                check(not os.listdir(sojourn.environment["TMPDIR"]), f"{command}: a copy is left by {number}")
    finally:
        node.process.send_signal(signal.SIGCONT)


def commands_ask(sojourn, node, labs, words):
    """report, tree, diff and check ask the cluster by --cluster, and say so; nothing is left."""
    ask = ["--cluster", node.url, *words]
    lab = labs[0]
    uuids = [row["uuid"] for row in sojourn.sql(lab.database, "SELECT lower(hex(uuid)) AS uuid FROM sessions ORDER BY session_id")]

    def said(*command):
        done = sojourn.run(command, capture_output=True, text=True)
        check(f"answered by ClickHouse 18.16.1 at {node.url}" in done.stderr, f"{command}: {done.stderr}")
        return done
    for uuid in uuids:
        here = json_of(sojourn, "report", "--session", uuid, "--all", lab.database)
        there = json.loads(said("report", "--session", uuid, "--all", "--json", *ask).stdout)
        rows = [rounded([{name: row[name] for name in EXACT} for row in rows]) for rows in (here, there)]
        check(rows[0] and rows[0] == rows[1], f"report of {uuid}: {rows}")
        trees = [re.sub(r" *(\d+ open|no end) |(,| and) \d+ open", "", sojourn.run(["tree", "--session", uuid, *more],
                                                                             capture_output=True, text=True).stdout)
                 for more in ([lab.database], ask)]  # which calls were open is the lab's to say
        check(trees[0] and trees[0] == trees[1], f"trees of {uuid}: {trees}")
    sets = [uuids[0], f"{uuids[1]},{uuids[2]}"]
    there = json.loads(said("diff", "--json", *ask, *sets).stdout)
    compared = [rounded([{name: row[name] for name in COMPARED} for row in rows])
                for rows in (json_of(sojourn, "diff", *sets, lab.database), there)]
    check(compared[0] == compared[1], f"diff: {compared}")
    codes = [sojourn.run(["check", "--baseline", sets[0], *more], capture_output=True).returncode
             for more in ([sets[1], lab.database], [*ask, sets[1]])]
    check(codes == [5, 5], f"check: {codes}")
    check(not os.listdir(sojourn.environment["TMPDIR"]), "a copy is left")
    interrupted(sojourn, node, ask)
    done = sojourn.run(["report", *ask, lab.database], capture_output=True, text=True)
    check(done.returncode == 1 and "not both" in done.stderr, f"--cluster and FILE: {done.stderr}")


CALLS = "count() AS calls, sum(duration_ns) AS ns, sum(self_ns) AS own, sum(depth) AS depth, uniqExact(call_id) AS ids"


def calls_are_given(sojourn, node, lab, words):
    """Windows of single calls, again and overlapping: each call once, as the lab has it."""
    def here(where):
        return sojourn.sql(lab.database, "SELECT count(*) AS calls, sum(duration_ns) AS ns, sum(self_ns) AS own,"
                                         f" sum(depth) AS depth, count(*) AS ids FROM calls WHERE session_id = 1{where}")[0]

    uuid = sojourn.sql(lab.database, "SELECT lower(hex(uuid)) AS uuid FROM sessions WHERE session_id = 1")[0]["uuid"]

    def there():
        rows = node.rows(f"SELECT {CALLS} FROM calls WHERE session = '{uuid}'")[0]
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
    why = sojourn.sql(lab.database, "SELECT lower(hex(session_uuid)) AS session, reason FROM removals")
    check(all(row["reason"] for row in why) and sorted(node.rows("SELECT session, cause FROM removals")) ==
          sorted([row["session"], row["reason"]] for row in why), f"reasons of removals: {why}")


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
        block, data = database.execute("SELECT block_id, data FROM blocks WHERE kind = 1 AND call_count > 0 ORDER BY call_count DESC "
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


def from_version_3(node, labs, words):
    """Tables of the third version had no threads: init adds them, and all sessions are given again."""
    for table in ("threads", "open_calls", "unhooked"):
        node.ask(f"DROP TABLE sojourn.{table}")
        node.ask(f"DROP TABLE sojourn.raw_{table}")
    node.ask("DROP TABLE sojourn.removals")
    node.ask("DROP TABLE sojourn.schema_version")
    node.ask("CREATE TABLE sojourn.schema_version (version UInt64, cluster String) ENGINE = TinyLog")
    node.ask("INSERT INTO sojourn.schema_version VALUES (3, '')")
    for lab in labs:
        with sqlite3.connect(lab.database) as database:  # as the version before noted them
            database.execute("UPDATE forwarded_sessions SET content = substr(content, 3)")
    labs[0].forward(*words, "send", node.url, code=1, says='run "sojourn forward init" with it again')
    labs[0].forward(*words, "init", node.url)
    for lab in labs:
        lab.forward(*words, "send", node.url)
    check_equal(node, labs)


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
    from_version_3(node, labs, words)
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
    sojourn.environment["TMPDIR"] = sojourn.path("copies")
    os.mkdir(sojourn.environment["TMPDIR"])
    node = Node(sojourn.path("node"), "cluster's own", tls=True)
    lab, other = Lab(sojourn, "lab.db", ends), Lab(sojourn, "other.db", ends)
    for how in ("return", "threads", "exit"):
        lab.record(how)
    other.record("return", "--name", HOSTILE)
    lab.enrich()
    for one in (lab, other):
        one.name_methods()
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
        commands_ask(sojourn, node, labs, words)
        pages_follow(sojourn, node, labs, words)
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
