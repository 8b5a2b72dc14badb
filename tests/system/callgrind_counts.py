#!/usr/bin/env python3
"""Per-function call counts equal callgrind's, and entries equal exits, on real programs.

callgrind_counts.py BUILD_FOLDER SUBJECTS_FOLDER: lua and sqlite3 as tests/bench/build_subjects made
them. Functions of the program itself are compared by name; those that share a name with another (static functions of
several files) are summed on both sides.
"""
import collections
import os
import re
import subprocess

from sojourn_testing import check, check_accounts, main

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = os.path.join(HERE, "..", "bench", "workloads")


def callgrind_counts(command, stdin, output):
    subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", *command],
        stdin=open(stdin, encoding="utf-8") if stdin else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=900,
    )
    names, counts, callee = {}, collections.Counter(), None
    objects, own, callee_object = {}, None, None
    with open(output, encoding="utf-8", errors="replace") as file:
        for line in file:
            match = re.match(r"(c?ob)=\((\d+)\)(?: (.*))?", line)
            if match:
                objects.setdefault(match[2], match[3] and match[3].strip())
                callee_object = objects[match[2]]
                own = callee_object if match[1] == "ob" else own
                continue
            match = re.match(r"(c?fn)=\((\d+)\)(?: (.*))?", line)
            if match:
                if match[3]:
                    names[match[2]] = match[3].strip()
                if match[1] == "cfn":
                    callee = match[2]
            elif line.startswith("calls="):
                if callee_object == command[0]:
                    counts[names[callee].split("'")[0]] += int(line[6:].split()[0])
                callee_object = own
    return counts


def one_subject(sojourn, name, command, stdin):
    database = sojourn.path(name + ".db")
    expected = callgrind_counts(command, stdin, sojourn.path(name + ".callgrind"))
    done, summary = sojourn.record(
        command, database, stdin=open(stdin, encoding="utf-8") if stdin else subprocess.DEVNULL
    )
    check(done.returncode == 0, f"{name} ended with {done.returncode}")
    check_accounts(sojourn, database)
    check(summary["lost_calls"] == 0, f"{name} lost {summary['lost_calls']} calls")
    rows = sojourn.sql(
        database,
        "SELECT f.name AS name, sum(s.calls) AS calls FROM function_stats AS s "
        "JOIN functions AS f ON f.function_id = s.function_id GROUP BY f.name",
    )
    opened = sojourn.sql(
        database,
        "SELECT f.name AS name, count(*) AS calls FROM open_calls AS o "
        "JOIN functions AS f ON f.function_id = o.function_id GROUP BY f.name",
    )
    found = collections.Counter()
    for row in rows + opened:
        found[row["name"]] += row["calls"]
    differing = [
        f"{function}: callgrind {expected[function]}, sojourn {found[function]}"
        for function in found
        if found[function] != expected[function] and function != "main"
    ]
    check(not differing, f"{name}: {len(differing)} differ\n" + "\n".join(differing[:20]))
    check(sum(found.values()) > 1000000, f"{name} made only {sum(found.values())} calls")
    hooked, functions = summary["hooked"], summary["functions"]
    print(f"{name}: {len(found)} functions, {sum(found.values())} calls, equal; "
          f"{hooked} of {functions} functions hooked")
    check(hooked >= 0.9 * functions, f"{name}: only {hooked} of {functions} functions hooked")


def test(sojourn, arguments):
    subjects = os.path.abspath(arguments[0])
    one_subject(sojourn, "lua", [os.path.join(subjects, "lua"), os.path.join(WORKLOADS, "lua.lua"), "1"], None)
    one_subject(sojourn, "sqlite3", [os.path.join(subjects, "sqlite3"), ":memory:"],
                os.path.join(WORKLOADS, "sqlite.sql"))


if __name__ == "__main__":
    main(test)
