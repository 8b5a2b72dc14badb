#!/usr/bin/env python3
"""Costs of calls of named Java methods: CPU time and allocated bytes lie between what the program measures inside
and outside of each call. Calls are interpreted or compiled, and some end by an exception. Threads have their own
totals.

java_costs.py BUILD_FOLDER SAMPLES_FOLDER
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from java_programs import sample_classes
from sojourn_testing import check, check_accounts, main

MEASURED = ["burn", "allocate", "refuse", "again", "waiting"]
THREADS = ["main", "second", "third"]
ROUND_NS = 20000  # the kernel reads the two clocks of a thread one after the other


def calls_between(sojourn, database, lines, mode):
    rows = sojourn.sql(database, "SELECT f.name, t.name AS thread, c.cpu_ns, c.cpu_self_ns, k.allocated_bytes, k.is_nested, "
                                 "c.ending FROM calls AS c JOIN functions AS f USING (function_id) JOIN threads AS t "
                                 "USING (thread_id) LEFT JOIN call_costs AS k ON k.session_id = c.session_id AND "
                                 "k.call_id = c.call_id WHERE f.name GLOB 'Costs.*' AND k.call_id IS NOT NULL "
                                 "ORDER BY c.start_ns")
    outer = [row for row in rows if not row["is_nested"]]
    check(len(outer) == len(lines) and len(rows) == len(outer) + 3 * len(THREADS), f"{mode}: {len(rows)} calls: {rows}")
    for row, (name, least_ns, most_ns, least_bytes, most_bytes) in zip(outer, lines):
        check(row["name"].startswith(f"Costs.{name}("), f"{mode}: {row} where {name} is")
        check(int(least_ns) - ROUND_NS <= row["cpu_ns"] <= int(most_ns) + ROUND_NS, f"{mode} {name}: {row}, {least_ns} {most_ns}")
        check(int(least_bytes) <= row["allocated_bytes"] <= int(most_bytes),
              f"{mode} {name}: {row}, {least_bytes} {most_bytes}")
        check((row["ending"] == "unwound") == (name == "refuse"), f"{mode}: {row}")
    sums = {row["name"].split("(")[0]: row for row in sojourn.sql(
        database, "SELECT f.name, k.* FROM function_costs AS k JOIN functions AS f USING (function_id)")}
    for name in MEASURED:
        of = [row["allocated_bytes"] for row in outer if row["name"].startswith(f"Costs.{name}(")]
        check(sums[f"Costs.{name}"]["allocated_bytes"] == sum(of), f"{mode}: {sums}")


def threads_have_their_own_costs(sojourn, database, lines, mode):
    rows = {row["name"]: row for row in sojourn.sql(database, "SELECT name, cpu_ns, allocated_bytes FROM threads")}
    for name, cpu_ns, allocated in lines:
        of = rows["java" if name == "main" and name not in rows else name]
        check(of["cpu_ns"] is not None and of["cpu_ns"] >= int(cpu_ns), f"{mode}: {of}, it said {cpu_ns}")
        check(of["allocated_bytes"] is not None and of["allocated_bytes"] >= int(allocated),
              f"{mode}: {of}, it said {allocated}")


def a_stack_overflow_is_reported(sojourn, classes):
    database = sojourn.path("deep.db")
    done, summary = sojourn.record(["java", "-Xint", "-Xss512k", "-cp", classes, "Deep"], database, text=True)
    check(done.returncode == 0, f"{done}")
    depth = int(done.stdout)
    # If a method had no space for an exit probe, the exit of its caller ends the call, too.
    check(depth / 2 < summary["deep_exception_calls"] <= depth + 1, f"{depth} calls: {summary}")
    check("methods with probes need more stack" in " ".join(done.stderr.split()), done.stderr)
    rows = sojourn.sql(database, "SELECT payload ->> 'calls' AS calls FROM reports WHERE kind = 'deep_exception'")
    check(rows == [{"calls": summary["deep_exception_calls"]}], f"{rows}")


def test(sojourn, arguments):
    classes = sample_classes(sojourn)
    a_stack_overflow_is_reported(sojourn, classes)
    options = [part for name in MEASURED for part in ("--cpu-time", f"Costs.{name}")]
    for mode in ("-Xmixed", "-Xint"):
        database = sojourn.path(f"costs{mode}.db")
        done, summary = sojourn.record(["java", mode, "-Xverify:all", "-cp", classes, "Costs"], database,
                                 ["--block-ms", "10000", *options], text=True)
        check(done.returncode == 0 and "deep_exception_calls" not in summary, f"{mode}: {done} {summary}")
        check_accounts(sojourn, database)
        said = [line.split() for line in done.stdout.splitlines()]
        calls_between(sojourn, database, [line for line in said if line[0] != "thread"], mode)
        threads_have_their_own_costs(sojourn, database, [line[1:] for line in said if line[0] == "thread"], mode)


main(test)
