#!/usr/bin/env python3
"""Tests the end of `sojourn record`: at most twelve lines with the functions that took the most time, the innermost
calls of a crash, the uses of freed memory, and a command for more.

closing_lines.py BUILD_FOLDER
"""
import os
import re
import shlex
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system",
                                "support"))
from sojourn_testing import check, main

FUNCTION = re.compile(r"^  (?:most time|         ) +([0-9.]+) % +\S+ \S+ self +([0-9]+) calls  (.*)$")


def record(sojourn, database, command, *options):
    done = sojourn.run(["record", "-o", database, *options, "--", *command], capture_output=True, text=True)
    # On a slow machine the command may first print what it waits for.
    lines = [line for line in done.stderr.splitlines() if not line.startswith("sojourn: waiting for ")]
    check(lines and lines[0].startswith("sojourn: session "), f"{command}: {done.stderr}")
    check(len(lines) <= 12, f"{len(lines)} lines:\n{done.stderr}")
    return done.returncode, lines


def line_of(lines, label):
    found = [line for line in lines if line.startswith(f"  {label} ")]
    check(len(found) == 1, f"one line '{label}': {lines}")
    return found[0]


def check_functions(sojourn, database, lines):
    told = [FUNCTION.match(line).groups() for line in lines if FUNCTION.match(line)]
    rows = sojourn.sql(database, "SELECT f.name, s.calls, 100.0 * s.self_ns / (SELECT sum(self_ns) FROM "
                       "function_stats) AS share FROM function_stats s JOIN functions f USING (function_id) "
                       "WHERE s.self_ns > 0 ORDER BY s.self_ns DESC LIMIT 5")
    check(len(told) == len(rows) == 5, f"{told}, SQL {rows}")
    for (share, calls, name), row in zip(told, rows):
        check(int(calls) == row["calls"] and name == row["name"], f"{name}: {calls} calls, SQL {row}")
        check(abs(float(share) - row["share"]) <= 0.051, f"{name}: {share} %, SQL {row}")


def next_answers(sojourn, lines):
    words = shlex.split(line_of(lines, "next").split(";")[0])
    check(words[:3] == ["next", "sojourn", "report"], f"{words}")
    done = sojourn.run(words[2:], capture_output=True, text=True)
    check(done.returncode == 0 and "calls" in done.stdout, f"{words}: {done}")


def test(sojourn, _):
    build = os.path.dirname(os.path.dirname(sojourn.program))
    ends = os.path.join(build, "tests", "samples", "ends")

    database = sojourn.path("two words.db")
    code, lines = record(sojourn, database, ["perl", "-e", 'my %h; $h{$_ % 97} .= "x$_" for 1 .. 3000'])
    check(code == 0, f"perl: {code}")
    check_functions(sojourn, database, lines)
    next_answers(sojourn, lines)

    code, lines = record(sojourn, sojourn.path("crash.db"), [ends, "segv"])
    check(code == 139, f"ends segv: {code}")
    crash = line_of(lines, "crashed")
    check("by signal 11, SIGSEGV" in crash and crash.endswith("; in ends_die, called by main"), crash)
    next_answers(sojourn, lines)

    code, lines = record(sojourn, sojourn.path("exit.db"), [ends, "exit"])
    check(code == 7 and not any("crashed" in line for line in lines), f"ends exit: {code}, {lines}")

    freed = os.path.join(build, "tests", "samples", "zombies", "gcc-O0", "heap")
    database = sojourn.path("freed.db")
    _, lines = record(sojourn, database, [freed, "1"], "--policy", "zombies")
    told = line_of(lines, "zombies")
    count = sojourn.sql(database, "SELECT count(*) AS n FROM zombie_reports")[0]["n"]
    check(count > 0 and f" {count} reported" in told, f"{told}, SQL {count}")
    watched = sojourn.sql(database, "SELECT allocations, guarded FROM zombie_coverage")[0]
    memory = line_of(lines, "memory")
    check(f" of {watched['allocations']} allocations" in memory and "watched " in memory, f"{memory}, SQL {watched}")
    done = sojourn.run(shlex.split(told.split(": sojourn ")[1]), capture_output=True, text=True)
    check(done.returncode == 0 and "use_after_free" in done.stdout, f"{told}: {done}")


if __name__ == "__main__":
    main(test)
