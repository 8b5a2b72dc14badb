#!/usr/bin/env python3
"""One of two shards is away. Queries, commands and pages return the rows of the other shard as before, and each
answer says that it is partial. Missing rows do not appear as an empty answer. When the shard is back, everything is
there again. An absence that lasts for one query only is noticed, too.

partial_cluster.py BUILD_FOLDER
"""
import http.server
import json
import os
import signal
import sqlite3
import sys
import threading
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from clickhouse_node import Node, lasting_port
from lab_testing import COMPARED, EXACT, Lab, answers, check_equal, ends_of, rounded
from served_pages import Pages
from sojourn_testing import check, json_rows, main, wait_for

PARTIAL = "INCOMPLETE: no answer from 1 of 2 shards"
LEAST = 3  # sessions that each shard has
MOST = 40  # the recordings that the test makes at most to get there


def configure(ports, shard):
    shards = "".join(f"<shard><replica><host>127.0.0.1</host><port>{port}</port></replica></shard>" for port in ports)
    return (f"<remote_servers><labs>{shards}</labs></remote_servers>"
            f"<macros><shard>{shard}</shard><replica>1</replica></macros>")


def sessions_of(node):
    return {row[0] for row in node.rows("SELECT session FROM part_sessions")}


def fill(nodes, lab):
    """Records sessions until both shards have some. The identity of a session decides its shard."""
    for number in range(MOST):
        lab.record("throw" if number % 2 else "return", "--name", f"number {number}")
        with sqlite3.connect(lab.database) as database:
            database.execute("INSERT INTO marks(session_id, number, name, is_end, at_ns, source) "
                             "SELECT max(session_id), 900, 'phase', 0, 1, 'cli' FROM sessions")
        lab.forward("send", nodes[0].url)
        if min(len(sessions_of(node)) for node in nodes) >= LEAST:
            return
    check(False, f"sessions of the shards: {[len(sessions_of(node)) for node in nodes]}")


def said(sojourn, url, *words, code=0, says=PARTIAL):
    done = sojourn.run([*words, "--cluster", url], capture_output=True, text=True)
    check(done.returncode == code and says in done.stderr, f"{words}: {done.returncode} {done.stderr}")
    return done


def numbers_of(sojourn, url, uuids, says):
    """Returns the answers of commands: reports and trees of the sessions, and the difference of the first two."""
    found = {}
    for uuid in uuids:
        rows = json_rows(said(sojourn, url, "report", "--session", uuid, "--all", "--json", says=says).stdout)
        found["report", uuid] = rounded([{name: row[name] for name in EXACT} for row in rows])
        found["tree", uuid] = said(sojourn, url, "tree", "--session", uuid, says=says).stdout
    rows = json_rows(said(sojourn, url, "diff", "--json", *uuids[:2], says=says).stdout)
    found["diff"] = rounded([{name: row[name] for name in COMPARED} for row in rows])
    check(all(found.values()), f"nothing is answered: {found}")
    return found


def commands_answer_in_part(sojourn, url, here, away, whole):
    check(numbers_of(sojourn, url, here, PARTIAL) == whole, "other numbers while a shard is away")
    last = said(sojourn, url, "report", "--json").stdout
    check(len(json_rows(last)) > 0, "no report of the last session that is there")
    said(sojourn, url, "check", "--baseline", here[0], ",".join(here[1:]), code=5)
    said(sojourn, url, "report", "--session", away[0], code=3)
    rows = answers(sojourn, "--cluster", url, "SELECT count() AS n FROM sessions", says=PARTIAL)
    check(rows == [{"n": len(here)}], f"sessions that are there: {rows}, not {len(here)}")
    rows = answers(sojourn, "--cluster", url, "--query", "p99_by_build", "--param", "function=main", says=PARTIAL)
    check(sum(row["sessions"] for row in rows) == len(here), f"p99_by_build: {rows}")
    copy = sojourn.path("partial.db")
    done = sojourn.run(["forward", "-o", copy, "fetch", url, "all"], capture_output=True, text=True)
    check(done.returncode == 0 and PARTIAL in done.stdout and f"{len(here)} sessions" in done.stdout, f"fetch: {done}")


def functions_of(pages, number):
    return pages.text(f"sessions/{number}/functions?limit=500")


def pages_answer_in_part(pages, nodes, here, away):
    """`pages` had listed all sessions before the shard went away, and had read the sums of only the first session
    on the remaining shard."""
    listed = pages.listed()
    check({*here, *away} == set(listed), f"the list: {sorted(listed)}")
    seen = functions_of(pages, listed[here[0]]["id"])
    check(seen[0] == 200 and json.loads(seen[1])["items"], f"functions: {seen}")
    nodes[1].stop(signal.SIGKILL)
    code, text = functions_of(pages, listed[away[0]]["id"])
    check(code == 404 or (code >= 500 and "does not answer" in text), f"sums of a shard that is away: {code} {text}")
    wait_for("it says that the answer is partial", lambda: PARTIAL in pages.get("health")["engine"])
    wait_for("the list follows", lambda: set(pages.listed()) == set(here))
    check(functions_of(pages, listed[here[0]]["id"]) == seen, "what was read is gone")
    code, text = functions_of(pages, listed[here[1]]["id"])
    check(code == 200 and json.loads(text)["items"], f"sums that are read while a shard is away: {code} {text}")
    code, text = functions_of(pages, listed[away[0]]["id"])
    check(code == 404, f"a session that is away: {code} {text}")
    return listed


LIST, COUNT, MARKS = "toString(version) AS version FROM sessions", "FROM sojourn.shards", "FROM marks"
LEFT_OUT = "FROM left_out"


class Blinking(http.server.ThreadingHTTPServer):
    """A proxy to a node. The next `times` queries that contain `words` are asked of the node's own shard only."""

    def __init__(self, node):
        super().__init__(("127.0.0.1", 0), Question)
        self.node, self.url = node, f"http://127.0.0.1:{self.server_address[1]}"
        self.short, self.refused = {}, ""
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def changed(self, question):
        for words, times in self.short.items():
            if words in question and times > 0:
                self.short[words] -= 1
                if words == COUNT:
                    return question.replace(COUNT, "FROM system.one")
                return question.replace("FROM sessions", "FROM part_sessions").replace("FROM marks", "FROM part_marks")
        return question


class Question(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        names = {name: text for name, text in self.headers.items() if name.startswith("X-")}
        asked = urllib.request.Request(self.server.node.url + self.path, self.server.changed(body).encode(), names)
        try:
            if self.server.refused and self.server.refused in body:
                self.send_error(503)
                return
            with urllib.request.urlopen(asked) as answer:
                text = answer.read()
            self.send_response(200)
        except urllib.error.HTTPError as refused:
            text = refused.read()
            self.send_response(refused.code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_words):
        pass


def is_whole(done):
    return done.returncode == 0 and "INCOMPLETE" not in done.stderr


def a_short_shard_outage_is_noticed(sojourn, node, away):
    """A shard is away for one query only. The query is sent once more, or the answer says that it is partial."""
    way = Blinking(node)
    report = ["report", "--session", away, "--cluster", way.url]
    for short in ({LIST: 1}, {MARKS: 1, COUNT: 1}):
        way.short = short
        done = sojourn.run(report, capture_output=True, text=True)
        check(is_whole(done) and not any(short.values()), f"{short}: {done}")
    way.short = {LIST: 2}
    said(sojourn, way.url, *report[:3], code=3, says="INCOMPLETE: shards came or went while the sessions were read")
    way.short = {COUNT: 1}
    answers(sojourn, "--cluster", way.url, "SELECT count() FROM sessions", says=PARTIAL)
    check(is_whole(sojourn.run(["sql", "--cluster", way.url, "SELECT 1"], capture_output=True, text=True)), "one that is whole")
    way.refused = LEFT_OUT
    answers(sojourn, "--cluster", way.url, "SELECT count() FROM sessions", code=1, says="which shards answered is not known: ")
    way.refused = ""
    for short in ({MARKS: 1, COUNT: 1}, {LIST: 2}):
        pages_follow_a_blink(sojourn, way, node, short)
    way.shutdown()
    way.server_close()


def pages_follow_a_blink(sojourn, way, node, short):
    """Marks that one query lacked, and sessions that two lists lacked, are there after the next read."""
    every = {row[0] for row in node.rows("SELECT session FROM sessions")}
    marks = int(node.rows("SELECT count() FROM marks")[0][0])
    way.short = short
    pages = Pages(sojourn, "--cluster", way.url)
    try:
        wait_for("all sessions are listed", lambda: set(pages.listed()) == every and not any(short.values()))
        wait_for("it is whole", lambda: "INCOMPLETE" not in pages.get("health")["engine"])
        check(pages.rows("SELECT count(*) AS n FROM marks") == [{"n": marks}] and marks > 1, f"not {marks} marks")
    finally:
        pages.stop()


def test(sojourn, _arguments):
    ends = ends_of(sojourn)
    ports = [lasting_port(), lasting_port()]
    nodes = [Node(sojourn.path(f"node{shard}"), more=configure(ports, shard), tcp=port) for shard, port in enumerate(ports)]
    lab = Lab(sojourn, "lab.db", ends)
    pages, url = None, nodes[0].url
    try:
        for node in nodes:
            node.start()
        lab.record()
        lab.forward("--shards", "labs", "init", *(node.url for node in nodes))
        fill(nodes, lab)
        here, away = (sorted(sessions_of(node)) for node in nodes)
        whole = numbers_of(sojourn, url, here, "answered by ClickHouse")
        a_short_shard_outage_is_noticed(sojourn, nodes[0], away[0])
        pages = Pages(sojourn, "--cluster", url)
        listed = pages_answer_in_part(pages, nodes, here, away)
        commands_answer_in_part(sojourn, url, here, away, whole)
        lab.record("return", "--name", "while a shard is away")
        lab.forward("send", url, code=1, says="a shard does not answer")
        nodes[1].start()
        lab.forward("send", url)
        check_equal(nodes[0], [lab])
        wait_for("all are listed again", lambda: len(pages.listed()) == len(here) + len(away) + 1)
        again = pages.listed()
        check(all(again[uuid]["id"] == listed[uuid]["id"] for uuid in (*here, *away)), "a session has another id")
        wait_for("it is whole again", lambda: "INCOMPLETE" not in pages.get("health")["engine"])
        code, text = functions_of(pages, again[away[0]]["id"])
        check(code == 200 and json.loads(text)["items"], f"sums of the shard that is back: {code} {text}")
    finally:
        if pages is not None:
            pages.stop()
        for node in nodes:
            node.stop(signal.SIGKILL)


if __name__ == "__main__":
    main(test)
