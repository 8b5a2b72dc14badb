#!/usr/bin/env python3
"""Estimated times (`record --clock adaptive`) are marked as estimates in a cluster, too: reports, trees,
differences and pages mark them as over the lab's database. Tables of the fifth version have no estimates, and init
adds the columns.

forward_estimates.py BUILD_FOLDER
"""
import os
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from clickhouse_node import Node
from lab_testing import Lab, check_equal, ends_of, rounded, sums_agree
from served_pages import Pages
from sojourn_testing import check, check_sums, json_rows, main

ESTIMATES = ("untimed_calls", "sampled_calls", "error_ns")
UNKNOWN = "of 1 sessions it is not known which times are estimates"
EACH = 6  # sessions before and after
NEWEST = "(session, version) IN (SELECT session, max(version) FROM sojourn.raw_sessions GROUP BY session)"


def estimate(lab, session):
    """Changes a session so that it has estimates on every machine."""
    with sqlite3.connect(lab.database) as database:
        database.execute("UPDATE function_stats SET untimed_calls = calls / 2, sampled_calls = calls - calls / 2, "
                         "error_ns = 1000000000 WHERE session_id = ? AND calls > 1", (session,))


def marks_equal_those_of_the_lab(sojourn, lab, url, uuids):
    """Checks the marks of report and tree. A session without estimates has none."""
    def told(columns, *words):
        rows = [json_rows(sojourn.run([*words, "--json", *more], capture_output=True, text=True).stdout)
                for more in ([lab.database], ["--cluster", url])]
        here, there = (rounded([{name: row[name] for name in columns} for row in side]) for side in rows)
        check(here and here == there, f"{words}: {here} in the lab, {there} in the cluster")
    for uuid, is_estimated in ((uuids[0], True), (uuids[-1], False)):
        told(("function", "untimed", "error_ns"), "report", "--session", uuid, "--all")
        told(("name", "depth", "is_estimate"), "tree", "--session", uuid, "--all")
        for command in ("report", "tree"):
            done = sojourn.run([command, "--session", uuid, "--all", "--cluster", url], capture_output=True, text=True)
            text = done.stdout
            check("not known" not in done.stderr, done.stderr)
            check("main" in text and ("\n~ estimates" in text) == is_estimated and (text.count("~") > 1) == is_estimated,
                  f"{command}: {text}")


def comparisons_respect_the_error(sojourn, lab, url):
    """A difference within twice the error is inconclusive, and different clocks give a warning."""
    verdicts = []
    for more in ([lab.database], ["--cluster", url]):
        done = sojourn.run(["diff", "--json", "--all", "name:before", "name:after", *more], capture_output=True, text=True)
        check(f"{EACH} of {EACH} of name:after; they do not contain what reading a clock costs" in done.stderr, f"diff: {done.stderr}")
        verdicts.append({row["name"]: row["verdict"] for row in json_rows(done.stdout)})
    check(verdicts[0] == verdicts[1] and verdicts[0]["ends_step"] == "inconclusive", f"verdicts: {verdicts}")


def pages_mark(sojourn, lab, url):
    server = Pages(sojourn, lab.database)
    pages = Pages(sojourn, "--cluster", url)
    try:
        sums_agree(pages, server)
    finally:
        for one in (pages, server):
            one.stop()


def check_all_marks(sojourn, lab, url, uuids):
    marks_equal_those_of_the_lab(sojourn, lab, url, uuids)
    comparisons_respect_the_error(sojourn, lab, url)
    pages_mark(sojourn, lab, url)


def to_version_5(node):
    """Makes the tables as init of version 5 made them."""
    shown = ", ".join(row[0] for row in node.rows("DESCRIBE TABLE function_stats") if row[0] not in ESTIMATES)
    for statement in ("DROP TABLE sojourn.function_stats",
                      "ALTER TABLE sojourn.raw_function_stats " + ", ".join(f"DROP COLUMN {name}" for name in ESTIMATES),
                      f"CREATE VIEW sojourn.function_stats AS SELECT {shown} FROM sojourn.raw_function_stats WHERE {NEWEST}",
                      "DROP TABLE sojourn.schema_version",
                      "CREATE TABLE sojourn.schema_version (version UInt64, cluster String) ENGINE = TinyLog",
                      "INSERT INTO sojourn.schema_version VALUES (5, '')"):
        node.ask(statement)


def from_version_5(sojourn, node, lab):
    """init adds the columns, in which old rows say that nothing is known. Then all sessions are forwarded again."""
    to_version_5(node)
    before = node.rows("SELECT count(), sum(calls) FROM function_stats")
    with sqlite3.connect(lab.database) as database:  # as the previous version noted them
        database.execute("UPDATE forwarded_sessions SET content = '4' || substr(content, 2)")
    lab.forward("send", node.url, code=1, says='run "sojourn forward init" with it again')
    for _ in range(2):
        lab.forward("init", node.url)
        check(node.rows("SELECT count(), sum(calls) FROM function_stats") == before, "rows were lost")
    check(node.rows("SELECT countIf(isNotNull(untimed_calls)) FROM function_stats") == [["0"]], "old rows claim to know")
    done = sojourn.run(["report", "--cluster", node.url], capture_output=True, text=True)
    check(done.returncode == 0 and "main" in done.stdout and f"; {UNKNOWN}" in done.stderr, f"a report of old rows: {done.stderr}")
    lab.forward("-o", sojourn.path("copy.db"), "fetch", node.url, says=f"warning: {UNKNOWN}")
    lab.forward("send", node.url, says=f"{lab.sums('sessions')[0]} sessions were sent")
    check_equal(node, [lab])
    sampled = sojourn.sql(lab.database, "SELECT sum(sampled_calls) AS n FROM function_stats")[0]["n"]
    check(node.rows("SELECT countIf(isNull(untimed_calls)), sum(sampled_calls) FROM function_stats") == [["0", str(sampled)]],
          "the lab's rows do not say what they know")


def test(sojourn, _):
    ends = ends_of(sojourn)
    node = Node(sojourn.path("node"))
    lab = Lab(sojourn, "lab.db", ends)
    for name in ("before", "after"):
        for _ in range(EACH):
            lab.record("return", "--name", name)
    check_sums(sojourn, lab.database)
    with sqlite3.connect(lab.database) as database:  # a difference that would be certain without the errors
        database.execute("UPDATE call_paths AS s SET self_ns = 100000000, total_ns = 100000000, histogram = (SELECT m.histogram FROM "
                         "function_stats m JOIN functions f USING (function_id) WHERE m.session_id = s.session_id AND f.name = 'main') "
                         "FROM functions f WHERE f.function_id = s.function_id AND f.name = 'ends_step' AND s.session_id > ?", (EACH,))
    exact = json_rows(sojourn.run(["diff", "--json", "--all", "name:before", "name:after", lab.database], capture_output=True).stdout)
    check({row["name"]: row["verdict"] for row in exact}["ends_step"] == "slower", f"without estimates: {exact}")
    for session in range(EACH + 1, 2 * EACH + 1):
        estimate(lab, session)
    uuids = [row["uuid"] for row in sojourn.sql(lab.database, "SELECT lower(hex(uuid)) AS uuid FROM sessions ORDER BY session_id DESC")]
    try:
        node.start()
        lab.forward("init", node.url)
        lab.forward("send", node.url, says=f"{2 * EACH} sessions were sent")
        check_equal(node, [lab])
        check_all_marks(sojourn, lab, node.url, uuids)
        from_version_5(sojourn, node, lab)
        check_all_marks(sojourn, lab, node.url, uuids)
    finally:
        node.stop()


if __name__ == "__main__":
    main(test, checks_sums=False)  # the test writes its own figures into databases
