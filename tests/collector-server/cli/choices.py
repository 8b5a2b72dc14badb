#!/usr/bin/env python3
"""The figures of report, tree and flame for some calls - of a thread, a window, a phase, of some functions, of
their callers - equal sums over the rows of `calls`.

choices.py BUILD_FOLDER
"""
import json
import os
import sqlite3
import subprocess
import sys
from collections import defaultdict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system",
                                "support"))
from sojourn_testing import build_sample, check, json_rows, main


def rows_of(sojourn, *arguments):
    done = sojourn.run([*arguments, "--json"], capture_output=True, text=True)
    check(done.returncode == 0, f"{arguments}: {done.returncode}: {done.stderr}")
    return json_rows(done.stdout)


class Calls:
    """The calls of a session, and sums over some of them that the test computes."""

    def __init__(self, sojourn, database):
        sql = ("SELECT c.*, f.name, t.number AS thread FROM calls c JOIN functions f USING "
               "(function_id) JOIN threads t USING (thread_id)")
        self.rows = rows_of(sojourn, "sql", sql, database)
        self.by_id = {row["call_id"]: row for row in self.rows}

    def callers(self, row):
        found = []
        while row["parent_id"] is not None:
            row = self.by_id[row["parent_id"]]
            found.append(row)
        return found

    def report(self, chosen):
        ids = {row["call_id"] for row in chosen}
        sums = defaultdict(lambda: [0, 0, 0, 0])
        for row in chosen:
            if row["duration_ns"] is None:
                continue
            one = sums[row["name"]]
            nested = any(above["name"] == row["name"] and above["call_id"] in ids
                         for above in self.callers(row))
            one[0] += 1
            one[1] += 0 if nested else row["duration_ns"]
            one[2] += row["self_ns"]
            one[3] += row["duration_ns"]
        return {name: one for name, one in sums.items() if one[0]}

    def paths(self, chosen):
        sums = defaultdict(lambda: [0, 0])
        for row in chosen:
            if row["duration_ns"] is not None:
                names = tuple(above["name"] for above in reversed(self.callers(row)))
                sums[names + (row["name"],)][0] += 1
                sums[names + (row["name"],)][1] += row["duration_ns"]
        return sums


def close(left, right, count):
    """True if the sums agree. The product's sums are made of ticks and rounded once, the test's of nanoseconds, so
    each call may differ by one."""
    return abs(left - right) <= count + 1


def report_agrees(sojourn, database, calls, options, chosen):
    rows = rows_of(sojourn, "report", *options, database)
    expected = calls.report(chosen)
    check(len(expected) > 1, f"{options}: too little is left to compare")
    check({row["function"] for row in rows} == set(expected), f"{options}: {rows} {expected}")
    for row in rows:
        count, total, own, durations = expected[row["function"]]
        check(row["calls"] == count and close(row["total_ns"], total, count) and
              close(row["self_ns"], own, count), f"{options}: {row} is not {count, total, own}")
        check(abs(row["mean_ns"] - durations / count) <= 2 and row["min_ns"] <= row["mean_ns"] <= row["max_ns"],
              f"{options}: the mean of {row} is not {durations / count}")


def paths_of(rows):
    names = {}
    for row in rows:
        names[row["path_id"]] = names.get(row["parent_path_id"], ()) + (row["name"],)
    return {names[row["path_id"]]: (row["calls"], row["total_ns"]) for row in rows}


def tree_agrees(sojourn, database, calls, options, chosen):
    found = paths_of(rows_of(sojourn, "tree", "--all", *options, database))
    expected = calls.paths(chosen)
    counted = {path: figures for path, figures in found.items() if figures[0]}
    check(set(counted) == set(expected), f"{options}: {set(counted) ^ set(expected)}")
    for path, (count, total) in counted.items():
        # a path lasts as long as the calls below it, and a window may show more of these
        check(count == expected[path][0] and total >= expected[path][1] - count,
              f"{options}: {path}: {count, total} is not {expected[path]}")


def export_agrees(sojourn, database, options, chosen):
    """An export has the chosen calls only, and each ends before its caller does."""
    done = sojourn.run(["export", "--format", "chrome-json", *options, database], capture_output=True, text=True)
    check(done.returncode == 0, f"export {options}: {done.stderr}")
    open_calls = defaultdict(list)
    found = []
    for event in json.loads(done.stdout)["traceEvents"]:
        stack = open_calls[event["tid"]]
        if event["ph"] == "B":
            stack.append(event)
            found.append(event["name"])
        elif event["ph"] == "E":
            began = stack.pop()
            check(began["name"] == event["name"] and began["ts"] <= event["ts"], f"{options}: {began} ends with {event}")
    names = sorted(row["name"] for row in chosen)
    check(len(names) > 1 and sorted(found) == names, f"export {options}: {len(found)} calls, not {len(names)}")
    done = sojourn.run(["export", *options, database], capture_output=True, text=True)
    entered = sorted(line.split("enter:")[1].split(" tid:")[0].split("(")[0] for line in done.stdout.splitlines() if "]enter:" in line)
    check(entered == sorted(name.split("(")[0] for name in names), f"function.txt {options}: {len(entered)} calls, not {len(names)}")


def exported_parts(sojourn, database, calls):
    everything = sorted(calls.rows, key=lambda row: row["start_ns"])
    moments = [everything[len(everything) * part // 8]["start_ns"] for part in (1, 2, 5, 6)]
    with sqlite3.connect(database) as connection:
        for number, at in enumerate(moments):
            connection.execute("INSERT INTO marks (session_id, number, name, is_end, at_ns) VALUES (1, ?, 'twice', ?, ?)",
                               (1100 + number, number % 2, at))
    twice = [row for row in everything if moments[0] <= row["start_ns"] < moments[1] or moments[2] <= row["start_ns"] < moments[3]]
    below = [row for row in everything if any(one["name"] == "s_thread_work" for one in (row, *calls.callers(row)))]
    shallow = [row for row in everything if row["depth"] <= 1]
    thread = below[0]["thread"]
    on_thread = [row for row in everything if row["thread"] == thread]
    for options, chosen in (([], everything), (["--mark", "twice"], twice), (["--function", "s_thread_work"], below),
                            (["--depth", "1"], shallow), (["--depth", str(2**63 - 1)], everything), (["--thread", str(thread)], on_thread)):
        export_agrees(sojourn, database, options, chosen)
    done = sojourn.run(["export", "--format", "callgrind", "--mark", "twice", database], capture_output=True, text=True)
    check(done.returncode == 2 and "whole sessions" in done.stderr, f"a part as callgrind: {done}")
    page = sojourn.path("part.html")
    done = sojourn.run(["export", "-o", page, "--depth", "1", database], capture_output=True, text=True)
    check(done.returncode == 2 and "html is made of the sums of whole sessions" in done.stderr, f"a part as a page: {done}")
    done = sojourn.run(["export", "-o", page, database], capture_output=True, text=True)
    with open(page, "rb") as file:
        check(done.returncode == 0 and file.read(15).lower() == b"<!doctype html>", f"the name of a page: {done}")


def parts(sojourn, database, calls):
    everything = sorted(calls.rows, key=lambda row: row["start_ns"])
    early, late = (everything[len(everything) * part // 8]["start_ns"] for part in (3, 6))
    thread = next(row["thread"] for row in everything if row["name"] == "s_thread_work")
    window = ["--from", f"{early}ns", "--to", f"{late}ns"]
    inside = [row for row in everything if early <= row["start_ns"] <= late]
    on_thread = [row for row in everything if row["thread"] == thread]
    connection = sqlite3.connect(database)
    for number, (at, is_end) in enumerate(((early, 0), (late, 1))):
        connection.execute("INSERT INTO marks (session_id, number, name, is_end, at_ns) "
                           "VALUES (1, ?, 'phase', ?, ?)", (1000 + number, is_end, at))
    connection.commit()
    connection.close()
    in_phase = [row for row in everything if early <= row["start_ns"] < late]
    both = [row for row in on_thread if early <= row["start_ns"] <= late] or on_thread
    for options, chosen in (([], everything), (window, inside),
                            (["--thread", str(thread)], on_thread), (["--mark", "phase"], in_phase),
                            (["--process", "s_threads"], everything),
                            ([*(window if both is not on_thread else []), "--thread", str(thread)],
                             both)):
        report_agrees(sojourn, database, calls, options, chosen)
        tree_agrees(sojourn, database, calls, options, chosen)


def functions(sojourn, database, calls):
    names = {row["function"] for row in rows_of(sojourn, "report", "--function", "s_*", database)}
    check(names == {"s_count", "s_leave_thread", "s_thread_work"}, f"--function: {names}")
    rows = rows_of(sojourn, "report", "--module", "s_threads", database)
    check(len(rows) >= 4 and rows_of(sojourn, "report", database) == rows, f"--module: {rows}")
    callees = paths_of(rows_of(sojourn, "tree", "--all", "--function", "s_count", database))
    check({path[0] for path in callees} == {"s_count"}, f"callees: {set(callees)}")
    count = sum(figures[0] for path, figures in callees.items() if path[-1] == "s_count")
    check(count == sum(row["name"] == "s_count" and row["duration_ns"] is not None
                       for row in calls.rows), f"calls below s_count: {count}")
    callers = paths_of(rows_of(sojourn, "tree", "--all", "--callers", "s_count", database))
    expected = defaultdict(int)
    for row in calls.rows:
        if row["name"] == "s_count" and row["duration_ns"] is not None:
            chain = ["s_count"] + [above["name"] for above in calls.callers(row)]
            for length in range(len(chain)):
                expected[tuple(chain[:length + 1])] += 1
    check({path: figures[0] for path, figures in callers.items()} == dict(expected),
          f"callers: {callers} {dict(expected)}")
    whole = sum(row["duration_ns"] for row in calls.rows if row["name"] == "s_count" and
                row["duration_ns"] is not None and
                all(above["name"] != "s_count" for above in calls.callers(row)))
    check(close(callers[("s_count",)][1], whole, 10000), f"{callers[('s_count',)]}: {whole}")


def texts(sojourn, database):
    done = sojourn.run(["tree", "--by-thread", database], capture_output=True, text=True)
    check(done.returncode == 0 and done.stdout.count("\nthread ") >= 24, f"by thread: {done}")
    for options in (["--thread", "nobody"], ["--mark", "nothing"], ["--function", "nothing_*"],
                    ["--process", "nobody"], ["--module", "nothing"]):
        for command in ("report", "tree", "flame"):
            done = sojourn.run([command, *options, database], capture_output=True, text=True)
            check(done.returncode == 3 and options[1].rstrip("_*") in done.stderr or
                  "thread or process" in done.stderr, f"{command} {options}: {done}")
    done = sojourn.run(["tree", "--from", "1000s", "--to", "2000s", database], capture_output=True,
                       text=True)
    check(done.returncode == 3 and "no call" in done.stderr, f"an empty window: {done}")
    done = sojourn.run(["flame", "--callers", "s_count", "-o", "-", database], capture_output=True,
                       text=True)
    check(done.returncode == 0 and "s_thread_work" in done.stdout, f"flame: {done}")
    done = sojourn.run(["tree", "--from", "soon", database], capture_output=True, text=True)
    check(done.returncode == 2 and "--from needs a time" in done.stderr, f"a wrong time: {done}")
    for command in ("report", "tree", "replay"):
        for window in (["--from", "2s", "--to", "1s"], ["--to=1s", "--from=2s"]):
            done = sojourn.run([command, *window, database], capture_output=True, text=True)
            check(done.returncode == 2 and "before --from" in done.stderr, f"{command} {window}: {done}")
        # the last of each option counts
        done = sojourn.run([command, "--from=1s", "--to=0s", "--to=2s", database], capture_output=True, text=True)
        check("before --from" not in done.stderr, f"{command}: {done}")


def recursion(sojourn, samples):
    """The mean covers all calls, also those within calls of the same function."""
    database = sojourn.path("recursion.db")
    done = sojourn.run(["record", "-q", "-o", database, "--", os.path.join(samples, "s_recursion")], capture_output=True, text=True)
    check(done.returncode == 0, f"record: {done}")
    calls = Calls(sojourn, database)
    for options in ([], ["--to", "1000s"]):
        report_agrees(sojourn, database, calls, options, calls.rows)
    means = {row["function"]: row["mean_ns"] for row in rows_of(sojourn, "report", database)}
    asked = rows_of(sojourn, "sql", "--query", "most_called", database)
    check({row["function"]: row["mean_ns"] for row in asked} == means, f"most_called: {asked}, {means}")
    exported = sojourn.run(["export", "--format", "report.txt", "-o", "-", database], capture_output=True, text=True)
    lines = [line.split() for line in exported.stdout.split("\n\n")[1].splitlines()]
    at = lines[0].index("mean_ns")
    check({line[-1]: int(line[at]) for line in lines[1:]} == means, f"report.txt: {exported.stdout}")


def open_calls(sojourn):
    """Calls that are open at the end count as calls. The header gives their number."""
    database, program = sojourn.path("open.db"), build_sample(sojourn, "cli/aborts.c", "-O2")
    done = sojourn.run(["record", "-q", "-o", database, "--", program], capture_output=True, text=True)
    check(os.path.exists(database), f"record: {done}")
    rows = Calls(sojourn, database).rows
    begun = min(row["start_ns"] for row in rows if row["ending"] == "open")
    for options, chosen in (([], rows), (["--function", "main"], [row for row in rows if row["name"] == "main"]),
                            (["--to", f"{begun}ns"], [row for row in rows if row["start_ns"] <= begun])):
        count = sum(row["ending"] == "open" for row in chosen)
        done = sojourn.run(["report", *options, database], capture_output=True, text=True)
        check(count > 0 and f"\n{len(chosen)} call{'s' * (len(chosen) != 1)}, " in done.stdout and f"; {count} open at the end\n" in done.stdout,
              f"{options}: {count} of {len(chosen)} calls are open: {done.stdout}")
    with sqlite3.connect(database) as store:
        store.execute("INSERT INTO gaps (session_id, number, reason, calls, events, start_ns, end_ns) VALUES (1, 90, 'waited', 0, 0, 10, 2010)")
    done = sojourn.run(["report", database], capture_output=True, text=True)
    check("none lost" in done.stdout and "threads waited for the recorder 1 time, 2.00 us in all" in done.stdout, f"a wait: {done}")
    with sqlite3.connect(database) as store:
        for number, modules in ((90, 1), (91, 2)):
            store.execute("INSERT INTO reports (session_id, number, at_ns, monitor, kind, payload) VALUES (1, ?, 0, 'recorder', 'not_recorded', ?)",
                          (number, json.dumps({"processes": 1, "modules": modules, "first": "process 7: out of memory"})))
    lacking = "1 process and 2 modules could not be recorded, so their calls are missing; the first: process 7: out of memory"
    done = sojourn.run(["report", database], capture_output=True, text=True)
    check(f"\n{lacking}\n" in done.stdout and f"of session 1, {lacking}" in done.stderr, f"not recorded: {done}")
    done = sojourn.run(["sessions", database], capture_output=True, text=True)
    check(f"note: of session 1, {lacking}\n" in done.stderr, f"not recorded: {done}")


def own_output(sojourn, database):
    """A command does not overwrite the database that it reads."""
    link = sojourn.path("link.svg")
    os.link(database, link)
    with open(database, "rb") as file:
        before = file.read()
    for command in (["export", "--format", "folded", "-o", database], ["flame", "-o", link],
                    ["report", "--coverage", "--page", database]):
        done = sojourn.run([*command, database], capture_output=True, text=True)
        with open(database, "rb") as file:
            check(done.returncode == 1 and "is the database" in done.stderr and file.read() == before, f"{command}: {done}")


def neighbour(sojourn, samples):
    """A recording leaves a file alone whose name is that of its database with -base behind it."""
    database = sojourn.path("neighbour")
    with open(f"{database}-base", "w", encoding="utf-8") as file:
        file.write("of the user")
    done = sojourn.run(["record", "-q", "-o", database, "--", os.path.join(samples, "s_recursion")], capture_output=True, text=True)
    with open(f"{database}-base", encoding="utf-8") as file:
        check(done.returncode == 0 and file.read() == "of the user", f"a file beside the database: {done}")


def failed_export(sojourn, database):
    """A failed export leaves no new file, and an older one as it was."""
    folder = sojourn.path("exports")
    os.mkdir(folder)
    old = os.path.join(folder, "old.info")
    with open(old, "w", encoding="utf-8") as file:
        file.write("older")
    for name in ("old.info", "new.info"):
        done = sojourn.run(["export", "-o", os.path.join(folder, name), database], capture_output=True, text=True)
        check(done.returncode == 3 and "sojourn symbols" in done.stderr, f"coverage without lines: {done}")
        done = sojourn.run(["flame", "--to", "0", "-o", os.path.join(folder, name), database], capture_output=True, text=True)
        check(done.returncode == 3 and "no call" in done.stderr, f"a flame graph of no call: {done}")
    with open(old, encoding="utf-8") as file:
        check(file.read() == "older", "a failed export changed an older file")
    check(os.listdir(folder) == ["old.info"], f"a failed export left {os.listdir(folder)}")
    done = sojourn.run(["export", "-o", os.path.join(folder, "old.folded"), database], capture_output=True, text=True)
    check(done.returncode == 0 and sorted(os.listdir(folder)) == ["old.folded", "old.info"], f"a whole export: {done}")


def linked_output(sojourn, database):
    """An output through a link is written to the link's target, and an older file keeps its mode. A link to an
    open file, as /dev/stdout is one, stays a link."""
    folder = sojourn.path("linked")
    os.mkdir(folder)
    target, link, opened = (os.path.join(folder, name) for name in ("target.folded", "link.folded", "opened.folded"))
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    os.symlink(target, link)
    os.symlink("/proc/self/fd/1", opened)
    for command in (["export"], ["flame"]):
        done = sojourn.run([*command, "-o", link, database], capture_output=True, text=True)
        check(done.returncode == 0 and os.path.islink(link), f"{command} through a link: {done}")
        check(os.path.getsize(target) > 0 and os.stat(target).st_mode & 0o777 == 0o600, f"{command}: {os.stat(target)}")
        with open(os.path.join(folder, "out"), "w+b") as file:
            done = sojourn.run([*command, "-o", opened, database], stdout=file, stderr=subprocess.PIPE)
            with open(target, "rb") as other:
                check(done.returncode == 0 and os.path.islink(opened) and file.read() == other.read(), f"{command}: {done}")
    os.unlink(link)
    os.symlink(os.path.join(folder, "fresh.folded"), link)
    done = sojourn.run(["export", "-o", link, database], capture_output=True, text=True)
    check(done.returncode == 0 and os.path.islink(link), f"through a dangling link: {done}")
    check(sorted(os.listdir(folder)) == ["fresh.folded", "link.folded", "opened.folded", "out", "target.folded"],
          f"{os.listdir(folder)}")


def digits(sojourn, database):
    """A uuid that begins with digits only, as lists show it, names its session."""
    connection = sqlite3.connect(database)
    (old,), = connection.execute("SELECT uuid FROM sessions")
    connection.execute("UPDATE sessions SET uuid = ?", (bytes.fromhex("20261126b0") + old[5:],))
    connection.commit()
    connection.close()
    for arguments in (["report", "--session", "20261126"], ["diff", "20261126", "1"], ["diff", "all+20261126", "20261126a"]):
        done = sojourn.run([*arguments, database], capture_output=True, text=True)
        absent = arguments[-1].endswith("a")
        check(done.returncode == (3 if absent else 0), f"{arguments}: {done}")
    done = sojourn.run(["report", "--session", "20261127", database], capture_output=True, text=True)
    check(done.returncode == 3 and "no session '20261127'" in done.stderr, f"another's digits: {done}")


def test(sojourn, _):
    database = sojourn.path("run.db")
    build = os.path.dirname(os.path.dirname(sojourn.program))
    samples = os.path.join(build, "tests", "samples", "gcc-O2")
    program = os.path.join(samples, "s_threads")
    done = sojourn.run(["record", "-o", database, "--", program], capture_output=True, text=True)
    check(done.returncode == 0, f"record: {done}")
    calls = Calls(sojourn, database)
    check(len(calls.rows) > 3000, f"{len(calls.rows)} calls")
    parts(sojourn, database, calls)
    exported_parts(sojourn, database, calls)
    functions(sojourn, database, calls)
    texts(sojourn, database)
    recursion(sojourn, samples)
    open_calls(sojourn)
    own_output(sojourn, database)
    neighbour(sojourn, samples)
    failed_export(sojourn, database)
    linked_output(sojourn, database)
    digits(sojourn, database)


if __name__ == "__main__":
    main(test)
