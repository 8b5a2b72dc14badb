#!/usr/bin/env python3
"""Values of arguments and results: the recorded values equal those that the samples print, for functions of C at
all levels of optimisation and for Objective-C methods. Also tests conditions, triggers and refusals.

values.py BUILD_FOLDER (SJ_LONG=1: all builds of the samples)
"""
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import attach_until
from sojourn_testing import check, check_accounts, main

LONG = os.environ.get("SJ_LONG") == "1"
VALUES = ("SELECT f.name, a.call_id, a.position, a.kind, a.rule, a.value, a.note FROM arguments AS a "
          "JOIN calls USING (session_id, call_id) JOIN functions AS f USING (function_id) "
          "ORDER BY a.call_id, a.position, a.kind, a.rule")


def rule(function, position, kind, **more):
    where = {"result": True} if position == 0 else {"argument": position}
    return {"function": function, **where, "as": kind, **more}


WHOLE = [("int", 1), ("uint", 2), ("long", 3), ("ulong", 4), ("char", 5), ("bool", 6)]
# At most four values of a function are recorded, so the test records twice.
HALVES = [
    [rule("val_whole", place, kind) for kind, place in WHOLE[:3]] + [rule("val_whole", 0, "int")]
    + [rule("val_real", 1, "float"), rule("val_real", 2, "double"), rule("val_real", 1, "int")]
    + [rule("val_real", 0, "double"), rule("val_text", 1, "string"), rule("val_text", 2, "string")],
    [rule("val_whole", place, kind) for kind, place in WHOLE[3:]]
    + [rule("val_single", 1, "double"), rule("val_single", 0, "float")]
    + [rule("val_odd", 1, "long"), rule("val_odd", 0, "bool")]
    + [rule("val_tail", 1, "long"), rule("val_tail", 0, "long")]
    + [rule("val_pointer", 1, "hex"), rule("val_pointer", 0, "pointer")],
]


def write_policy(sojourn, values, **more):
    path = sojourn.path("policy.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": values, **more}, file, indent=1)
    return path


def record(sojourn, program, policy, options=(), **run_options):
    database = sojourn.path("values.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    document = ["--policy", policy] if policy is not None else []
    done, summary = sojourn.record(program, database, [*document, "--block-ms", "10000", *options],
                                   text=True, **run_options)
    check(done.returncode == 0, f"{program} ended with {done.returncode}: {done.stderr}")
    check_accounts(sojourn, database)
    return database, done.stdout, summary


def shown(kind, value, note):
    """Returns a recorded value as the sample prints it."""
    if note in ("null", "unreadable"):
        return (note, "-")
    if kind in ("float", "double"):
        return (kind, "inf" if value is None else f"{value:.17g}")  # JSON has no infinity
    return (note or kind, str(value))


def values_of(sojourn, database):
    """Returns {(function, number of its call, position, kind or note, value)}."""
    numbers, found = {}, []
    for row in sojourn.sql(database, VALUES):
        calls = numbers.setdefault(row["name"], {})
        number = calls.setdefault(row["call_id"], len(calls) + 1)
        found.append((row["name"], str(number), str(row["position"]),
                      *shown(row["kind"], row["value"], row["note"])))
    return found


def one_sample(sojourn, program):
    label = "/".join(program.split("/")[-2:])
    behind = 1 if "aarch64" in label else 2  # on x86-64, the pointer to a result in memory comes first
    direct = 0
    for half, rules in enumerate(HALVES):
        rules = rules + ([rule("val_memory", behind, "int")] if half else [])
        asked = {(r["function"], str(r.get("argument", 0)), r["as"]) for r in rules}
        texts = ("cut", "null", "unreadable")
        database, output, _ = record(sojourn, [program], write_policy(sojourn, rules))
        told = [tuple(line.split(" ", 4)) for line in output.splitlines() if not line.startswith("maybe")]
        told = {line for line in told
                if (line[0], line[2], "string" if line[3] in texts else line[3]) in asked}
        maybe = {tuple(line.split(" ", 5)[1:]) for line in output.splitlines()
                 if line.startswith("maybe")}
        found = values_of(sojourn, database)
        check(len(found) == len(set(found)), f"{label}: values came twice")
        found = set(found)
        if behind == 1:
            # qemu-user lacks the system call that reads safely, so only texts that need no such call are read.
            told = {(*line[:3], "unreadable", "-") if line[3] in ("string", "cut") and line not in found else line
                    for line in told}
            direct += sum(line[3] == "string" for line in told)
        check(told <= found, f"{label}: not recorded: {sorted(told - found)}")
        check(found - told <= maybe, f"{label}: recorded and not so: {sorted(found - told - maybe)}")
        check(len(told) > 15, f"{label}: told little: {told}")
    check(behind == 2 or direct > 0, f"{label}: no text was read without a system call")
    print(f"{label}: values as printed")


def conditions(sojourn, program):
    """A value that meets no condition is not kept. A value that meets one is a hit, and triggers act on hits."""
    rules = [
        rule("val_odd", 1, "long", name="big", when={"op": ">", "value": 100}),
        rule("val_odd", 1, "long", name="square", when={"op": "==", "value": 49}),
        rule("val_odd", 1, "ulong", when={"op": "<=", "value": "0x4"}),
        rule("val_odd", 0, "bool", name="odd", when={"op": "!=", "value": False}),
        rule("val_real", 2, "double", name="huge", when={"op": ">=", "value": 1e200}),
        rule("val_text", 1, "string", name="hi", when={"op": "==", "value": "h*o"}),
    ]
    policy = write_policy(sojourn, rules, triggers=[
        {"on": "value", "name": "s*", "do": ["mark"]}, {"on": "value", "name": "none", "do": ["mark"]}])
    database, _, _ = record(sojourn, [program], policy)
    hits = {}
    for row in sojourn.sql(database, "SELECT rule, value FROM rule_hits ORDER BY call_id"):
        hits.setdefault(row["rule"], []).append(row["value"])
    check(hits["big"] == [n * n for n in range(11, 21)], f"big: {hits}")
    check(hits["square"] == [49] and hits["hi"] == ["hello"] and hits["huge"] == [1e300], f"{hits}")
    check(hits["val_odd"] == [1, 4, 2, 3, 4], f"{hits}")  # the last three of val_tail
    check(hits["odd"] == [1] * 11, f"{hits}")
    rest = sojourn.sql(database, "SELECT count(*) AS n FROM arguments WHERE rule = ''")[0]["n"]
    check(rest == 0, f"{rest} values without a rule")
    done = sojourn.run(["sql", "--query", "values", "--param", "rule=big", "--csv", database],
                       capture_output=True, text=True)
    check(done.stdout.count("val_odd") == 10 and ",144," in done.stdout, f"the question: {done}")
    fired = sojourn.sql(database, "SELECT event, subject FROM triggers")
    check([(row["event"], row["subject"]) for row in fired] == [("value", "square")], f"{fired}")
    marks = sojourn.sql(database, "SELECT name FROM marks")
    check([row["name"] for row in marks] == ["value square"], f"{marks}")
    print("conditions and triggers")


def by_flags(sojourn, program):
    database, _, summary = record(sojourn, [program], None,
                                  ["--value", "val_odd(1:long)", "--value", "val_odd(result:bool)"])
    found = [row for row in values_of(sojourn, database) if row[1] == "7"]
    check(found == [("val_odd", "7", "0", "bool", "1"), ("val_odd", "7", "1", "long", "49")],
          f"by flags: {found}")
    plain, _, without = record(sojourn, [program], None)
    check(sojourn.sql(plain, "SELECT count(*) AS n FROM arguments")[0]["n"] == 0, "values unasked")
    check(without["calls"] == summary["calls"], f"{summary['calls']} calls, {without['calls']}")
    for flag in ("", "val_odd(1)", "val_odd(9:int)", "val_odd(0:int)", "val_odd(1:ints)"):
        done = sojourn.run(["record", "--value", flag, "--", program], capture_output=True, text=True)
        check(done.returncode == 125 and ("--value" in done.stderr or "ints" in done.stderr),
              f"{flag}: {done}")
    print("flags")


def values_are_copied_and_removed_with_their_session(sojourn, program):
    """Values are copied and removed together with their session."""
    rules = [rule("val_odd", 1, "long"), rule("val_text", 1, "string")]
    database, _, _ = record(sojourn, [program], write_policy(sojourn, rules))
    copy, collector = sojourn.path("copy.db"), sojourn.path("lab.db")
    for path in (copy, collector):
        if os.path.exists(path):
            os.unlink(path)
    sojourn.record(["/bin/true"], collector)  # gives ids to the collector that the copy then cannot keep
    before = sorted(values_of(sojourn, database))

    def session(database, *command):
        done = sojourn.run(["session", "--database", database, *command], capture_output=True, text=True)
        check(done.returncode == 0, f"session {command}: {done}")

    session(database, "export", "1", copy)
    session(collector, "import", copy)
    for name in (copy, collector):
        check(sorted(values_of(sojourn, name)) == before and before, f"values differ in {name}")
    number = sojourn.sql(collector, "SELECT DISTINCT session_id AS n FROM arguments")[0]["n"]
    session(collector, "remove", str(number))
    check(sojourn.sql(collector, "SELECT count(*) AS n FROM arguments")[0]["n"] == 0, "values stay")
    print("copied and removed")


def attached(sojourn, program):
    process = subprocess.Popen([program, "loop"])
    database = sojourn.path("attached.db")
    policy = write_policy(sojourn, [rule("val_odd", 1, "long"), rule("val_odd", 0, "bool")])
    both = ("SELECT a.value AS given, r.value AS result FROM arguments AS a JOIN arguments AS r "
            "USING (session_id, call_id) WHERE a.position = 1 AND r.position = 0")
    _, summary = attach_until(sojourn, process.pid, database, lambda _: len(sojourn.sql(database, both)) > 20,
                              ["--policy", policy, "--block-ms", "10000"])
    process.kill()
    process.wait()
    check(summary["left_bytes"] == 0, f"attach: {summary}")
    rows = sojourn.sql(database, both)
    check(all(row["given"] % 2 == row["result"] for row in rows), "wrong values while attached")
    print(f"attached: {len(rows)} calls with values")


def one_objc(sojourn, program):
    """Records methods. Arguments are counted behind the selector, whatever precedes them."""
    label = "/".join(program.split("/")[-2:])
    plain = "aarch64" in label  # a large structure is passed by a pointer on AArch64, else on the stack
    rules = [
        *[rule("-[SmpBase ints:*]", place, "int") for place in ((1, 2, 3, 4))],
        rule("-[SmpBase half:]", 1, "float"), rule("-[SmpBase half:]", 0, "float"),
        rule("-[SmpBase recurse:]", 1, "long"), rule("-[SmpBase recurse:]", 0, "long"),
        rule("-[SmpBase big:times:]", 2 if plain else 1, "int"), rule("+[SmpBase answer]", 0, "int"),
        rule("+[SmpBase(Category) classInCategory]", 0, "int"),
        rule("-[SmpBase mixed:]", 1, "long"), rule("-[SmpBase mixed:]", 0, "long"),
    ]
    environment = dict(sojourn.environment, TRUTH_FILE=sojourn.path("truth"),
                       OBJC_BUNDLE=os.path.join(os.path.dirname(program), "objc_bundle.so"))
    policy = write_policy(sojourn, rules)
    database, _, _ = record(sojourn, [program], policy, ["--receivers"], env=environment)
    calls = {}
    for row in sojourn.sql(database, VALUES):
        calls.setdefault((row["name"], row["call_id"]), {})[row["position"]] = row["value"]
    seen = {}
    for (name, _), given in calls.items():
        seen.setdefault(name, set()).add(tuple(given.get(place) for place in range(5)))
    none = (None,) * 4
    ints = next(name for name in seen if name.startswith("-[SmpBase ints:"))
    check(seen[ints] == {(None, 1, 2, 3, 4)}, f"{label}: {seen[ints]}")
    halves = {(1.5, 3.0), (0.5, 1.0)} | (set() if plain else {(4.0, 8.0)})
    check({given[:2] for given in seen["-[SmpBase half:]"]} == halves, f"{label}: half: {seen}")
    check(seen["-[SmpBase recurse:]"] and all(
        result == depth * (depth + 1) // 2 for result, depth, *_ in seen["-[SmpBase recurse:]"]),
        f"{label}: recurse: {seen['-[SmpBase recurse:]']}")
    times = {given[2 if plain else 1] for given in seen["-[SmpBase big:times:]"]}
    check(times == {0, 1, 2, 3, 4}, f"{label}: big:times: {times}")  # the function calls itself
    check(seen["+[SmpBase(Category) classInCategory]"] == {(7, *none)}, f"{label}: {seen}")
    check({given[:2] for given in seen["-[SmpBase mixed:]"]} == {(5, 5)}, f"{label}: mixed: {seen['-[SmpBase mixed:]']}")
    print(f"{label}: values of {len(calls)} messages")


def refusals(sojourn, program):
    """Each mistake gives one sentence with its place."""
    def one(values, what, **more):
        path = write_policy(sojourn, values, **more)
        done = sojourn.run(["policy", "check", path], capture_output=True, text=True)
        text = done.stderr + done.stdout
        check(done.returncode != 0 and what in text and f"{path}:" in text, f"{values}: {done}")

    one([rule("f", 9, "int")], "from 1 to 8")
    one([rule("f", 1, "integer")], "\"string\", \"object\" is needed")
    one([{"function": "f", "as": "int"}], "either \"argument\"")
    one([{"argument": 1, "as": "int"}], "both \"function\" and \"as\"")
    one([rule("f", 1, "string", when={"op": "<", "value": "a"})], "texts are compared")
    one([rule("f", 1, "uint", when={"op": "<", "value": -1})], "not negative")
    one([rule("f", 1, "int", when={"op": "=<", "value": 1})], "\"=<\" is not known")
    one([rule("f", 1 + number, kind) for number in range(3) for kind in
         ("int", "long", "uint", "hex", "char", "bool")], "at most 16")
    one([{**rule("f", 1, "int"), "text_bytes": 100}], "goes with \"as\": \"string\"")
    one([{**rule("f", 1, "string"), "text_bytes": 5000}], "from 1 to 4096")
    one([rule("f", 1, "int", change={"return": 1})], "minimum", calls={"minimum": "1ms"})
    one([rule("f", 1, "int")], "a profile", mode="profile")
    policy = write_policy(sojourn, [rule("val_od", 1, "int")])
    done = sojourn.run(["record", "--policy", policy, "--", program], capture_output=True, text=True)
    check(done.returncode == 125 and "val_od" in done.stderr and f"{policy}:" in done.stderr,
          f"misspelt: {done}")
    print("refusals")


def test(sojourn, arguments):
    build = os.path.dirname(os.path.dirname(sojourn.program))
    folder = os.path.join(build, "tests/samples")
    chosen = ("gcc-O0", "gcc-O2", "clang-O2", "aarch64-gcc-O0", "aarch64-pac-O2")
    programs = sorted(glob.glob(os.path.join(folder, "*-O?/values")))
    built = {os.path.basename(os.path.dirname(program)) for program in programs}
    check(built.issuperset(chosen) and (len(built) >= 15 or not LONG), f"samples: {programs}")
    for program in programs:
        if LONG or os.path.basename(os.path.dirname(program)) in chosen:
            one_sample(sojourn, program)
    program = os.path.join(folder, "gcc-O2/values")
    conditions(sojourn, program)
    by_flags(sojourn, program)
    values_are_copied_and_removed_with_their_session(sojourn, program)
    attached(sojourn, program)
    refusals(sojourn, program)
    for name in ("O0", "O2", "aarch64-O0", "aarch64-O2", "aarch64-pac"):
        if LONG or name in ("O2", "aarch64-pac"):
            one_objc(sojourn, os.path.join(folder, "objc", name, "objc_torture"))


if __name__ == "__main__":
    main(test)
