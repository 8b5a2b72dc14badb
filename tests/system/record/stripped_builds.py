#!/usr/bin/env python3
"""A comparison of stripped builds matches functions by their code, or reports that it found no match. Call counts
that never vary are exact. The comparison names the number of sessions that it needs.

stripped_builds.py BUILD_FOLDER
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, json_rows, main, sample_text

RUNS = 5
STRIPPED = "cannot be compared: stripped; add symbols"
WORKERS = ("prepare", "compute", "finish", "main")


def ask(sojourn, *words, code=0):
    done = sojourn.run(words, capture_output=True, text=True)
    check(done.returncode == code, f"{words}: {done.returncode}, not {code}: {done.stdout} {done.stderr}")
    return done


def build(sojourn, folder, *options):
    """Builds the program with and without symbols. Returns both and the addresses of its functions."""
    os.mkdir(sojourn.path(folder))
    named, stripped = (sojourn.path(os.path.join(folder, name)) for name in ("app.named", "app"))
    subprocess.run(["gcc", "-x", "c", "-", "-fno-toplevel-reorder", *options, "-o", named], check=True,
                   input=sample_text("record/reordered.c"), text=True, timeout=PATIENCE_S)
    subprocess.run(["strip", "-o", stripped, named], check=True, timeout=PATIENCE_S)
    listed = subprocess.run(["nm", named], check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout
    symbols = {words[2]: int(words[0], 16) for words in map(str.split, listed.splitlines()) if len(words) == 3}
    return named, stripped, {symbols[name]: name for name in WORKERS}


def record(sojourn, database, name, program, times):
    ask(sojourn, "bench", "-n", str(RUNS), "--name", name, "-o", database, "--", program, str(times))


def differences(sojourn, database, a, b, code=0):
    return json_rows(ask(sojourn, "diff", "--json", f"name:{a}", f"name:{b}", database, code=code).stdout)


def rows_of(sojourn, database, sql):
    return json_rows(ask(sojourn, "sql", "--json", sql, database).stdout)


def functions_are_matched_by_code(sojourn, database, builds):
    rows = differences(sojourn, database, "first", "other_order")
    check(rows[0]["matched_share"] == 1 and rows[0]["is_comparable"] == 1, f"matched: {rows[0]}")
    offsets = {row["function_id"]: row["offset"] for row in rows_of(sojourn, database, "SELECT function_id, offset FROM functions")}
    pairs = {tuple(builds[build][2].get(offsets[row[f"function_id_{side}"]]) for side, build in (("a", 0), ("b", 1)))
             for row in rows[1:]}
    check(pairs == {(name, name) for name in WORKERS}, f"pairs: {pairs}")
    text = ask(sojourn, "diff", "name:first", "name:other_order", database).stdout
    check("Functions without names: 100 % of their time was matched by their code." in text, text)


def p99_by_build_matches_functions_by_code(sojourn, database, builds):
    address = next(offset for offset, name in builds[0][2].items() if name == "compute")
    rows = json_rows(ask(sojourn, "sql", "--json", "--query", "p99_by_build", "--param", f"function=app+{address:#x}",
                                   database).stdout)
    names = [f"app+{offset:#x}" for build in builds[:2] for offset, name in build[2].items() if name == "compute"]
    check(len({row["build"] for row in rows}) == len(rows) and {row["function"] for row in rows} >= set(names),
          f"p99 by build: {rows}, not {names}")


def other_code_is_not_compared(sojourn, database):
    for command in (["diff", "name:first", "name:unoptimized"], ["check", "--baseline", "name:first", "name:unoptimized"]):
        done = ask(sojourn, *command, database, code=5)
        check(STRIPPED in done.stderr and "regression" not in done.stdout.lower(), f"{command}: {done.stdout} {done.stderr}")
    rows = differences(sojourn, database, "first", "unoptimized", code=5)
    check(rows[0]["is_comparable"] == 0 and {row["verdict"] for row in rows[1:]} == {"unmatched"}, f"unmatched: {rows}")
    changed = ask(sojourn, "sql", "--json", "--query", "changed", "--param", "a=name:first", "--param", "b=name:unoptimized",
                           database).stdout
    check(json_rows(changed) == [], f"changed: {changed}")


def diff_reports_counts_and_needed_sessions(sojourn, database):
    done = ask(sojourn, "diff", "name:first", "name:more_calls", database).stdout
    check(any("12.0 % more in all" in line for line in done.splitlines()), done)
    check(f"Too few sessions ({RUNS} and {RUNS}). Record 10 a side: sojourn bench -n 10." in done, done)
    rows = differences(sojourn, database, "first", "more_calls")
    check({row["calls_ratio"] for row in rows[1:]} == {1, 1.12}, f"ratios: {rows}")
    check({row["needed_sessions"] for row in rows} == {RUNS + 1}, f"needed: {rows}")
    ask(sojourn, "diff", "--exit-code", "name:first", "name:more_calls", database, code=4)
    done = ask(sojourn, "diff", "1", "2", database).stdout
    check("Too few sessions (1 and 1). Record 10 a side: sojourn bench -n 10." in done, done)
    done = ask(sojourn, "check", "--baseline", "1", "2", database, code=5).stderr
    check("too few sessions (1 and 1): record 10 a side: sojourn bench -n 10" in done, done)


def symbols_help(sojourn, database, builds):
    for named, _, _ in builds:
        ask(sojourn, "symbols", "add", named, "-d", database)
    rows = differences(sojourn, database, "first", "unoptimized")
    check(rows[0]["is_comparable"] == 1 and {row["name"] for row in rows[1:]} == set(WORKERS), f"with symbols: {rows}")


def test(sojourn, _):
    database = sojourn.path("builds.db")
    builds = [build(sojourn, "first", "-O1"), build(sojourn, "other", "-O1", "-DREVERSED"),
              build(sojourn, "unoptimized", "-O0")]
    for name, program, times in (("first", builds[0], 100), ("other_order", builds[1], 100),
                                 ("unoptimized", builds[2], 100), ("more_calls", builds[0], 112)):
        record(sojourn, database, name, program[1], times)
    functions_are_matched_by_code(sojourn, database, builds)
    p99_by_build_matches_functions_by_code(sojourn, database, builds)
    other_code_is_not_compared(sojourn, database)
    diff_reports_counts_and_needed_sessions(sojourn, database)
    symbols_help(sojourn, database, builds)


if __name__ == "__main__":
    main(test)
