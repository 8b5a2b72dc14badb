#!/usr/bin/env python3
"""The calls of each function equal callgrind's, and entries equal exits, on real programs.

callgrind_counts.py BUILD_FOLDER SUBJECTS_FOLDER. The programs are lua as tests/bench/build_subjects built it, and
gcc's compiler proper, stripped as Debian ships it. SJ_LONG=1 adds sqlite3. Functions are compared by address.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import callgrind
from sojourn_testing import IS_LONG, SAMPLES, check, check_accounts, main

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = os.path.join(HERE, "..", "..", "bench", "workloads")
UNSTEADY_AT_MOST = 10
LAYOUTS_AT_MOST = 8


def input_of(stdin):
    return open(stdin or os.devnull, encoding="utf-8")


def recorded(sojourn, name, command, stdin):
    """Returns (hooked functions {offset: (name, bytes)}, calls {offset: count}) of the program itself."""
    database = sojourn.path(name + ".db")
    # A loaded machine may delay the drain: the program waits instead of dropping calls.
    done, summary = sojourn.record(command, database, ["--block-ms", "10000"], stdin=input_of(stdin))
    check(done.returncode == 0, f"{name} ended with {done.returncode}")
    check_accounts(sojourn, database)
    check(summary["lost_calls"] == 0, f"{name} lost {summary['lost_calls']} calls")
    rows = sojourn.sql(
        database,
        # The query reads each table once: no table has an index by function, and there are 40,000 functions.
        "WITH made AS MATERIALIZED (SELECT function_id, sum(calls) AS calls FROM function_stats GROUP BY 1) "
        "SELECT f.offset AS offset, f.name AS name, f.size_bytes AS bytes, "
        "coalesce(made.calls, 0) AS calls FROM functions AS f JOIN modules AS m USING (module_id) "
        "LEFT JOIN made USING (function_id) "
        f"WHERE m.path = '{os.path.realpath(command[0])}' AND f.function_id NOT IN "
        "(SELECT function_id FROM hook_plan_functions WHERE technique IN ('none', 'part'))",
    )
    os.unlink(database)
    hooked, functions = summary["hooked"], summary["functions"]
    check(hooked >= 0.9 * functions, f"{name}: only {hooked} of {functions} functions hooked")
    print(f"{name}: {hooked} of {functions} functions hooked")
    return ({int(row["offset"]): (row["name"], int(row["bytes"])) for row in rows},
            {int(row["offset"]): row["calls"] for row in rows})


def counted(sojourn, name, command, stdin, functions):
    output = sojourn.path(name + ".callgrind")
    subprocess.run(["valgrind", *callgrind.OPTIONS, f"--callgrind-out-file={output}", *command],
                   stdin=input_of(stdin), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=True)
    calls, self_jumps = callgrind.counters()
    sizes = {offset: size for offset, (_, size) in functions.items()}
    callgrind.read_calls(output, os.path.realpath(command[0]), sizes, calls, self_jumps)
    return calls, self_jumps


def counted_by_breakpoints(command, stdin, offsets):
    """Returns a debugger's counts of a few functions of a program that is linked to a fixed address."""
    script = ["set pagination off", *[f"break *{offset:#x}" for offset in offsets],
              *[f"ignore {number + 1} 1000000000" for number in range(len(offsets))], "run",
              "info breakpoints"]
    options = [word for line in script for word in ("-ex", line)]
    done = subprocess.run(["gdb", "-nx", "-batch", *options, "--args", *command],
                          stdin=input_of(stdin), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=True)
    hits, offset = dict.fromkeys(offsets, 0), None
    for line in done.stdout.partition("exited normally")[2].splitlines():
        words = line.split()
        if len(words) > 4 and words[1] == "breakpoint":
            offset = int(words[4], 16)
        elif "already hit" in line:
            hits[offset] = int(words[3])
    return hits


def one_subject(sojourn, name, command, stdin):
    functions, found = recorded(sojourn, name, command, stdin)
    calls, self_jumps = counted(sojourn, name, command, stdin, functions)
    differing = {offset for offset, count in found.items()
                 if count not in (calls[offset], calls[offset] + self_jumps[offset])
                 and functions[offset][0] != "main"}
    # Tables hashed by address grow at different times in each layout of the address space, and callgrind has its own
    # layout. Counts that vary between runs prove nothing. A wrong count would be wrong in every layout.
    unsteady = set()
    for _ in range(LAYOUTS_AT_MOST):
        if not differing or len(differing) > UNSTEADY_AT_MOST:
            break
        again = recorded(sojourn, name, command, stdin)[1]
        unsteady |= {offset for offset in differing if again[offset] != found[offset]}
        differing -= unsteady
    # Only callgrind has this layout, so a debugger's counts decide.
    if differing and len(differing) <= UNSTEADY_AT_MOST and name == "cc1":
        hits = counted_by_breakpoints(command, stdin, sorted(differing))
        unsteady |= {offset for offset in differing if hits[offset] == found[offset]}
        differing -= unsteady
    check(not differing, f"{name}: {len(differing)} differ\n" + "\n".join(
        f"{functions[offset][0]}: callgrind {calls[offset]} and {self_jumps[offset]} jumps, sojourn "
        f"{found[offset]}" for offset in sorted(differing)[:20]))
    check(sum(found.values()) > 1000000, f"{name} made only {sum(found.values())} calls")
    reached = sum(count > 0 for count in found.values())
    varying = f", but for {len(unsteady)} that vary with the address space" if unsteady else ""
    print(f"{name}: {reached} functions, {sum(found.values())} calls, equal{varying}", flush=True)


def test(sojourn, arguments):
    subjects = os.path.abspath(arguments[0])
    # libiberty asks the kernel if PWD is stale. The shells that start gdb's and valgrind's programs correct PWD, so
    # PWD is set here.
    os.environ["PWD"] = sojourn.environment["PWD"] = os.getcwd()
    one_subject(sojourn, "lua", [os.path.join(subjects, "lua"), os.path.join(WORKLOADS, "lua.lua"), "1"],
                None)
    if IS_LONG:
        one_subject(sojourn, "sqlite3", [os.path.join(subjects, "sqlite3"), ":memory:"],
                    os.path.join(WORKLOADS, "sqlite.sql"))
    compiler = subprocess.check_output(["gcc", "-print-prog-name=cc1"], text=True).strip()
    source = os.path.join(SAMPLES, "policy", "tiny.c")
    one_subject(sojourn, "cc1", [compiler, "-quiet", "-O2", source, "-o", os.devnull], None)


if __name__ == "__main__":
    main(test)
