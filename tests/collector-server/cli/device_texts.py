#!/usr/bin/env python3
"""Names that devices send cannot print control sequences on the terminal of a user who reads about stalls, zombies
and threads.

device_texts.py BUILD_FOLDER
"""
import json
import os
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system",
                                "support"))
from sojourn_testing import build_sample, check, main

PAINT = "\x1b[31m"


def painted_stalls(sojourn):
    program, database = build_sample(sojourn, "cli/work.c", "-O1"), sojourn.path("stalls.db")
    sojourn.record([program], database)
    call, = sojourn.sql(database, """SELECT c.session_id, start_ns, end_ns, tid FROM calls c JOIN threads USING (thread_id)
                                     JOIN functions USING (function_id) WHERE functions.name = 'work'""")
    payload = {"watch": PAINT + "loop", "waited_ns": 2, "age_ns": 0, "tid": call["tid"],
               "threads": [{"name": PAINT + "java", "state": PAINT + "BLOCKED", "waits_for": PAINT + "lock",
                            "held_by": PAINT + "holder", "holds": [PAINT + "held"], "frames": [PAINT + "frame"]}]}
    with sqlite3.connect(database) as store:
        store.execute("UPDATE threads SET name = ?", (PAINT + "thread",))
        store.execute("UPDATE functions SET name = ? || name", (PAINT,))
        store.execute("INSERT INTO reports (session_id, number, at_ns, monitor, kind, payload) "
                      "VALUES (?, 1000, ?, 'stall', 'late', ?)",
                      (call["session_id"], (call["start_ns"] + call["end_ns"]) // 2, json.dumps(payload)))
    done = sojourn.run(["stalls", database], capture_output=True, text=True)
    check(done.returncode == 0 and "\x1b" not in done.stdout, f"painted: {done}")
    for name in ("loop", "thread", "work", "java", "BLOCKED", "lock", "holder", "held", "frame"):
        check("?[31m" + name in done.stdout, f"{name} is not reported: {done.stdout}")


def painted_zombies(sojourn):
    database = sojourn.path("zombies.db")
    sojourn.record(["/bin/true"], database)
    payload = {"ancestors": [PAINT + "ancestor"], "values": [PAINT + "value"]}
    with sqlite3.connect(database) as store:
        report = store.execute("INSERT INTO reports (session_id, number, at_ns, monitor, kind, payload) "
                               "VALUES (1, 1000, 1, 'zombies', 'late', ?)", (json.dumps(payload),)).lastrowid
        store.execute("INSERT INTO zombies (zombie_id, fingerprint, kind, used_in, freed_in, allocated_in, reports, "
                      "first_seen_realtime_ns, last_seen_realtime_ns, state, class, selector) "
                      "VALUES (1, '', ?, '', '', '', 1, 1, 1, 'open', ?, ?)",
                      (PAINT + "kind", PAINT + "class", PAINT + "selector"))
        store.execute("INSERT INTO zombie_reports VALUES (?, 1, 1, 1, ?, 1, ?, 1, 1)",
                      (report, PAINT + "thread", PAINT + "access"))
        store.execute("INSERT INTO zombie_frames VALUES (?, 'use', 0, 1, ?, ?, 1, 1)",
                      (report, PAINT + "function", PAINT + "module"))
        store.execute("INSERT INTO zombie_events VALUES (?, 0, ?, 1, 1, 1, ?, NULL)",
                      (report, PAINT + "event", PAINT + "owner"))
    done = sojourn.run(["zombies", "show", "1", "-d", database], capture_output=True, text=True)
    check(done.returncode == 0 and "\x1b" not in done.stdout, f"painted: {done}")
    for name in ("ancestor", "value", "kind", "class", "selector", "thread", "access", "function", "module", "event",
                 "owner"):
        check("?[31m" + name in done.stdout, f"{name} is not reported: {done.stdout}")


def painted_tree(sojourn):
    database = sojourn.path("tree.db")
    sojourn.record([sojourn.path("work")], database)
    with sqlite3.connect(database) as store:
        store.execute("UPDATE threads SET name = ?", (PAINT + "\u009b31mthread",))
    done = sojourn.run(["tree", "--by-thread", database], capture_output=True, text=True)
    check(done.returncode == 0 and "?[31m?31mthread" in done.stdout, f"painted: {done}")


def test(sojourn, _arguments):
    painted_stalls(sojourn)
    painted_tree(sojourn)
    painted_zombies(sojourn)


if __name__ == "__main__":
    main(test)
