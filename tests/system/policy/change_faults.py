#!/usr/bin/env python3
"""Rules change calls that do not simply return: recursion, calls that end by a jump, an exception or longjmp,
signal handlers, a malloc whose caller dies of it, a program under a system call filter, and functions that cannot
be hooked. The program does exactly what the rule says, and the session has each hit.

change_faults.py BUILD_FOLDER
"""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main, sample_text

SOURCE = sample_text("policy/change_faults.c")
KINDS = ["set", "return", "errno", "delay", "write"]


def build(sojourn, compiler, level, flags=()):
    program = sojourn.path("faults" + "".join(flags))
    with open(program + ".cc", "w", encoding="utf-8") as file:
        file.write(SOURCE)
    subprocess.run([compiler, f"-O{level}", "-g", "-w", "-std=c++17", "-fno-builtin", "-fno-ipa-ra" if "gcc" in compiler or
                    "g++" in compiler else "-w", *flags, program + ".cc", "-lstdc++", "-o", program], check=True)
    return program


def rule(function, change, of=None, kind="int", when=None, name="rule"):
    """Makes a rule for argument `of`, or for the result if `of` is None."""
    made = {"name": name, "function": function, "as": kind, "change": change,
            **({"result": True} if of is None else {"argument": of})}
    return {**made, "when": when} if when else made


def equal(value):
    return {"op": "==", "value": value}


def run(sojourn, program, mode, rules, options=(), code=0):
    """Runs the program. Returns its output and how often each rule fired."""
    database, policy = sojourn.path("faults.db"), sojourn.path("faults.json")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": rules}, file)
    done, _ = sojourn.record([program, mode], database, ["--policy", policy, *options], text=True)
    check(done.returncode == code, f"{mode} {rules}: ended with {done.returncode}: {done.stdout} {done.stderr}")
    check_accounts(sojourn, database)
    rows = sojourn.sql(database, """SELECT r.rule, count(*) AS n, count(c.call_id) AS calls FROM rule_hits AS r
        LEFT JOIN calls AS c ON c.session_id = r.session_id AND c.call_id = r.call_id GROUP BY 1""")
    check(all(row["n"] == row["calls"] for row in rows), f"hits of no call: {rows}")
    return done.stdout.split(), {row["rule"]: row["n"] for row in rows}


def ends_of_calls(sojourn, program, has_jump):
    for mode, rules, said, hits in [
        ("factorial", [], 3628800, {}),
        ("factorial", [rule("flt_factorial", {"return": 1000}, 1, "long", equal(4))], 151200000, {"rule": 1}),
        ("factorial", [rule("flt_factorial", {"set": 20}, None, "long", equal(2))], 36288000, {"rule": 1}),
        ("factorial", [rule("flt_factorial", {"set": 1}, 1, "long", {"op": ">", "value": 7})], 1, {"rule": 1}),
        ("factorial", [rule("flt_factorial", {"return": 5, "from": 10}, 1, "long")], 18144000, {"rule": 1}),
        ("jump", [], 40, {}),
        ("jump", [rule("flt_leaf", {"set": 7})], 7, {"rule": 1}),
        ("jump", [rule("flt_jump", {"return": 9}, 1)], 9, {"rule": 1}),
        ("jump", [rule("flt_jump", {"set": 8}, 1)], 90, {"rule": 1}),
        # A call that ends by a jump has no exit of its own, so it has no result.
        ("jump", [rule("flt_jump", {"set": 7})], 40 if has_jump else 7, {} if has_jump else {"rule": 1}),
        ("throw", [], 525, {}),
        ("throw", [rule("flt_throw", {"set": 1000})], 5500, {"rule": 5}),
        ("throw", [rule("flt_throw", {"return": 1}, 1, when=equal(3))], 426, {"rule": 1}),
        ("throw", [rule("flt_throw", {"set": 2}, 1)], 30, {"rule": 10}),
        ("long", [], 525, {}),
        ("long", [rule("flt_long", {"set": 1000})], 5500, {"rule": 5}),
        ("long", [rule("flt_long", {"return": 1}, 1, when=equal(3))], 426, {"rule": 1}),
        ("handler", [], 102450, {}),
        ("handler", [rule("flt_work", {"set": 5}, 1, when=equal(1000))], 2950, {"rule": 50}),
        ("handler", [rule("flt_work", {"set": 1})], 100, {"rule": 100}),
    ]:
        found = run(sojourn, program, mode, rules)
        check(found == ([str(said)], hits), f"{mode} {rules}: {found}, not {said}, {hits}")


def no_memory(sojourn, program):
    """The program dies of its own fault. The session has the rule's hit and the call."""
    nothing = rule("malloc", {"return": 0, "from": 5}, 1, "ulong", equal(12345), "nothing")
    said, hits = run(sojourn, program, "malloc", [nothing], ["--function", "malloc"], code=139)
    check(said == ["0", "1", "2", "3"] and hits == {"nothing": 1}, f"{said}, {hits}")
    ended = sojourn.sql(sojourn.path("faults.db"), "SELECT exit_signal FROM processes")
    check(ended == [{"exit_signal": 11}], f"{ended}")
    last = sojourn.sql(sojourn.path("faults.db"), """SELECT f.name FROM calls AS c JOIN functions AS f USING (function_id)
        ORDER BY c.start_ns DESC LIMIT 1""")
    check(last == [{"name": "malloc"}], f"the last call is {last}")
    said, hits = run(sojourn, program, "malloc", [], ["--function", "malloc"])
    check(len(said) == 20 and not hits, f"without the rule: {said}, {hits}")


def changes_obey_a_seccomp_filter(sojourn, program):
    """Changes that need no system call are made, changes that need one are left out. The filter kills no program."""
    denied = rule("flt_open", {"return": -1, "errno": 13}, 2, "int", {"op": ">=", "value": 1000}, "denied")
    said, hits = run(sojourn, program, "confined", [denied])
    check(said == ["1000", "0"] and hits.get("denied", 0) <= 1000, f"{said}, {hits}")
    for change, argument in (({"delay": "1ms"}, 2), ({"write": "xx", "argument": 1}, 1)):
        kind = "int" if argument == 2 else "pointer"
        what = {key: value for key, value in change.items() if key != "argument"}
        said, _ = run(sojourn, program, "confined", [rule("flt_open", what, argument, kind)],
                      ["--value", "flt_work(n:int) -> int", "--cpu-time", "flt_work"])
        check(said == ["0", "0"], f"{change}: {said}")


def not_hooked(sojourn, program):
    """Rules cannot name functions of the C library that the agent and the program's handlers use."""
    nothing = rule("malloc", {"return": 0}, 1, "ulong")
    policy = sojourn.path("libc.json")
    for unmatched in ("refuse", "allow"):
        with open(policy, "w", encoding="utf-8") as file:
            json.dump({"policy": 1, "unmatched": unmatched, "modules": {"system": True}, "values": [nothing]}, file)
        done, _ = sojourn.record([program, "factorial"], sojourn.path("libc.db"), ["--policy", policy], text=True)
        if unmatched == "refuse":
            check(done.returncode == 125 and "malloc" in done.stderr, f"{done}")
        else:
            check(done.returncode == 0 and done.stdout == "3628800\n", f"{done}")
            told = sojourn.sql(sojourn.path("libc.db"), "SELECT not_applied FROM policies")
            check("malloc" in str(told), f"{told}")


def test(sojourn, arguments):
    sojourn.environment["XDG_CONFIG_HOME"] = sojourn.path("config")
    os.makedirs(sojourn.path("config/sojourn"))
    with open(sojourn.path("config/sojourn/changes.json"), "w", encoding="utf-8") as file:
        json.dump({"allow": [{"programs": ["*"], "functions": ["*"], "kinds": KINDS}]}, file)
    compilers = [shutil.which("gcc"), shutil.which("clang") or shutil.which("clang-14")]
    check(all(compilers), f"compilers: {compilers}")
    for compiler in compilers:
        for level in (0, 2):
            program = build(sojourn, compiler, level)
            ends_of_calls(sojourn, program, level == 2)
    changes_obey_a_seccomp_filter(sojourn, program)
    not_hooked(sojourn, program)
    no_memory(sojourn, build(sojourn, compilers[0], 2, ["-DOWN_MALLOC", "-rdynamic"]))


if __name__ == "__main__":
    main(test)
