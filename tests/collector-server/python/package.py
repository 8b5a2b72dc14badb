#!/usr/bin/env python3
"""The Python package answers what `sojourn sql` answers, as dictionaries and as data frames, and says what is wrong.

package.py BUILD_FOLDER SOURCE_FOLDER
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "system", "support"))
from sojourn_testing import check, json_rows, main


def asked(tool, database, sql):
    done = tool.run(["sql", "--json", sql, database], capture_output=True, text=True)
    check(done.returncode == 0, f"{sql}: {done.stderr}")
    return json_rows(done.stdout)


def refused(package, call, *words):
    try:
        call()
    except package.SojournError as error:
        check(all(word in str(error) for word in words), f"the error does not say {words}: {error}")
    else:
        check(False, f"no error that says {words}")


def test(tool, arguments):
    build = os.path.dirname(os.path.dirname(tool.program))
    database = tool.path("run #1.db")
    done = tool.run(["record", "-q", "-o", database, "--name", "nightly", "--",
                     os.path.join(build, "tests", "samples", "gcc-O2", "s_threads")], capture_output=True, text=True)
    check(done.returncode == 0, f"record: {done.stderr}")
    os.environ["SOJOURN_EXTENSION"] = os.path.join(build, "lib", "libsojourn-sqlite.so")
    sys.path.insert(0, os.path.join(arguments[0], "collector-server", "python"))
    import sojourn  # pylint: disable=import-outside-toplevel
    with sojourn.open(database) as lab:
        (session,) = lab.sessions().list()
        check(session["name"] == "nightly" and session["lost_calls"] == 0, f"sessions: {session}")
        (stored,) = asked(tool, database, "SELECT count(*) AS calls, sum(duration_ns) AS ns FROM calls")
        frame = lab.calls().frame()
        check(len(frame) == stored["calls"] == session["calls"] and int(frame["duration_ns"].sum()) == stored["ns"],
              f"calls: {len(frame)}, not {stored}")
        work = lab.calls(session="nightly", function="s_thread_*", at_least_ns=1).list()
        (wanted,) = asked(tool, database, "SELECT count(*) AS calls, min(start_ns) AS first FROM calls JOIN functions USING "
                                          "(function_id) WHERE name GLOB 's_thread_*' AND duration_ns >= 1")
        check(len(work) == wanted["calls"] > 0 and min(call["start_ns"] for call in work) == wanted["first"], f"chosen: {work[:2]}")
        one = work[0]
        check(len(lab.calls(thread=one["thread"], module="s_threads", from_ns=one["start_ns"], to_ns=one["start_ns"], limit=1)
                  .list()) == 1, "a moment of a thread has no call")
        sums = {row["function"]: (row["calls"], row["self_ns"]) for row in lab.functions(session["uuid"][:8])}
        check(sums == {row["name"]: (row["calls"], row["self_ns"]) for row in asked(
            tool, database, "SELECT name, calls, self_ns FROM function_stats JOIN functions USING (function_id)")}, f"sums: {sums}")
        check(sum(row["calls"] for row in lab.tree()) == stored["calls"], "the tree has other calls")
        check(lab.losses().list() == [] and lab.values(session["session_id"]).columns[0] == "call_id", "losses or values")
        check(lab.query("SELECT :a + 1 AS b", a=2).list() == [{"b": 3}], "a parameter")
        refused(sojourn, lambda: lab.functions("nobody"), "'nobody'", "is not there")
        refused(sojourn, lambda: lab.query("DELETE FROM sessions").list(), "readonly")
        refused(sojourn, lambda: lab.query("SELECT nothing"), "nothing")
    refused(sojourn, lambda: sojourn.open(tool.path("none.db")), "does not exist")
    with open(tool.path("text.db"), "w", encoding="utf-8") as file:
        file.write("no database" * 100)
    refused(sojourn, lambda: sojourn.open(tool.path("text.db")), "text.db", "not a database")


main(test)
