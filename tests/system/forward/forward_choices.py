#!/usr/bin/env python3
"""The user chooses what a lab forwards to a cluster, and what is read there: only some tables; only the newest
sessions; single calls, which stay in the lab until the user forwards them.

forward_choices.py BUILD_FOLDER
"""
import os
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from clickhouse_node import Node
from fleet_testing import free_port
from lab_testing import Lab, answers, check_equal, ends_of
from served_pages import Pages
from sojourn_testing import check, main, wait_for


def quiet(lab, *words):
    """Runs `forward`. Nothing may be pending. Returns its messages."""
    done = lab.sojourn.run(["forward", "--database", lab.database, *words], capture_output=True, text=True)
    check(done.returncode == 0 and " 0 owed" in done.stdout, f"forward {words}: {done}")
    return done.stderr


def some_tables(sojourn, node, labs):
    """A lab forwards only marks, beside the tables that are always forwarded. It reports this, and forwards the
    other tables on request."""
    lab = labs[0]
    lab.forward("--tables", "marks,nothing", "send", node.url, code=1, says='no table "nothing" to forward: give some of call_edges,')
    lab.forward("--tables", "marks", "status", node.url, says=f"{lab.sums('sessions')[0]} owed")
    lab.forward("--tables", "marks", "send", node.url, says=f"{lab.sums('sessions')[0]} sessions were sent")
    own = sqlite3.connect(lab.database).execute("SELECT lower(hex(uuid)) FROM lab").fetchone()[0]
    for table in ("function_stats", "functions", "marks", "call_edges", "call_paths", "slow_calls", "threads", "coverage"):
        there = int(node.rows(f"SELECT count() FROM {table} WHERE session IN (SELECT session FROM sessions WHERE lab = '{own}')")[0][0])
        want = 0 if table not in ("function_stats", "functions", "marks") else lab.sums(table)[0]
        check(there == want, f"{table}: {there} rows of the lab, not {want}")
    answers(sojourn, "--cluster", node.url, "SELECT 1", says="; some labs do not give call_edges, call_paths, commands, coverage, ")
    done = sojourn.run(["report", "--cluster", node.url], capture_output=True, text=True)
    check(done.returncode == 0 and "do not give call_edges" in done.stderr, f"report: {done.stderr}")
    warning = 'warning: sessions were given without the tables ["call_edges",'
    lab.forward("status", node.url, says=warning)
    check("warning" not in quiet(lab, "--tables", "marks", "status", node.url), "a warning beside --tables")
    sent = lab.forward("send", node.url, says=warning)
    check(f"{lab.sums('sessions')[0]} sessions were sent" in sent, f"send: {sent}")
    check("warning" not in quiet(lab, "status", node.url), "a warning when all tables were given")
    check_equal(node, labs)
    check(node.rows("SELECT count() FROM left_out") == [["0"]], "tables are still said to be left out")


def the_collector_forwards_chosen_tables(sojourn, node, labs):
    """Tests the same with `sojournd --forward-tables`, which refuses to start with an unknown table."""
    program = os.path.join(os.path.dirname(sojourn.program), "sojournd")
    command = [program, "--listen", f"tcp://127.0.0.1:{free_port()}", "--database", labs[0].database, "--forward", node.url,
               "--forward-tables"]
    done = subprocess.run([*command, "gaps,all"], capture_output=True, text=True, check=False)
    check(done.returncode == 1 and 'no table "all" to forward' in done.stderr, f"sojournd: {done}")
    collector = subprocess.Popen([*command, "gaps,call_edges"], stderr=subprocess.DEVNULL)
    try:
        wait_for("the list of what is left out", lambda: ["call_paths"] in node.rows("SELECT DISTINCT name FROM left_out"))
        check(["call_edges"] not in node.rows("SELECT DISTINCT name FROM left_out"), "a table that was asked for is left out")
    finally:
        collector.terminate()
        collector.wait()
    labs[0].forward("send", node.url)
    check_equal(node, labs)


def newest_only(sojourn, node):
    """A cluster may have more sessions than a reader needs. Only the newest are read, and the answer says so."""
    ask = ["--cluster", node.url, "--cluster-sessions"]
    newest = [row[0] for row in node.rows("SELECT session FROM sessions ORDER BY started_realtime_ns DESC LIMIT 2")]
    oldest = node.rows("SELECT session FROM sessions ORDER BY started_realtime_ns LIMIT 1")[0][0]
    for uuid in newest:
        done = sojourn.run(["report", "--session", uuid, *ask, "2"], capture_output=True, text=True)
        check(done.returncode == 0 and "; the newest 2 are looked at" in done.stderr, f"report of {uuid}: {done.stderr}")
    done = sojourn.run(["report", "--session", oldest, *ask, "2"], capture_output=True, text=True)
    check(done.returncode == 3 and "; the newest 2 are looked at" in done.stderr, f"report of {oldest}: {done.stderr}")
    done = sojourn.run(["report", "--session", oldest, *ask, "4"], capture_output=True, text=True)
    check(done.returncode == 0 and "newest" not in done.stderr, f"report of {oldest}: {done.stderr}")
    pages = Pages(sojourn, *ask, "2")
    try:
        check(sorted(pages.listed()) == sorted(newest), f"listed: {sorted(pages.listed())}, not {sorted(newest)}")
        check("; the newest 2 are looked at" in pages.get("health")["engine"], f"{pages.get('health')}")
    finally:
        pages.stop()


def single_calls_stay_in_their_lab(sojourn, node, lab):
    """A query for single calls in a copy reports that they stayed in their lab, unless they were recorded as
    totals."""
    lab.record("return", "--profile")
    lab.forward("send", node.url)
    copy = sojourn.path("copy.db")
    lab.forward("-o", copy, "fetch", node.url, "all")
    for mode, says in (("trace", "stayed in their lab (`sojourn forward calls`"), ("profile", "were recorded as totals (mode profile)")):
        session = str(sojourn.sql(copy, f"SELECT max(session_id) AS id FROM sessions WHERE mode = '{mode}'")[0]["id"])
        for words in (["replay"], ["export"], ["export", "--format", "chrome-json"]):
            done = sojourn.run([*words, "--session", session, copy], capture_output=True, text=True)
            check(f"calls of session {session} {says}" in done.stderr, f"{words} of {mode}: {done.stderr}")
    for words in (["report", "--to", "1s"], ["tree", "--from", "0"], ["flame", "--to", "1s", "-o", "-"]):
        for where in ([copy], ["--cluster", node.url]):
            done = sojourn.run([*words, *where], capture_output=True, text=True)
            check(done.returncode == 3 and "or they stayed in their lab" in done.stderr, f"{words} {where}: {done.stderr}")


def test(sojourn, _arguments):
    ends = ends_of(sojourn)
    node = Node(sojourn.path("node"))
    labs = [Lab(sojourn, f"lab{number}.db", ends) for number in range(2)]
    try:
        node.start()
        for lab in (*labs, labs[0], labs[0]):
            lab.record()
        labs[0].enrich()
        labs[0].forward("init", node.url)
        for lab in labs:
            lab.forward("send", node.url)
        check_equal(node, labs)
        some_tables(sojourn, node, labs)
        the_collector_forwards_chosen_tables(sojourn, node, labs)
        newest_only(sojourn, node)
        single_calls_stay_in_their_lab(sojourn, node, labs[0])
    finally:
        node.stop()


if __name__ == "__main__":
    main(test)
