#!/usr/bin/env python3
"""Values of calls into libraries: Debian's stripped programs call the C library, which is never hooked. The
recorded arguments and results equal strace's. The programs follow their error paths where rules make the C
library's calls fail.

library_values.py BUILD_FOLDER
"""
import json
import itertools
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, main, sample_text

LIBC = ["--library-calls", "--prototypes", "libc"]


def permit(sojourn):
    folder = sojourn.path("config/sojourn")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "changes.json"), "w", encoding="utf-8") as file:
        json.dump({"allow": [{"programs": ["*"], "functions": ["*"], "kinds": ["set", "return", "errno", "delay"]}]}, file)


def record(sojourn, command, *options):
    database = sojourn.path("calls.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    done, _ = sojourn.record(command, database, ["--block-ms", "10000", *options], text=True)
    check_accounts(sojourn, database)
    return done, database


def changed(sojourn, command, rules, **modules):
    policy = sojourn.path("policy.json")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "modules": {"library_calls": True, **modules}, "values": rules, "unmatched": "allow"}, file)
    done, database = record(sojourn, command, "--policy", policy)
    return done, sojourn.sql(database, "SELECT rule, value, old_value FROM rule_hits ORDER BY call_id")


def calls(sojourn, database, name):
    rows = {}
    for row in sojourn.sql(database, f"""
            SELECT call_id, position, value FROM arguments JOIN calls USING (session_id, call_id)
            JOIN functions USING (function_id) WHERE name LIKE '%!{name}' ORDER BY call_id, position"""):
        rows.setdefault(row["call_id"], {})[row["position"]] = row["value"]
    return list(rows.values())


def test_strace(sojourn, files):
    """cat opens and reads its files with the values that strace shows."""
    command = ["cat", *files, sojourn.path("missing")]
    trace = sojourn.path("trace")
    subprocess.run(["strace", "-qq", "-e", "trace=openat,read", "-o", trace, *command], capture_output=True,
                   timeout=PATIENCE_S, check=False)
    opened, read = [], []
    with open(trace, encoding="utf-8") as file:
        for line in file:
            if match := re.match(r'openat\(AT_FDCWD, "([^"]+)", O_RDONLY\) = (-?\d+)', line):
                opened.append((match[1], int(match[2])))
            elif match := re.match(r"read\((\d+), .*, (\d+)\) += (\d+)", line):
                read.append((int(match[1]), int(match[2]), int(match[3])))
    done, database = record(sojourn, command, *LIBC, "--value", "!open", "--value", "libc.so.6!read")
    check(done.returncode == 1 and "missing" in done.stderr, f"{done}")
    mine = [(path, fd) for path, fd in opened if path.startswith(sojourn.path(""))]
    found = [(row[1], row[0]) for row in calls(sojourn, database, "open")]
    check(found == mine and len(mine) == 3, f"open: {found}, strace: {mine}")
    found = [(row[1], row[3], row[0]) for row in calls(sojourn, database, "read")]
    check(found and found == read[-len(found):], f"read: {found}, strace: {read}")
    check(not any(3 in row for row in calls(sojourn, database, "open")), "a mode that was not passed")
    check(all(row[2] in (0, "0x0") for row in calls(sojourn, database, "open")), f"flags: {calls(sojourn, database, 'open')}")
    print(f"{len(mine) + len(found)} calls of cat into the C library as strace tells them")


def test_mistakes(sojourn):
    for options, sentence in ((LIBC[1:], "in programs that `sojourn record` starts"), ([*LIBC, "--value", "!opem"], 'matches "!opem"')):
        done, _ = sojourn.record(["cat", "/dev/null"], sojourn.path("mistakes.db"), [*options, "--value", "!open"], text=True)
        check(sentence in done.stderr, f"{options}: {done.stderr}")


def test_debug_file(sojourn):
    """Uses the C library's own debug data if Debian's package of them is installed. Otherwise the absence is
    reported."""
    done, database = record(sojourn, ["cat", "/dev/null"], "--library-calls", "--value", "!open")
    names = [row["name"] for row in sojourn.sql(database, "SELECT name FROM value_types ORDER BY position")]
    values = [row["value"] for row in sojourn.sql(database, "SELECT value FROM arguments")]
    is_missing = "no debug data about 1 of 1" in done.stderr
    check(is_missing != (len(names) > 1 and "/dev/null" in values), f"{names}, {values}: {done.stderr}")


LIBRARY = sample_text("values/pair_library.c")
CALLER = sample_text("values/pair_caller.c")
TYPED = {("scaled", "name"): "over there", ("scaled", "of"): "GREEN", ("scaled", "share"): 1.5, ("scaled", "given.a"): 40,
         ("scaled", "given.b"): "RED", ("scaled", "return.a"): 43, ("scaled", "return.b"): "GREEN",
         ("filled", "from->a"): 43, ("filled", "return.low"): 43, ("filled", "return.high"): 0.5, ("filled", "return.rest"): 7,
         ("apart", "number"): 4, ("apart", ""): 5, ("by_name", "number"): 6,
         ("by_name", ""): 7, ("called", "number"): 8, ("called", ""): 9,
         ("precise", "number"): 3, ("precise", "by"): "-0.125", ("precise", ""): "-0.375"}

NAMES = sorted({name for name, _ in TYPED})


def build_caller(sojourn, tools, options, version):
    """Builds a program without debug data, and its library, with or without versions of its functions. `tools` is
    the prefix of the compiler's and tools' names."""
    library, script = sojourn.path("libtyped.so.1"), sojourn.path("versions")
    with open(script, "w", encoding="utf-8") as file:
        file.write("TYPED_1 { global: *; };\n")
    subprocess.run([f"{tools}gcc", *options, "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-Wl,-soname,libtyped.so.1",
                    *([f"-Wl,--version-script={script}"] if version else [])], input=LIBRARY, text=True, check=True)
    subprocess.run([f"{tools}gcc", "-O1", "-x", "c", "-", "-x", "none", library, "-o", sojourn.path("caller"), "-Wl,-rpath," + sojourn.path("")],
                   input=CALLER, text=True, check=True)
    return sojourn.path("caller"), library


def typed_values(sojourn, caller, *options, modules=("caller",)):
    named = [part for module in modules for part in ("--module", module)]
    done, database = record(sojourn, [caller], "--library-calls", *named, *options)
    check(done.returncode == 0, f"{done}")
    rows = sojourn.sql(database, """SELECT f.name, coalesce(t.name, '') AS value_name, a.value FROM arguments AS a
        JOIN calls USING (session_id, call_id) JOIN functions AS f USING (function_id) LEFT JOIN value_types AS t
        ON t.session_id = a.session_id AND t.function_id = f.function_id AND t.position = a.position""")
    return done, {(row["name"].split("!")[-1], row["value_name"]): row["value"] for row in rows}


def test_types(sojourn):
    """Calls into a library use the types of its debug data, which are in the library or in a file of their own."""
    for tools, (options, version) in itertools.product(("", "aarch64-linux-gnu-"), ((["-g", "-O0"], True), (["-g", "-O2"], False))):
        caller, library = build_caller(sojourn, tools, options, version)
        named = "libtyped.so.1!" if version else "!"
        for split in (False, True):
            if split:
                subprocess.run([f"{tools}objcopy", "--only-keep-debug", library, library + ".debug"], check=True)
                subprocess.run([f"{tools}strip", "--strip-unneeded", library], check=True)
                subprocess.run([f"{tools}objcopy", f"--add-gnu-debuglink={library}.debug", library], check=True)
            done, values = typed_values(sojourn, caller, *(part for name in NAMES for part in ("--value", named + name)))
            check({key: values.get(key) for key in TYPED} == TYPED, f"{tools} {options} {split}: {values}, {done.stderr}")
            check("no debug data" not in done.stderr, f"{done.stderr}")
        os.unlink(library + ".debug")
        done, values = typed_values(sojourn, caller, "--value", "!scaled", "--value", "!apart(number:int) -> int")
        check({name for name, _ in values} == {"apart"}, f"{values}")
        check("--value !scaled: no debug data about 1 of 1 function" in done.stderr, f"{done.stderr}")


def check_callers(sojourn, caller):
    """A rule that changes or keeps calls finds their caller when a library call reaches a hooked function."""
    folder = sojourn.path("config/sojourn")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "changes.json"), "w", encoding="utf-8") as file:
        json.dump({"allow": [{"programs": [os.path.realpath(caller)], "functions": ["*"], "kinds": ["set"]}]}, file)
    policy = sojourn.path("callers.json")
    for by, hits in (("main", 3), ("scaled", 0)):
        rules = [{"name": "changed", "function": "apart", "argument": 1, "as": "int", "when": [{"caller": by}],
                  "change": {"set": 50}}]
        with open(policy, "w", encoding="utf-8") as file:
            json.dump({"policy": 1, "modules": {"library_calls": True, "include": ["caller", "libtyped*"]}, "values": rules}, file)
        done, database = record(sojourn, [caller], "--policy", policy)
        found = sojourn.sql(database, "SELECT count(*) AS hits FROM rule_hits")
        check(found == [{"hits": hits}] and (done.returncode == 0) == (hits == 0), f"called by {by}: {found}, {done}")
        del rules[0]["change"]
        with open(policy, "w", encoding="utf-8") as file:
            json.dump({"policy": 1, "modules": {"library_calls": True, "include": ["caller", "libtyped*"]}, "values": rules}, file)
        _, database = record(sojourn, [caller], "--policy", policy)
        found = sojourn.sql(database, "SELECT count(*) AS kept FROM arguments JOIN calls USING (session_id, call_id) JOIN "
                            "functions USING (function_id) WHERE name = 'apart'")
        check(found == [{"kept": hits}], f"kept of {by}: {found}")


def test_hooked(sojourn):
    """If the library's functions are recorded, too, calls into it have their results, in memory and registers, by
    any of their names. This gives the functions themselves no values."""
    for version in (True, False):
        caller, _ = build_caller(sojourn, "", ["-g", "-O2"], version)
        named = "libtyped.so.1!" if version else "!"
        done, values = typed_values(sojourn, caller, *(part for name in NAMES for part in ("--value", named + name)),
                                    modules=("caller", "libtyped*"))
        check({key: values.get(key) for key in TYPED} == TYPED, f"{version}: {values}, {done.stderr}")
        for name in ("apart", "by_name", "called"):  # these are names of one function
            done, values = typed_values(sojourn, caller, "--value", named + name, modules=("caller", "libtyped*"))
            check(values.get((name, "")) == TYPED[(name, "")], f"{version}: only {name}: {values}, {done.stderr}")
        rules = [{"name": name, "function": named + "apart", "signature": "(number:int) -> int",
                  "when": [{"argument": 1, "as": "int", "op": "==", "value": 4}, {"result": True, "as": "int", "op": op, "value": 5}]}
                 for name, op in (("met", "=="), ("unmet", ">"))]
        policy = sojourn.path("hooked.json")
        with open(policy, "w", encoding="utf-8") as file:
            json.dump({"policy": 1, "modules": {"library_calls": True, "include": ["caller", "libtyped*"]}, "values": rules}, file)
        done, database = record(sojourn, [caller], "--policy", policy)
        rows = sojourn.sql(database, "SELECT f.name, position, value, rule FROM arguments JOIN calls USING (call_id) "
                           "JOIN functions AS f USING (function_id) ORDER BY position")
        of = {"name": ("libtyped.so.1!" if version else "!") + "apart", "rule": "met"}
        check(rows == [{**of, "position": 0, "value": 5}, {**of, "position": 1, "value": 4}], f"{rows}")
    check_callers(sojourn, caller)
    print("calls into a library that is hooked have its results")


def test_values_beyond_the_capacity_are_counted(sojourn, files):
    """If a call into a library has too many values at its exit, the values that do not fit are counted and
    reported."""
    done = sojourn.run(["record", "-q", "-o", sojourn.path("room.db"), "--library-calls", "--prototypes", "libc", "--value", "!read",
                        "--cpu-time", "!read", "--", "cat", files[0]], capture_output=True, text=True)
    check(done.returncode == 0 and "whose values are read at exits" in done.stderr, f"room: {done}")


def test_errors(sojourn, files):
    """Rules return EACCES from open, NULL from malloc, and short reads. The programs handle them as usual."""
    permit(sojourn)
    cat = os.path.realpath(shutil.which("cat"))
    deny = {"name": "deny", "function": "!open", "argument": 2, "as": "int", "change": {"return": -1, "errno": 13, "times": 1}}
    done, hits = changed(sojourn, [cat, *files], [deny])
    with open(files[1], encoding="utf-8") as file:
        second = file.read()
    check(done.returncode == 1 and done.stdout == second and f"{files[0]}: Permission denied" in done.stderr, f"{done}")
    check(hits == [{"rule": "deny", "value": -1, "old_value": None}], f"{hits}")
    missing = {"name": "missing", "function": "!open", "result": True, "as": "int",
               "when": {"op": ">=", "value": 0}, "change": {"set": -1, "errno": 2}}
    done, hits = changed(sojourn, [cat, files[0]], [missing])
    check(done.returncode == 1 and "No such file or directory" in done.stderr, f"{done}")
    check(len(hits) == 1 and hits[0]["value"] == -1 and hits[0]["old_value"] >= 3, f"{hits}")
    short = {"name": "short", "function": "!read", "argument": 3, "as": "ulong", "change": {"set": 5}}
    done, hits = changed(sojourn, [cat, *files], [short])
    check(done.returncode == 0 and done.stdout == open(files[0], encoding="utf-8").read() + second, f"{done}")
    check(len(hits) > len(done.stdout) // 5, f"{len(hits)} reads of 5 bytes")
    nothing = {"name": "nothing", "function": "!malloc", "argument": 1, "as": "ulong", "change": {"return": 0, "errno": 12}}
    grep = os.path.realpath(shutil.which("grep"))
    done, hits = changed(sojourn, [grep, "line", files[0]], [nothing])
    check(done.returncode == 2 and "memory exhausted" in done.stderr and hits, f"{done}, {hits}")
    print("cat and grep go the way of their error paths")


def test(sojourn, arguments):
    sojourn.environment["XDG_CONFIG_HOME"] = sojourn.path("config")
    files = [sojourn.path(name) for name in ("first.txt", "second.txt")]
    for number, path in enumerate(files):
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f"line {i} of file {number}\n" for i in range(20)))
    test_strace(sojourn, files)
    test_mistakes(sojourn)
    test_debug_file(sojourn)
    test_errors(sojourn, files)
    test_types(sojourn)
    test_hooked(sojourn)
    test_values_beyond_the_capacity_are_counted(sojourn, files)


if __name__ == "__main__":
    main(test)
