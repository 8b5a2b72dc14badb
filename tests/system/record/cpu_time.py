#!/usr/bin/env python3
"""CPU time of each call of a program that works and waits, in several threads, recursively, and ending by a tail
call. It is at least the time that getrusage returns between the first and last action of the call. It is at most
the time between the moments before and after the call.

cpu_time.py BUILD_FOLDER
"""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, json_rows, main, sample_text

THREADS, ROUNDS = 3, 4
TRUNCATED_NS = 2000 # getrusage counts microseconds
SOURCE = sample_text("record/cpu_time.c")


def measured(sojourn, database):
    """Returns the outermost measured calls, in the order of their times."""
    return sojourn.sql(database, """
        SELECT f.name, c.cpu_ns, c.cpu_self_ns, c.duration_ns, c.call_id, k.is_nested
        FROM calls AS c JOIN functions AS f USING (function_id)
        LEFT JOIN call_costs AS k ON k.session_id = c.session_id AND k.call_id = c.call_id
        WHERE f.name GLOB 'cpu_*' ORDER BY c.start_ns""")


def path_sums(sojourn, database):
    return sojourn.sql(database, """
        SELECT f.name, p.depth, c.name AS caller, p.calls, p.cpu_ns, p.cpu_self_ns, p.allocations FROM call_paths AS p
        JOIN functions AS f USING (function_id) LEFT JOIN call_paths AS u ON u.path_id = p.parent_path_id
        LEFT JOIN functions AS c ON c.function_id = u.function_id WHERE f.name GLOB 'cpu_*'
        ORDER BY f.name, p.depth, caller""")


def check_sums(sojourn, database, rows):
    """Sums of call paths and functions equal those of the calls, also when they are computed again, and are shown."""
    of_calls = sojourn.sql(database, """
        SELECT f.name, c.depth, u.name AS caller, count(*) AS calls, sum(c.cpu_ns) AS cpu_ns,
               sum(c.cpu_self_ns) AS cpu_self_ns, NULL AS allocations
        FROM calls AS c JOIN functions AS f USING (function_id)
        LEFT JOIN functions AS u ON u.function_id = c.caller_function_id WHERE f.name GLOB 'cpu_*'
        GROUP BY c.function_id, c.depth, c.caller_function_id ORDER BY f.name, c.depth, caller""")
    check(len(of_calls) >= 9, f"{of_calls}")
    check(path_sums(sojourn, database) == of_calls, f"{path_sums(sojourn, database)}, of calls {of_calls}")
    of_functions = """SELECT s.function_id, s.cpu_ns, s.cpu_self_ns, s.allocations FROM function_stats AS s
        WHERE s.cpu_ns IS NOT NULL ORDER BY 1"""
    before = sojourn.sql(database, of_functions)
    check(before == sojourn.sql(database, "SELECT function_id, cpu_ns, cpu_self_ns, allocations FROM function_costs "
                                          "ORDER BY 1"), f"{before}")
    done = sojourn.run(["verify", "--rebuild", "all", database], capture_output=True, text=True)
    check(done.returncode == 0, f"verify: {done.stdout}{done.stderr}")
    check(path_sums(sojourn, database) == of_calls and sojourn.sql(database, of_functions) == before, "made anew")
    tree = json_rows(sojourn.run(["tree", "--all", "--json", database], capture_output=True, check=True).stdout)
    shown = [(row["name"], row["cpu_ns"]) for row in tree if row["name"].startswith("cpu_")]
    check(sorted(shown) == sorted((row["name"], row["cpu_ns"]) for row in of_calls), f"tree: {shown}")
    check(all(row["cpu_ns"] is None for row in tree if not row["name"].startswith("cpu_")), "unmeasured")
    callers = json_rows(sojourn.run(["tree", "--callers", "cpu_again", "--all", "--json", database], capture_output=True,
                                     check=True).stdout)
    again = [row for row in rows if row["name"] == "cpu_again"]
    root = next(row for row in callers if row["depth"] == 0)
    check(root["cpu_ns"] == sum(row["cpu_ns"] for row in again if not row["is_nested"]) and
          root["cpu_self_ns"] == sum(row["cpu_self_ns"] for row in again), f"callers: {root}")
    report = json_rows(sojourn.run(["report", "--costs", "--json", database], capture_output=True, check=True).stdout)
    check({row["function"]: row["cpu_ns"] for row in report} ==
          {row["name"]: row["cpu_ns"] for row in sojourn.sql(
              database, "SELECT f.name, k.cpu_ns FROM function_costs AS k JOIN functions AS f USING (function_id)")},
          f"report: {report}")
    by_value = json_rows(sojourn.run(["report", "--by-value", "--json", database], capture_output=True, check=True).stdout)
    burnt = {row["value"]: row for row in by_value}
    check(set(burnt) == {2000000, 200000} and all(row["which"] == "ns" and row["function"] == "cpu_burn"
                                                  for row in by_value), f"by value: {by_value}")
    check(burnt[2000000]["calls"] == THREADS * ROUNDS and burnt[200000]["calls"] == 4 * THREADS * ROUNDS and
          sum(row["cpu_ns"] for row in by_value) == sum(row["cpu_ns"] for row in rows if row["name"] == "cpu_burn"),
          f"by value: {by_value}")
    text = sojourn.run(["tree", "--by-value", "--all", database], capture_output=True, check=True, text=True).stdout
    lines = re.findall(r"^ +[0-9.]+ \S+ +(\d+) +\(ns=(\d+)\)$", text, re.M)
    paths = sojourn.sql(database, "SELECT a.value, c.depth, c.caller_function_id, count(*) AS n FROM arguments AS a "
                                  "JOIN calls AS c USING (session_id, call_id) GROUP BY 1, 2, 3")
    check(sorted((int(calls), int(value)) for calls, value in lines) == sorted((row["n"], row["value"]) for row in paths) and
          len(paths) > 1, f"tree by value: {text}, of calls {paths}")
    for words in (["report", "--costs"], ["report", "--by-value"], ["tree", "--costs", "--all"]):
        text = sojourn.run([*words, database], capture_output=True, check=True, text=True).stdout
        check("cpu_burn" in text and "cpu" in text, text)


def one_program(sojourn, compiler, level):
    source, program, database = (sojourn.path(name) for name in ("cpu.c", "cpu", "cpu.db"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(f"#define THREADS {THREADS}\n#define ROUNDS {ROUNDS}\n" + SOURCE)
    subprocess.run([compiler, f"-O{level}", "-D_GNU_SOURCE", "-w", "-pthread", source, "-o", program], check=True)
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    done, _ = sojourn.record([program], database, ["--cpu-time", "cpu_*", "--value", "cpu_burn(ns:long)"], text=True)
    check(done.returncode == 0, f"{program} ended with {done.returncode}: {done.stderr}")
    check_accounts(sojourn, database)
    rows = measured(sojourn, database)
    check(len(rows) == THREADS * ROUNDS * (1 + 1 + 8 + 2), f"{len(rows)} calls")
    check(all(row["cpu_ns"] is not None and 0 <= row["cpu_self_ns"] <= row["cpu_ns"] for row in rows), f"{rows}")
    lines = [line.split() for line in done.stdout.splitlines()]
    at = 0
    for line in lines:
        name, inner, outer = line[-3].split("(")[0] if "(void)" not in line[1] else "cpu_again", int(line[-2]), int(line[-1])
        row = rows[at]
        check(row["name"] == name, f"{row['name']} where {line} is")
        check(inner - TRUNCATED_NS <= row["cpu_ns"] <= outer + TRUNCATED_NS, f"-O{level} {line}: {row}")
        at += {"cpu_again": 8, "cpu_tail": 2}.get(name, 1)
    # The time that is not the call's own belongs to the calls below. For the recursion this is the whole time.
    again = [row for row in rows if row["name"] == "cpu_again"]
    check([row["is_nested"] for row in again] == [0, 1, 1, 1] * (THREADS * ROUNDS), f"{again}")
    sums = {row["name"]: row for row in sojourn.sql(database, "SELECT f.name, k.* FROM function_costs AS k "
                                                    "JOIN functions AS f USING (function_id)")}
    for name in ("cpu_burn", "cpu_wait", "cpu_again", "cpu_tail", "cpu_last"):
        of = [row for row in rows if row["name"] == name]
        check(sums[name]["calls"] == len(of) and
              sums[name]["cpu_ns"] == sum(row["cpu_ns"] for row in of if not row["is_nested"]) and
              sums[name]["cpu_self_ns"] == sum(row["cpu_self_ns"] for row in of), f"{name}: {sums[name]}")
    check_sums(sojourn, database, rows)
    values = sojourn.sql(database, "SELECT count(*) AS n FROM arguments WHERE kind = 'long' AND position = 1")[0]["n"]
    check(values == sum(row["name"] == "cpu_burn" for row in rows), f"{values} values beside")
    return len(lines)


def test_removed(sojourn):
    """The costs are removed with their session. Without the option there are none."""
    database = sojourn.path("cpu.db")
    sojourn.run(["session", "remove", "last", "--database", database], check=True, capture_output=True)
    check(sojourn.sql(database, "SELECT count(*) AS n FROM call_costs")[0]["n"] == 0, "left over")
    sojourn.record([sojourn.path("cpu")], database, [], text=True)
    check(sojourn.sql(database, "SELECT count(cpu_ns) AS n FROM calls")[0]["n"] == 0, "unasked")


def test(sojourn, arguments):
    compilers = [shutil.which("gcc"), shutil.which("clang") or shutil.which("clang-14")]
    check(all(compilers), f"compilers: {compilers}")
    count = sum(one_program(sojourn, compiler, level) for compiler in compilers for level in (0, 2))
    print(f"{count} calls between what getrusage says inside and outside")
    test_removed(sojourn)


if __name__ == "__main__":
    main(test)
