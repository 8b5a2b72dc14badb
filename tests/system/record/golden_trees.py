#!/usr/bin/env python3
"""The recorded call trees of the samples equal those that the samples print of their own calls.

golden_trees.py BUILD_FOLDER [FILTER]

By default it runs every sample of tests/samples as built by gcc and clang at -O0 and -O2, and for AArch64 by each
compiler at one of these levels. FILTER selects programs whose path contains it. The sample with enough calls runs once
more with --clock adaptive. SJ_LONG=1: every build, also at -O1 and -O3.
"""
import collections
import glob
import itertools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import IS_LONG, check, check_accounts, main

CALLS = "SELECT stream_id, depth, function_id, ending FROM calls ORDER BY call_id"
SUMS = (
    "SELECT stored_calls AS stored, "
    "(SELECT sum(calls) FROM function_stats) AS functions, "
    "(SELECT sum(calls) FROM call_paths) AS paths, (SELECT sum(calls) FROM call_edges) AS edges "
    "FROM sessions"
)
SAMPLE = "SELECT function_id, name FROM functions WHERE name LIKE 's\\_%' ESCAPE '\\'"
# Each compiler at two levels, each machine, the C++ samples on both machines, and pointer authentication.
DEFAULT = ("gcc-O0", "gcc-O2", "clang-O0", "clang-O2", "aarch64-gcc-O0", "aarch64-clang-O2", "aarch64-pac-O2")
UNHOOKED = "SELECT name, reason FROM unhooked_functions WHERE name LIKE 's\\_%' ESCAPE '\\'"


def only(calls, wanted):
    """Returns the calls, with their names, that a recorder of only the wanted functions sees."""
    stacks = collections.defaultdict(list)
    for lane, depth, function, ending in calls:
        stack = stacks[lane]
        while stack and stack[-1] >= depth:
            stack.pop()
        if function in wanted:
            yield lane, len(stack), wanted[function], ending
            stack.append(depth)


def trees(calls):
    """Returns the trees below each root as a multiset of texts. `calls`: rows of (lane, depth, name, ending) in
    preorder."""
    found = collections.Counter()
    current, lane_now = [], None
    for lane, depth, name, ending in calls:
        if depth == 0 or lane != lane_now:
            if current:
                found["\n".join(current)] += 1
            current, lane_now = [], lane
        current.append(f"{depth} {name}" + (" " + ending if ending != "returned" else ""))
    if current:
        found["\n".join(current)] += 1
    return found


def told(path, unhooked):
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    names = {row[2] for row in rows}
    calls = ((lane, int(depth), name, ending) for lane, depth, name, ending in rows)
    return trees(only(calls, {name: name for name in names if name not in unhooked})), names


def recorded(sojourn, database):
    """Returns every recorded call. Calls of functions that the sample does not print are not levels of the tree, but
    they end the calls before them."""
    wanted = {str(row["function_id"]): row["name"] for row in sojourn.sql(database, SAMPLE)}
    with sojourn.sql_lines(database, CALLS) as lines:
        rows = (line.rstrip("\r\n").split(",") for line in lines)
        calls = ((row[0], int(row[1]), row[2], row[3]) for row in rows)
        return trees(only(calls, wanted))


def compare_trees(sojourn, database, truth, unhooked, label):
    """Compares the number of trees and the names in them."""
    (expected, names), found = told(truth, unhooked), recorded(sojourn, database)
    for tree in (expected - found).keys() | (found - expected).keys():
        check(
            False,
            f"{label}: {expected[tree]} told, {found[tree]} recorded of\n"
            + "\n".join(tree.split("\n")[:40]),
        )
    return sum(expected.values()), names


def compare_lines(sojourn, database, truth, _unhooked, label):
    """Compares call by call, for one thread of which only the sample's functions were recorded. For a million levels
    this takes a fifth of the time of comparing trees."""
    names = {str(row["function_id"]): row["name"] for row in sojourn.sql(database, SAMPLE)}
    with open(truth, encoding="utf-8") as file:
        expected = [line.rstrip("\n").partition("\t")[2] for line in file]
    with sojourn.sql_lines(database, CALLS) as lines:
        rows = (line.rstrip("\r\n").split(",") for line in lines)
        found = [f"{depth}\t{names[function]}\t{ending}" for _, depth, function, ending in rows]
    if found != expected:
        pairs = enumerate(itertools.zip_longest(expected, found))
        check(False, f"{label}: told and recorded differ: {next(pair for pair in pairs if pair[1][0] != pair[1][1])}")
    return sum(line.startswith("0\t") for line in expected), {line.split("\t")[1] for line in expected}


def one_sample(sojourn, program, *options):
    words, own_options = options_of_sample(program)
    label = " ".join(["/".join(program.split("/")[-2:]), *options])
    truth = sojourn.path("truth")
    if os.path.exists(truth):
        os.unlink(truth)
    database = sojourn.path(label.replace("/", "-") + ".db")
    done, summary = sojourn.record(
        [program, *words], database, ["--block-ms", "10000", *own_options, *options],
        env=dict(sojourn.environment, TRUTH_FILE=truth),
    )
    check(done.returncode == 0, f"{label} ended with {done.returncode}: {done.stderr.decode()}")
    check_accounts(sojourn, database)
    for row in sojourn.sql(database, SUMS):
        check(len(set(row.values())) == 1, f"{label}: sums disagree: {row}")
    unhooked = {row["name"]: row["reason"] for row in sojourn.sql(database, UNHOOKED)}
    compare = compare_lines if own_options and not unhooked else compare_trees
    count, names = compare(sojourn, database, truth, unhooked, label)
    check(len(names) > 0, f"{label} printed nothing")
    left_out = {name: unhooked[name] for name in names if name in unhooked}
    print(f"{label}: {count} trees, {summary['calls']} calls {left_out or ''}")
    os.unlink(database)
    return len(names), len(left_out)


def folders(samples):
    if IS_LONG:
        return sorted(glob.glob(os.path.join(samples, "*-O?")))
    return [os.path.join(samples, name) for name in DEFAULT]


def is_compared(program):
    """True if the program's calls are compared. A million levels take long, so they are compared at two levels of
    optimisation, by default for one program of each machine."""
    return "s_deep" not in program or program.split("-O")[1][0] in "02" and (
        IS_LONG or os.path.dirname(program).endswith(("/gcc-O2", "aarch64-clang-O2")))


def options_of_sample(program):
    """Returns the arguments and recording options of a sample. By default the deep recursion is recorded without
    other functions, and is less deep in the emulator."""
    if IS_LONG or "s_deep" not in program:
        return [], []
    return ["100000"] if "aarch64" in program else [], ["--function", "s_*"]


def test(sojourn, arguments):
    build = os.path.dirname(os.path.dirname(sojourn.program))
    programs = [program for folder in folders(os.path.join(build, "tests/samples"))
                for program in sorted(glob.glob(os.path.join(folder, "s_*"))) if is_compared(program)]
    if arguments:
        programs = [program for program in programs if arguments[0] in program]
    check(len(programs) > 0, "no samples found")
    functions = left_out = 0
    for program in programs:
        counts = one_sample(sojourn, program)
        functions, left_out = functions + counts[0], left_out + counts[1]
        if "s_threads" in program:
            one_sample(sojourn, program, "--clock", "adaptive")
    print(f"{functions} sample functions, {left_out} of them left out, with the reason")
    check(left_out <= 0.05 * functions, "too many functions left out")


if __name__ == "__main__":
    main(test)
