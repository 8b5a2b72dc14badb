#!/usr/bin/env python3
"""Calls that are open at the end of a recording count up to that end and are marked, in traces and profiles. This
holds in `report`, trees, SQL, exports and comparisons. During a recording, `report` shows how many calls are open,
and since when.

open_at_end.py BUILD_FOLDER SAMPLE
"""
import contextlib
import glob
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, check_sums, children, json_rows, main, wait_for

SPUN_NS = {"small": 2 * 200_000, "work": 20_000_000 + 2 * 200_000}  # the least time that each function runs
ROUND_NS = 2_000_000  # a round of `loop`, without small
ROUNDED_NS = 3  # each time is rounded
EXITS = {"main": (1, 1), "work": (1, 1), "small": (2, 0)}  # calls, and how many of them are open


def output_of(sojourn, *words):
    done = sojourn.run(words, capture_output=True, text=True)
    check(done.returncode == 0, f"{words}: {done.stderr}")
    return done.stdout


def by_name(rows, name="name"):
    return {row[name]: row for row in rows}


def told(sojourn, database, session):
    """Returns the calls and open calls that each view shows."""
    chosen = ("--session", str(session))
    report = json_rows(output_of(sojourn, "report", "--json", *chosen, database))
    yield "report", {row["function"]: (row["calls"], row["open"]) for row in report}
    tree = json_rows(output_of(sojourn, "tree", "--json", "--all", *chosen, database))
    yield "tree", {row["name"]: (row["calls"], row["open_calls"]) for row in tree}
    shown = output_of(sojourn, "tree", "--all", *chosen, database)
    yield "tree for people", {name: (int(calls), int("open" in mark)) for calls, mark, name in
                              re.findall(r"(\d+)( open)? +(\w+)$", shown, re.MULTILINE)}
    lines = [line.split() for line in output_of(sojourn, "export", "--format", "report.txt", *chosen, database).splitlines()]
    head, = [line for line in lines if "self_ns" in line]
    yield "report.txt", {line[-1]: (int(line[0]), int(line[head.index("open")])) for line in lines if len(line) == len(head)
                         and line != head}
    flame = re.findall(r"<title>(\w+)\n[^<]*?(\d+) calls?(?:, (\d+) open)?</title>", output_of(sojourn, "flame", "-o", "-", *chosen, database))
    yield "flame graph", {name: (int(calls), int(open_calls or 0)) for name, calls, open_calls in flame}


def times(sojourn, database, session):
    """Returns the time of each function, with the self time from the folded paths."""
    stats = by_name(sojourn.sql(database, "SELECT name, calls, total_ns, self_ns FROM function_stats JOIN functions "
                                          f"USING (function_id) WHERE session_id = {session}"))
    folded = output_of(sojourn, "export", "--format", "folded", "--session", str(session), database)
    own = {line.split()[0].split(";")[-1]: int(line.split()[1]) for line in folded.splitlines()}
    check(own == {name: row["self_ns"] for name, row in stats.items()}, f"folded: {own}, not {stats}")
    for name, least_ns in SPUN_NS.items():
        check(stats[name]["total_ns"] >= least_ns, f"{name} took {least_ns} ns at least: {stats}")
    check(abs(stats["main"]["total_ns"] - sum(own.values())) <= ROUNDED_NS, f"all time lies in main: {stats}")
    return stats


def single_calls(sojourn, database, stats):
    """Exports of single calls of a trace give an open call a begin. Where a format needs an end, it is the end of
    the thread."""
    calls = sojourn.sql(database, "SELECT name, ending, end_ns FROM calls JOIN functions USING (function_id) WHERE session_id = 1")
    ends = {row["end_ns"] for row in calls if row["ending"] == "open"}
    check(len(ends) == 1 and max(row["end_ns"] for row in calls) in ends, f"open calls end with their thread: {calls}")
    text = output_of(sojourn, "export", "--format", "function.txt", "--session", "1", database)
    check(sorted(re.findall(r"enter:(\w+)", text)) == ["main", "small", "small", "work"] and
          re.findall(r"leave:(\w+)ret", text) == ["small", "small"], f"function.txt: {text}")
    events = json.loads(output_of(sojourn, "export", "--format", "chrome-json", "--session", "1", database))["traceEvents"]
    spans = {}
    for event in events:
        if event["ph"] in "BE":
            spans.setdefault(event["name"], []).append(event)
    check({name for name, pair in spans.items() if pair[0].get("cat") == "open"} == {"main", "work"}, f"chrome-json: {events}")
    for name in ("main", "work"):
        begin, end = spans[name]
        check(abs((end["ts"] - begin["ts"]) * 1000 - stats[name]["total_ns"]) < 2, f"chrome-json: {name} took {begin} to {end}, {stats[name]}")


def exits(sojourn, program):
    database = sojourn.path("exits.db")
    for options in ((), ("--profile",)):
        done, _ = sojourn.record([program, "exit"], database, options)
        check(done.returncode == 0, f"record: {done.stderr}")
    check_accounts(sojourn, database)
    stats = [times(sojourn, database, session) for session in (1, 2)]
    for session in (1, 2):
        for view, said in told(sojourn, database, session):
            check(said == EXITS, f"{view} of session {session}: {said}")
        open_paths = sojourn.sql(database, f"SELECT name, o.open_calls, path_id FROM open_paths({session}) AS o JOIN call_paths "
                                           "USING (path_id) JOIN functions USING (function_id) ORDER BY depth")
        check([(row["name"], row["open_calls"]) for row in open_paths] == [("main", 1), ("work", 1)], f"open_paths: {open_paths}")
        head = output_of(sojourn, "report", "--session", str(session), database)
        check("4 calls, 3 functions, 1 thread; none lost; 2 open at the end\n" in head, f"report: {head}")
    single_calls(sojourn, database, stats[0])
    rows = by_name(json_rows(output_of(sojourn, "diff", "--json", "--all", "1", "2", database)))
    for name in EXITS:
        there = [(rows[name][f"calls_{side}"], rows[name][f"self_ns_{side}"]) for side in "ab"]
        check(there == [(row[name]["calls"], row[name]["self_ns"]) for row in stats], f"diff: {name}: {there}, not {stats}")


def loops(sojourn, program, mode):
    """The open calls of a program that keeps running last as long as the recording."""
    database = sojourn.path("loops.db")
    session = "(SELECT max(session_id) FROM sessions)"
    with subprocess.Popen([program, "loop"], stdout=subprocess.PIPE) as loop:
        loop.stdout.readline()
        recorder = subprocess.Popen([sojourn.program, "attach", "-q", *mode, "-o", database, str(loop.pid)],
                                    env=sojourn.environment)
        if not mode:
            live = wait_for("open calls", lambda: sojourn.sql_once_made(
                database, "SELECT name, is_counted, start_ns FROM open_now(1) JOIN functions USING (function_id)"))
            check([(row["name"], row["is_counted"]) for row in live[:2]] == [("main", 0), ("loop", 0)], f"open_now: {live}")
            head = output_of(sojourn, "report", database)
            since = re.search(r"; ([23]) open since ([0-9.]+ [mun]?s), not counted yet\n", head)
            check(since is not None, f"report of what is recorded: {head}")
        wait_for("calls", lambda: sojourn.sql_once_made(
            database, f"SELECT 1 FROM sessions WHERE session_id = {session} AND (stored_calls > 9 OR {int(bool(mode))})"))
        recorder.terminate()
        recorder.wait()
        loop.kill()
    stats = by_name(sojourn.sql(database, "SELECT name, calls, total_ns, self_ns FROM function_stats JOIN functions USING "
                                          f"(function_id) WHERE session_id = {session}"))
    counted = {row["name"]: row["is_counted"] for row in sojourn.sql(
        database, f"SELECT name, is_counted FROM open_now({session}) JOIN functions USING (function_id)")}
    check({"main": 1, "loop": 1}.items() <= counted.items(), f"open calls: {counted}")
    check(stats["main"]["calls"] == stats["loop"]["calls"] == 1, f"{stats}")
    small = stats.get("small", {"calls": 1, "total_ns": 0})
    check(abs(stats["loop"]["total_ns"] - stats["loop"]["self_ns"] - small["total_ns"]) <= ROUNDED_NS and
          abs(stats["main"]["total_ns"] - stats["main"]["self_ns"] - stats["loop"]["total_ns"]) <= ROUNDED_NS,
          f"a call has its own time and that of its callees: {stats}")
    least_ns = (small["calls"] - 1) * ROUND_NS * 0.99  # the program uses another clock
    check(stats["loop"]["self_ns"] >= least_ns, f"the loop spins between two calls: {stats}")
    check_accounts(sojourn, database)


def killed(sojourn, program):
    """The sums of a recorder that was killed agree, before its session is finished and afterwards."""
    database = sojourn.path("killed.db")
    small = ("SELECT 1 FROM call_paths JOIN functions USING (function_id) WHERE name = 'small' GROUP BY 1 "
             "HAVING sum(total_ns) > (SELECT sum(total_ns) FROM call_paths JOIN functions USING (function_id) WHERE name = 'again')")
    app = kill_recorder(sojourn, [program, "again"], [], database, lambda: sojourn.sql_once_made(database, small))
    check_sums(sojourn, database)
    finish_killed(sojourn, app, database, {"main": (1, 1), "again": (2, 1)})


def killed_profile(sojourn, program):
    """The open calls of a profile are those of its last checkpoint."""
    database = sojourn.path("killed-profile.db")
    checkpoints = set()

    def has_two():
        for path in glob.glob(sojourn.path("sojourn/*/profile-sums")):
            with contextlib.suppress(FileNotFoundError):
                checkpoints.add(os.stat(path).st_mtime_ns)
        return len(checkpoints) > 1

    app = kill_recorder(sojourn, [program, "again"], ["--profile"], database, has_two)
    finish_killed(sojourn, app, database, {"main": (1, 1), "again": (2, 1)})


def killed_in_recursion(sojourn, program):
    """The outermost call of a recursive function is open: the sum by a caller has only inner calls, the function's
    sum none yet."""
    database = sojourn.path("killed-recursion.db")
    inner = ("SELECT 1 FROM call_edges AS e JOIN functions AS f ON f.function_id = e.callee_function_id "
             "WHERE f.name = 'recurse' AND e.total_ns > 0")
    app = kill_recorder(sojourn, [program, "recurse"], [], database, lambda: sojourn.sql_once_made(database, inner))
    check_sums(sojourn, database)
    wait_for("the program ends", lambda: not os.path.exists(f"/proc/{app}"))
    output_of(sojourn, "flush")
    check_accounts(sojourn, database)
    sums = sojourn.sql(database, "SELECT s.total_ns AS whole, max(e.total_ns) AS by_one FROM function_stats AS s JOIN "
                                 "functions AS f USING (function_id) JOIN call_edges AS e ON e.callee_function_id = "
                                 "s.function_id WHERE f.name = 'recurse'")[0]
    check(sums["whole"] >= sums["by_one"] > 0, f"all calls took as long as those by one caller: {sums}")


def kill_recorder(sojourn, command, mode, database, is_time):
    """Kills the recorder of a program and then the program. Returns the program's pid."""
    recorder = subprocess.Popen([sojourn.program, "record", "-q", *mode, "-o", database, "--", *command],
                                env=sojourn.environment, stdout=subprocess.DEVNULL)
    wait_for("sums of what the open call has called", is_time)
    app, = children(recorder.pid)
    recorder.kill()
    recorder.wait()
    os.kill(app, signal.SIGKILL)
    return app


def finish_killed(sojourn, app, database, expected):
    """Finishes the session of a killed recorder. Its open calls are counted."""
    wait_for("the program ends", lambda: not os.path.exists(f"/proc/{app}"))
    output_of(sojourn, "flush")
    check_accounts(sojourn, database)
    for view, said in told(sojourn, database, 1):
        known = {name: said.get(name) for name in expected}
        check(known == expected or view == "tree for people", f"{view} of a killed recorder: {said}")
    took = by_name(sojourn.sql(database, "SELECT name, total_ns FROM call_paths JOIN functions USING (function_id) "
                                         "WHERE name <> 'small' OR parent_path_id IS NOT NULL"))
    check(took["main"]["total_ns"] >= took["again"]["total_ns"] >= took["small"]["total_ns"] > 0,
          f"callers took as long as their callees: {took}")


def test(sojourn, arguments):
    sojourn.environment["XDG_RUNTIME_DIR"] = sojourn.folder
    exits(sojourn, arguments[0])
    loops(sojourn, arguments[0], [])
    loops(sojourn, arguments[0], ["--profile"])
    killed(sojourn, arguments[0])
    killed_profile(sojourn, arguments[0])
    killed_in_recursion(sojourn, arguments[0])


if __name__ == "__main__":
    main(test)
