"""Tests every filter on a real program whose calls are known: which calls are kept, which are counted, and which
function called them."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, main, wait_for

CALLS = """SELECT f.name, s.calls FROM function_stats s JOIN functions f USING (function_id)
           WHERE s.session_id = 1"""
ALL = {"main": 1, "shop::fill": 4, "shop::Basket::add": 1300, "part_add": 1300,
       "part_local_calls": 1, "part_hidden": 50, "run": 3, "bank::wait": 6, "bank::pay": 6}


def strip_parameters(name):
    return name.split("(")[0]


def wait_for_names(sojourn, database):
    """Waits until the names are stored. The threads of the sample wait meanwhile for the end of its input."""
    named = "SELECT count(*) AS n FROM threads WHERE name IN ('net-reader', 'net-writer', 'painter')"
    wait_for("the names of three threads",
             lambda: sojourn.sql_once_made(database, named) == [{"n": 3}])


def recorded(sojourn, program, policy=None, options=(), is_held=False):
    """Returns the kept calls and the calls that were only counted: {name: calls}, {(name, reason): calls}.
    `is_held`: threads wait until their names have been stored."""
    database, path = sojourn.path("filter.db"), sojourn.path("filter.json")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    options = list(options)
    if policy is not None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"policy": 1, **policy}, file)
        options += ["--policy", path]
    command = [sojourn.program, "record", "-q", "-o", database, *options, "--", program]
    with subprocess.Popen([*command, *["hold"] * is_held], env=sojourn.environment, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recorder:
        if is_held:
            wait_for_names(sojourn, database)
        output = recorder.communicate(timeout=PATIENCE_S)
        check(recorder.returncode == 0, f"ended with {recorder.returncode}: {output}")
    check_accounts(sojourn, database)
    kept = {strip_parameters(row["name"]): row["calls"] for row in sojourn.sql(database, CALLS)}
    out = {(strip_parameters(row["name"]), row["reason"]): row["calls"] for row in sojourn.sql(
        database, "SELECT f.name, c.reason, c.calls FROM filtered_calls c "
                  "JOIN functions f USING (function_id)")}
    return kept, out, database


def expect(found, names, what):
    wanted = {name: ALL[name] for name in names}
    found = {name: calls for name, calls in found.items() if name in ALL}
    check(found == wanted, f"{what}: {found}, not {wanted}")


def names_namespaces_and_classes(sojourn, folder):
    program = os.path.join(folder, "dwarf")
    kept, out, _ = recorded(sojourn, program)
    expect(kept, ALL, "no filter")
    kept, out, _ = recorded(sojourn, program, options=["--function", "bank::*"])
    expect(kept, ["bank::wait", "bank::pay"], "a namespace")
    kept, out, _ = recorded(sojourn, program,
                            {"functions": {"include": ["/^shop::(Basket::)?a/"]}})
    expect(kept, ["shop::Basket::add"], "a method, by regular expression")
    kept, out, _ = recorded(sojourn, program,
                            {"functions": {"exclude": ["shop::Basket::*", "/^part_/"]}})
    expect(kept, ["main", "shop::fill", "run", "bank::wait", "bank::pay"], "without a class")
    check(out == {}, f"what is not patched is not counted: {out}")


def source_files(sojourn, folder):
    part = ["part_add", "part_local_calls", "part_hidden"]
    rest = [name for name in ALL if name not in part]
    for program in ("dwarf", "split"):
        path = os.path.join(folder, program)
        kept, _, _ = recorded(sojourn, path, options=["--source", "filter_part.c"])
        # The local functions of a stripped program have names only in its debug file.
        expect(kept, part, f"{program}: one file by name")
        kept, _, _ = recorded(sojourn, path, {"sources": {"include": ["/sample[.]cpp$/"],
                                                          "exclude": ["*/samples/filter_part.c"]}})
        expect(kept, rest, f"{program}: by regular expression, without a file by path")
    path = os.path.join(folder, "symbols")
    kept, _, _ = recorded(sojourn, path, options=["--source", "filter_part.c"])
    expect(kept, ["part_hidden"], "without DWARF, local functions are known")
    kept, _, _ = recorded(sojourn, path, options=["--exclude-source", "filter_part.c"])
    expect(kept, [name for name in ALL if name != "part_hidden"], "and can be left out")


def threads_are_filtered_by_their_own_names(sojourn, folder):
    program = os.path.join(folder, "dwarf")
    kept, out, _ = recorded(sojourn, program, options=["--thread", "net-*", "--exclude", "run*"],
                            is_held=True)
    check(kept == {"shop::fill": 2, "shop::Basket::add": 200, "part_add": 200, "bank::wait": 2,
                   "bank::pay": 2}, f"two threads of four: {kept}")
    # These threads have another name at their first recorded call.
    kept, out, database = recorded(sojourn, program, options=["--thread", "net-*"], is_held=True)
    check(kept.get("bank::pay") == 2, f"two threads of four: {kept}")
    for name, calls in ALL.items():
        check(kept.get(name, 0) + out.get((name, "thread"), 0) == calls,
              f"{name} is not accounted for: {kept}, {out}")
    names = {row["name"] for row in sojourn.sql(database, "SELECT name FROM threads")}
    check({"net-reader", "net-writer", "painter"} <= names, f"threads are called {names}")


def one_in_n_depth_and_minimum(sojourn, folder):
    program = os.path.join(folder, "dwarf")
    policy = {"calls": {"one_in": [{"function": "shop::Basket::add", "n": 50},
                                   {"function": "bank::pay", "n": 3}]}}
    kept, out, database = recorded(sojourn, program, policy)
    for name in ("shop::Basket::add", "bank::pay"):
        check(kept[name] + out[(name, "sampled")] == ALL[name], f"{name}: {kept}, {out}")
    check(kept["shop::Basket::add"] == 26 and kept["bank::pay"] == 2, f"sampled {kept}")
    check(kept["part_add"] == 1300, f"callees of calls that are left out stay: {kept}")

    kept, out, _ = recorded(sojourn, program, options=["--depth", "2"])
    check(kept == {"main": 1, "run": 3, "shop::fill": 4, "part_local_calls": 1, "bank::wait": 6},
          f"depth 2 kept {kept}")
    check(out[("part_add", "depth")] == 1300, f"depth is not counted: {out}")

    kept, out, database = recorded(sojourn, program, options=["--minimum", "3ms"])
    for name, calls in ALL.items():
        check(kept.get(name, 0) + out.get((name, "minimum"), 0) == calls, f"{name}: {kept}, {out}")
    check(kept["bank::wait"] == 6 and kept["main"] == 1 and kept["run"] == 3, f"long: {kept}")
    # On a loaded machine a short call may be interrupted for a long time.
    short = sojourn.sql(database, "SELECT count(*) AS n FROM calls WHERE duration_ns < 3000000")[0]["n"]
    check(short == 0 and out[("part_add", "minimum")] > 0, f"short calls were kept: {kept}")
    parents = sojourn.sql(database, """SELECT p.name AS parent, count(*) AS calls FROM calls c
        JOIN functions f USING (function_id) JOIN calls up ON up.call_id = c.parent_id
        JOIN functions p ON p.function_id = up.function_id
        WHERE f.name LIKE 'bank::wait%' GROUP BY 1""")
    found = {strip_parameters(row["parent"]): row["calls"] for row in parents}
    check(found == {"main": 3, "run": 3}, f"who called bank::wait: {found}")


TESTS = [names_namespaces_and_classes, source_files, threads_are_filtered_by_their_own_names,
         one_in_n_depth_and_minimum]


def test(sojourn, arguments):
    folder = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests/samples/filters")
    for each in TESTS:
        if not arguments or arguments[0] in each.__name__:
            started = time.monotonic()
            each(sojourn, folder)
            print(f"{each.__name__.replace('_', ' ')}: {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main(test)
