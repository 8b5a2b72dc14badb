#!/usr/bin/env python3
"""Every reader of a cluster gets the labs' numbers: fetched copies, pages, `report`, `tree`, `diff` and `check`,
over TLS, too. Changes in the cluster show, and readers leave no files.

forward_reading.py BUILD_FOLDER
"""
import os
import re
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from lab_testing import COMPARED, EXACT, SHOWN, Cluster, answers, json_of, rounded, sums_agree
from served_pages import Pages
from sojourn_testing import PATIENCE_S, check, json_rows, main, wait_for

TREE = ("SELECT p.depth, p.recursive, p.rare, f.name, coalesce(g.name, '') AS caller, sum(p.calls) AS calls,"
        " sum(p.total_ns) AS total_ns, sum(p.self_ns) AS self_ns FROM call_paths p JOIN functions f USING (function_id)"
        " LEFT JOIN call_paths q ON q.path_id = p.parent_path_id"
        " LEFT JOIN functions g ON g.function_id = q.function_id JOIN sessions s ON s.session_id = p.session_id"
        " WHERE lower(hex(s.uuid)) = '{}' GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5, 6, 7")


def a_fetched_copy_gives_the_same_answers(sojourn, node, labs, words):
    """A fetched copy of sessions of all labs answers report, tree and diff as the labs do, and says what it lacks."""
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
    # Typical times come from histograms, whose bins are of ticks in the lab and of nanoseconds in the cluster.
    compared = [rounded([{name: row[name] for name in COMPARED} for row in
                         json_of(sojourn, "diff", sets[0], sets[1], database)]) for database in (labs[0].database, copy)]
    check(compared[0] == compared[1], f"diff: {compared[0]} here, {compared[1]} in the copy")
    done = sojourn.run(["verify", copy], capture_output=True, text=True)
    check(done.returncode == 0 and "sound" in done.stdout, f"verify: {done.stdout}")
    done = sojourn.run(["verify", "--rebuild", "all", copy], capture_output=True, text=True)
    check(len(json_of(sojourn, "report", "--session", sets[0], "--all", copy)) > 0, "rebuilding took the sums away")
    labs[0].forward(*words, "-o", copy, "fetch", node.url, code=1, says="exists already")
    few = sojourn.path("few.db")
    labs[0].forward(*words, "-o", few, "fetch", node.url, sets[0][:20], sets[0], says="1 session, sums only")
    check(len(sojourn.sql(few, "SELECT 1 FROM sessions")) == 1, "a session that was not asked for")
    for wanted, code, says in (("name:nobody", 3, ""), ("what is this", 1, "")):
        lost = sojourn.path("lost.db")
        labs[0].forward(*words, "-o", lost, "fetch", node.url, wanted, code=code, says=says)
        check(not os.path.exists(lost), "a copy that failed is left")


def page_answers(sojourn, database, uuids):
    """Returns the data of the dashboard's pages, for sessions by uuid."""
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
    """Shows the dashboard over a copy of all labs' sessions: list, functions, call tree, and p95 by device and
    build."""
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


def pages_follow(sojourn, node, labs, words):
    """`sojourn ui --cluster` shows the labs' numbers in the list with search, facets and totals, in functions, tree
    and comparison. Changes in the cluster show. The page names the engine that answers, and says if it is away."""
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
    """Ctrl-C during a query of the cluster leaves no files."""
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
    """report, tree, diff and check query the cluster with --cluster, and say so. They leave no files."""
    ask = ["--cluster", node.url, *words]
    lab = labs[0]
    uuids = [row["uuid"] for row in sojourn.sql(lab.database, "SELECT lower(hex(uuid)) AS uuid FROM sessions ORDER BY session_id")]

    def said(*command):
        done = sojourn.run(command, capture_output=True, text=True)
        check(f"answered by ClickHouse 18.16.1 at {node.url}" in done.stderr, f"{command}: {done.stderr}")
        return done
    for uuid in uuids:
        here = json_of(sojourn, "report", "--session", uuid, "--all", lab.database)
        there = json_rows(said("report", "--session", uuid, "--all", "--json", *ask).stdout)
        rows = [rounded([{name: row[name] for name in EXACT} for row in rows]) for rows in (here, there)]
        check(rows[0] and rows[0] == rows[1], f"report of {uuid}: {rows}")
        trees = [re.sub(r"(\d+) open", r"     \1", re.sub(r" *no end |(,| and) \d+ open", "", sojourn.run(["tree", "--session", uuid, *more],
                                                                             capture_output=True, text=True).stdout))
                 for more in ([lab.database], ask)]  # only the lab knows which calls were open
        check(trees[0] and trees[0] == trees[1], f"trees of {uuid}: {trees}")
    sets = [uuids[0], f"{uuids[1]},{uuids[2]}"]
    there = json_rows(said("diff", "--json", *ask, *sets).stdout)
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


def over_tls(sojourn, node, lab, words):
    """https:// works if the node's certificate is trusted, and is refused otherwise."""
    url = f"https://localhost:{node.https}"
    lab.forward(*words, "--cluster-ca", node.certificate, "status", url, says="sessions there")
    rows = answers(sojourn, "--cluster", url, *words, "--cluster-ca", node.certificate, "SELECT count() AS n FROM sessions")
    check(rows == [{"n": int(node.rows("SELECT count() FROM sessions")[0][0])}], f"over TLS: {rows}")
    lab.forward(*words, "status", url, code=1, says="is not reached")
    lab.forward(*words, "--cluster-ca", node.certificate, "status", f"https://127.0.0.1:{node.https}", code=1,
                says="is not reached")


def read_only(sojourn, node, lab, words):
    """A user with readonly = 1, who may not change settings, reads everything. What it may not do is named."""
    reader = [*words, "--cluster-user", "reader"]
    asked = "SELECT session, stored_calls FROM sessions"
    rows = [rounded(answers(sojourn, "--cluster", node.url, *user, asked)) for user in (words, reader)]
    check(rows[0] and rows[0] == rows[1], f"read-only: {rows}")
    reports = [rounded([{name: line[name] for name in EXACT} for line in
                        json_of(sojourn, "report", "--cluster", node.url, *user, "--all")]) for user in (words, reader)]
    check(reports[0] and reports[0] == reports[1], f"reports of a read-only user: {reports}")
    lab.mark_changed()
    lab.forward(*reader, "send", node.url, code=1, says="does not allow this to the user reader")
    lab.forward(*words, "send", node.url)


def test(sojourn, _):
    cluster = Cluster(sojourn, tls=True)
    node, lab, other, words = cluster.node, cluster.lab, cluster.other, cluster.words
    try:
        node.start()
        lab.forward(*words, "init", node.url)
        labs = [lab, other]
        for one in labs:
            one.forward(*words, "send", node.url)
        a_fetched_copy_gives_the_same_answers(sojourn, node, labs, words)
        pages_agree(sojourn, node, labs, words)
        commands_ask(sojourn, node, labs, words)
        pages_follow(sojourn, node, labs, words)
        over_tls(sojourn, node, lab, words)
        read_only(sojourn, node, lab, words)
    finally:
        node.stop()


if __name__ == "__main__":
    main(test)
