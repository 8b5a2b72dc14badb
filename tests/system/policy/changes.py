#!/usr/bin/env python3
"""Rules change arguments, results, errno and skipped functions of a native program, and arguments, results and
skipped calls of Mono methods. Each change is as the rule says, and rule_hits has it. Changes that cannot be made
are reported. Nothing changes without the machine's permission, in other programs, or after the recorder has ended.

changes.py BUILD_FOLDER SAMPLES_FOLDER BUILT_SAMPLES_FOLDER
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, set_policy
from sojourn_testing import EMULATOR, PATIENCE_S, check, children, main, sample_text, wait_for

OPEN = {"function": "chg_open", "argument": 2, "as": "int"}
DENY = {"name": "deny", **OPEN, "when": {"op": "==", "value": 3}, "change": {"return": -1, "errno": 13}}
NATIVE = [
    DENY,
    {"name": "once", **OPEN, "when": {"op": ">=", "value": 7}, "change": {"set": -70, "times": 1}},
    {"name": "mode", **OPEN, "when": {"op": "==", "value": 5},
     "change": {"argument": 3, "as": "long", "set": 1000}},
    {"name": "after", "function": "chg_outer", "result": True, "as": "int", "change": {"set": -2, "errno": 2}},
    {"name": "real", "function": "chg_scale", "argument": 2, "as": "float", "change": {"set": 10}},
    {"name": "slow", "function": "chg_wait", "argument": 1, "as": "long", "change": {"delay": "50ms"}},
]
PLAIN = [f"open {i} ret {11 * i} errno 0 runs 1" for i in range(1, 9)] + [
    "scale 3.000 runs 1", "outer 106 runs 2"]
CHANGED = {3: "open 3 ret -1 errno 13 runs 0", 5: "open 5 ret 1005 errno 0 runs 1",
           7: "open 7 ret 0 errno 0 runs 1", 9: "scale 15.000 runs 1", 10: "outer -2 runs 2"}
# rule, position, kind, new value, old value; chg_outer calls chg_open with 5
HITS = [("deny", 0, "int", -1, None), ("mode", 3, "long", 1000, None), ("once", 2, "int", -70, 7),
        ("real", 2, "float", 10.0, 2.0), ("after", 0, "int", -2, 1105), ("mode", 3, "long", 1000, None),
        ("slow", 1, "long", 4, 4)]
MONO = [
    {"name": "strong", "function": "Npc:Hit*", "argument": 1, "as": "int", "when": {"op": "==", "value": 2},
     "change": {"set": 50}},
    {"name": "factor", "function": "Npc:Hit*", "argument": 2, "as": "double", "change": {"set": 2.0, "from": 4}},
    {"name": "left", "function": "Npc:Hit*", "argument": 3, "as": "int", "change": {"set": 40, "times": 1}},
    {"name": "small", "function": "Npc:Hit*", "argument": 4, "as": "int", "change": {"set": 7, "one_in": 2}},
    {"name": "yes", "function": "Npc:Ask*", "argument": 1, "as": "bool", "change": {"set": True}},
]
MONO_PLAIN = ["1 299 4", "2 297 3", "3 294 2", "4 290 1", "False"]
MONO_CHANGED = ["1 106 39", "2 249 38", "3 53 37", "4 238 36", "True"]
MONO_HITS = [("left", 40, 5), ("small", 7, 200), ("strong", 50, 2), ("small", 7, 200), ("factor", 2.0, 1.0),
             ("yes", 1, 0)]


HIT = {"argument": 1, "as": "int"}
RETURNED = [
    {"name": "dear", "function": "Shop:Price*", "result": True, "as": "int", "when": {"op": "<", "value": 20},
     "change": {"set": 999}},
    {"name": "what", "function": "Shop:Price*", "argument": 2, "as": "string"},
    {"name": "tax", "function": "Shop:Tax*", "result": True, "as": "double", "change": {"set": 1.5}},
    {"name": "rate", "function": "Shop:Rate*", "argument": 1, "as": "float", "change": {"return": 0.25}},
    {"name": "same", "function": "Shop:Same*", "result": True, "as": "int", "change": {"set": 6}},
    {"name": "open", "function": "*:Open(*", "result": True, "as": "bool", "change": {"set": True}},
    {"name": "ask", "function": "Shop:Ask*", "result": True, "as": "int", "when": {"op": "==", "value": 0},
     "change": {"set": 1}},
    {"name": "ring", "function": "Shop:Ring*", **HIT, "when": {"op": "==", "value": 4}, "change": {"return": 0}},
    {"name": "broad", "function": "Shop:Broad*", **HIT, "change": {"return": 0}},
    {"name": "low", "function": "Shop:Low*", **HIT, "change": {"return": 201}},
    {"name": "deep", "function": "Shop:Deep*", **HIT, "when": {"op": "==", "value": 0}, "change": {"return": 73}},
    {"name": "cold", "function": "Shop:Cold*", "result": True, "as": "int", "when": {"op": ">", "value": 0},
     "change": {"set": -5}},
    {"name": "warm", "function": "Shop:Cold*", "result": True, "as": "int", "when": {"op": "<", "value": 0},
     "change": {"set": 5}},
    {"name": "minus", "function": "Shop:Short*", "result": True, "as": "int", "when": {"op": ">", "value": 0},
     "change": {"set": -500}},
    {"name": "plus", "function": "Shop:Short*", "result": True, "as": "int", "when": {"op": "<", "value": 0},
     "change": {"set": 500}},
    {"name": "gone", "function": "Shop:Left*", **HIT, "change": {"return": -7}},
]
RETURNED_PLAIN = ["13 25", "5 2", "5 five", "True False 1", "Bad Good", "7 1", "-1 1 -1 1 1", "6000 12000"]
RETURNED_CHANGED = ["999 25", "1.5 0.25", "6 five", "True True 1", "Fair Good", "3 1", "5 -5 500 -500 -7", "0 12000"]
RETURNED_HITS = {
    ("ask", 0, "int", 1, 0): 1, ("dear", 0, "int", 999, 13): 1, ("deep", 0, "int", 73, None): 3000,
    ("low", 0, "int", 201, None): 3000, ("open", 0, "bool", 1, 0): 1, ("open", 0, "bool", 1, 1): 1,
    ("rate", 0, "float", 0.25, None): 1, ("ring", 0, "int", 0, None): 1, ("same", 0, "int", 6, 5): 1,
    ("tax", 0, "double", 1.5, 5.0): 1, ("cold", 0, "int", -5, 1): 1, ("warm", 0, "int", 5, -1): 1,
    ("minus", 0, "int", -500, 1): 1, ("plus", 0, "int", 500, -1): 1, ("gone", 0, "int", -7, None): 1}
RETURNED_CALLS = {
    ("Shop:Deep(int)", "returned"): 15000, ("Shop:Low(byte)", "returned"): 3000,
    ("Shop:Price(int,string)", "returned"): 2, ("Shop:Ring(int)", "returned"): 2,
    ("Returned:Catch(int)", "returned"): 3000, ("Returned:Main()", "returned"): 1}


def permit(sojourn, programs, functions=("*",), kinds=("set", "return", "throw", "errno", "delay"), mode=0o644):
    folder = sojourn.path("config/sojourn")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "changes.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"allow": [{"programs": list(programs), "functions": list(functions), "kinds": list(kinds)}]},
                  file)
    os.chmod(path, mode)


def write_policy(sojourn, rules, name="changes.json", **more):
    path = sojourn.path(name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": rules, **more}, file)
    return path


def record(sojourn, command, rules, name, options=(), **more):
    database = sojourn.path(name)
    done, _ = sojourn.record(command, database, ["--policy", write_policy(sojourn, rules, **more), *options], text=True)
    return done, database


def hits(sojourn, database):
    return sojourn.sql(database, "SELECT rule, position, kind, value, old_value FROM rule_hits JOIN calls "
                                 "USING (session_id, call_id) ORDER BY call_id")


def native(sojourn, program, database, emulator=()):
    alone = subprocess.run([*emulator, program], capture_output=True, text=True, check=True).stdout.splitlines()
    check(alone[:10] == PLAIN, f"alone it says {alone}")
    permit(sojourn, [os.path.realpath(program)])
    done, database = record(sojourn, [program], NATIVE, database)
    said = done.stdout.splitlines()
    check(said[:10] == [CHANGED.get(i + 1, line) for i, line in enumerate(PLAIN)], f"it says {said}, {done.stderr}")
    check(int(said[10].split()[1]) >= 50_000_000, f"no delay: {said[10]}")
    found = [tuple(row.values()) for row in hits(sojourn, database)]
    check(found == HITS, f"rule_hits {found}")
    calls = sojourn.sql(database, "SELECT count(*) AS n FROM calls JOIN functions USING (function_id) "
                                  "WHERE name = 'chg_open' AND ending = 'returned'")
    check(calls == [{"n": 9}], f"a skipped call is a call: {calls}")
    text = sojourn.run(["export", database], capture_output=True, text=True).stdout
    check(re.search(r"leave:chg_open\(\?,3\)ret:-1 tid:", text) and "enter:chg_open(?,5,1000)" in text,
          f"function.txt: {text}")


IMPORTS = sample_text("policy/changing_imports.c")
OF_IMPORTS = [
    {"name": "more", "function": "!strtol", "result": True, "as": "long", "when": {"op": "==", "value": 12}, "change": {"set": 7}},
    {"name": "tty", "function": "!isatty", "argument": 1, "as": "int", "when": {"op": "==", "value": 77}, "change": {"return": 1}},
    {"name": "real", "function": "!strtod", "result": True, "as": "double", "change": {"set": 2.5, "times": 1}},
    {"name": "tried", "function": "!isatty", "result": True, "as": "int"},
]


def emulated(sojourn, samples):
    """Tests rules on AArch64, also where functions sign their return addresses, and results of calls into
    libraries."""
    for number, options in enumerate((["-O2"], ["-O2", "-mbranch-protection=standard"], ["-O0"])):
        program = sojourn.path("changed-aarch64")
        subprocess.run(["aarch64-linux-gnu-gcc", *options, "-D_GNU_SOURCE", "-w", os.path.join(samples, "changed.c"), "-o",
                        program], check=True)
        native(sojourn, program, f"emulated{number}.db", EMULATOR)
    program = sojourn.path("imports-aarch64")
    subprocess.run(["aarch64-linux-gnu-gcc", "-O1", "-w", "-x", "c", "-", "-o", program], input=IMPORTS, text=True, check=True)
    permit(sojourn, [os.path.realpath(program)])
    done, database = record(sojourn, [program, "11", "12", "13"], OF_IMPORTS, "imports.db", modules={"library_calls": True})
    check(done.stdout.splitlines() == ["11 0 2.5", "7 1 12.0", "13 0 13.0"], f"it says {done.stdout}, {done.stderr}")
    found = sorted((row["rule"], row["value"], row["old_value"]) for row in hits(sojourn, database))
    check(found == [("more", 7, 12), ("real", 2.5, 11.0), ("tty", 1, None)], f"rule_hits {found}")
    rows = sojourn.sql(database, "SELECT value FROM arguments JOIN calls USING (session_id, call_id) JOIN functions USING "
                                 "(function_id) WHERE name GLOB '*!isatty' AND position = 0 AND rule = '' ORDER BY call_id")
    check([row["value"] for row in rows] == [0, 0], f"results of isatty: {rows}")


def mono(sojourn, samples):
    program = sojourn.path("Changed.exe")
    subprocess.run(["mcs", os.path.join(samples, "mono", "Changed.cs"), f"-out:{program}"], check=True,
                   timeout=PATIENCE_S)
    alone = subprocess.run(["mono", program], capture_output=True, text=True, check=True).stdout.splitlines()
    check(alone == MONO_PLAIN, f"alone it says {alone}")
    permit(sojourn, ["*/mono-sgen"])
    done, database = record(sojourn, ["mono", program], MONO, "mono.db")
    check(done.stdout.splitlines() == MONO_CHANGED, f"it says {done.stdout}, {done.stderr}")
    found = sorted((row["rule"], row["value"], row["old_value"]) for row in hits(sojourn, database))
    check(found == sorted(MONO_HITS), f"rule_hits {found}")


def mono_results(sojourn, samples):
    """Rules set results and skip calls of static, generic, virtual and throwing methods, with structures and texts
    among their arguments, in threads that run the garbage collector."""
    program = sojourn.path("Returned.exe")
    subprocess.run(["mcs", os.path.join(samples, "mono", "Returned.cs"), f"-out:{program}"], check=True,
                   timeout=PATIENCE_S)
    alone = subprocess.run(["mono", program], capture_output=True, text=True, check=True).stdout.splitlines()
    check(alone == RETURNED_PLAIN, f"alone it says {alone}")
    done, database = record(sojourn, ["mono", program], RETURNED, "returned.db")
    check(done.stdout.splitlines() == RETURNED_CHANGED, f"it says {done.stdout}, {done.stderr}")
    found = {}
    for row in hits(sojourn, database):
        key = (row["rule"], row["position"], row["kind"], row["value"], row["old_value"])
        found[key] = found.get(key, 0) + 1
    check(found == RETURNED_HITS, f"rule_hits {found}")
    rows = sojourn.sql(database, """SELECT f.name, c.ending, count(*) AS calls FROM calls c
                                    JOIN functions f USING (function_id) GROUP BY 1, 2""")
    calls = {(row["name"], row["ending"]): row["calls"] for row in rows}
    for name, count in RETURNED_CALLS.items():
        check(calls.get(name) == count, f"{name} is recorded as {calls}")
    # A generic method of references has no int. Its call is recorded as it is, and the rule is reported.
    check("rule 'same': its value does not have the type of the methods; calls left unchanged: 1" in done.stderr,
          f"of Same(T): {done.stderr}")
    # A structure that the function returns may use the register of its argument. Such a function is not hooked, and is
    # reported.
    rows = sojourn.sql(database, "SELECT f.name, u.reason FROM unhooked_functions u JOIN functions f "
                                 "USING (function_id) WHERE f.name LIKE 'Shop:%'")
    check([(row["name"], row["reason"]) for row in rows] == [("Shop:Broad(int)", "a value of a rule is not in a register")],
          f"not hooked: {rows}")
    text = sojourn.run(["export", database], capture_output=True, text=True).stdout
    check('enter:Shop:Price(int,"tea")' in text, f"values of a method hooked in place: {text[:2000]}")


def rules_that_change_mono_calls_are_reported(sojourn):
    """Rules that cannot change calls of Mono methods are reported, in the report and in the session."""
    of_hit = {"function": "Npc:Hit*", "argument": 1, "as": "int"}
    of_ask = {"function": "Npc:Ask*"}
    rules = [
        {"name": "error", **of_hit, "change": {"set": 50, "errno": 13}},
        {"name": "text", **of_ask, "argument": 1, "as": "string", "change": {"delay": "1ms"}},
        {"name": "late", **of_ask, "argument": 1, "as": "bool", "change": {"delay": "1ms", "times": 1}},
    ]
    expected = [f"rule '{name}': {text}" for name, text in (
        ("error", "errno is not set for methods of Mono and Java; without \"errno\" the rest is done"),
        ("text", "a text or an object does not make a call of a Mono or Java method change; a number among its "
                 "arguments does"),
    )]
    done, database = record(sojourn, ["mono", sojourn.path("Changed.exe")], rules, "impossible.db")
    check(done.stdout.splitlines() == MONO_PLAIN, f"it says {done.stdout}, {done.stderr}")
    told = [line.removeprefix("sojourn: ") for line in done.stderr.splitlines() if "rule '" in line]
    check(told == expected, f"reported {done.stderr}")
    rows = sojourn.sql(database, "SELECT not_applied FROM policies")
    check([json.loads(row["not_applied"]) for row in rows] == [expected], f"policies {rows}")
    fired = [row["rule"] for row in hits(sojourn, database)]
    check(fired == ["late"], f"rule_hits {fired}")


def rules_change_calls_only_with_permission(sojourn, built):
    program = os.path.realpath(os.path.join(built, "changed"))
    path = sojourn.path("config/sojourn/changes.json")
    os.unlink(path)
    for given, words in ((None, "does not allow"),
                         ({"programs": ["/bin/true"]}, "does not allow"),
                         ({"functions": ["chg_scale"]}, "does not allow"),
                         ({"kinds": ["return"]}, "does not allow"),
                         ({"kinds": []}, "does not allow"),
                         ({"mode": 0o666}, "others could have written"),
                         ({"functions": ["chg_ope?"], "rule": {**DENY, "function": "chg_*"}}, "does not allow")):
        if given is not None:
            rule = given.pop("rule", DENY)
            permit(sojourn, **{"programs": [program], **given})
        else:
            rule = DENY
        done, _ = record(sojourn, [program], [rule], "refused.db")
        check(done.returncode == 125 and words in done.stderr and done.stdout == "", f"{given}: {done}")
    with open(path, "w", encoding="utf-8") as file:
        file.write("{")
    os.chmod(path, 0o644)
    done, _ = record(sojourn, [program], [DENY], "refused.db")
    check(done.returncode == 125 and "line 1" in done.stderr, f"damaged: {done}")
    # Only env is permitted. The program that env runs is another one.
    permit(sojourn, ["/usr/bin/env"])
    done, _ = record(sojourn, ["env", program], [DENY], "env.db", ["--allow-unmatched"])
    check(done.stdout.splitlines()[:10] == PLAIN, f"by env it says {done}")
    permit(sojourn, ["*"])


def mistakes(sojourn, built):
    program = os.path.join(built, "changed")
    for change, words in (({"set": 1, "return": 1}, "either"), ({}, "is needed"),
                          ({"set": 1 << 40}, "does not fit"), ({"return": 1, "argument": 2}, "no \"argument\""),
                          ({"throw": "a b"}, "name of a class"), ({"throw": "A", "set": 1}, "either"),
                          ({"set": "x"}, "whole number"), ({"delay": "2h"}, "a minute"),
                          ({"errno": 0}, "from 1 to 4095"), ({"sat": 1}, "sat")):
        done, _ = record(sojourn, [program], [{**OPEN, "change": change}], "mistakes.db")
        check(done.returncode == 125 and words in done.stderr, f"{change}: {done}")
    done, _ = record(sojourn, [program], [{"function": "chg_open", "result": True, "as": "int",
                                           "change": {"return": 1}}], "mistakes.db")
    check("has run" in done.stderr, f"return at the exit: {done}")
    done, _ = record(sojourn, [program], [{**DENY, "change": {"throw": "java.io.IOException"}}], "throws.db")
    check(done.stdout.splitlines()[:10] == PLAIN and "only Java methods can throw" in done.stderr,
          f"a native function throws: {done}")


def ask(target):
    target.process.stdin.write("x")
    target.process.stdin.flush()
    return target.process.stdout.readline()


def looping(sojourn, built, name):
    always = {**OPEN, "change": {"return": 77}}
    target = Target([sojourn.program, "record", "-q", "-o", sojourn.path(name), "--policy",
                     write_policy(sojourn, [always]), "--", os.path.join(built, "changed"), "loop"],
                    env=sojourn.environment)
    wait_for("the loop", lambda: target.process.stdout.readline() == "ready\n")
    check(ask(target) == "ret 77 runs 0\n", "the rule is not in force")
    return target


def removed_at_once(sojourn, built):
    target = looping(sojourn, built, "removed.db")
    try:
        pid = children(target.pid)[0]
        same = sojourn.path("changes.json")
        answer = set_policy(sojourn, pid, "--policy", same)
        check(ask(target) == "ret 77 runs 0\n" and not answer["not_applied"], f"the same policy: {answer}")
        set_policy(sojourn, pid, "--policy", write_policy(sojourn, [], "none.json"))
        check(ask(target) == "ret 2 runs 1\n", "the rule is still in force")
        answer = set_policy(sojourn, pid, "--policy", same)
        check(ask(target) == "ret 77 runs 0\n" and not answer["not_applied"], f"it did not come back: {answer}")
        other = {**OPEN, "change": {"return": 78, "times": 2}}
        answer = set_policy(sojourn, pid, "--policy", write_policy(sojourn, [other], "other.json"))
        check([ask(target) for _ in range(3)] == ["ret 78 runs 0\n"] * 2 + ["ret 2 runs 1\n"],
              f"a changed rule: {answer}")
        set_policy(sojourn, pid, "--policy", sojourn.path("other.json"))
        check(ask(target) == "ret 2 runs 1\n", "a rule that stays counts from the beginning")
        elsewhere = {**OPEN, "argument": 1, "change": {"return": 1}}
        answer = set_policy(sojourn, pid, "--policy", write_policy(sojourn, [elsewhere], "elsewhere.json"))
        check(not answer["not_applied"], f"a rule about another value: {answer}")
        check(ask(target) == "ret 1 runs 0\n", "a rule about another value does nothing")
        called = {**OPEN, "when": [{"caller": "chg_outer"}], "change": {"return": 1}}
        answer = set_policy(sojourn, pid, "--policy", write_policy(sojourn, [called], "called.json"))
        check(not answer["not_applied"], f"a rule about another caller: {answer}")
        check(ask(target) == "ret 2 runs 1\n", "a rule about another caller changes calls")
        permit(sojourn, ["/bin/true"])
        refused = sojourn.run(["policy", "set", str(pid), "--policy", same], capture_output=True, text=True)
        check(refused.returncode != 0 and "does not allow" in refused.stderr, f"without permission: {refused}")
        check(ask(target) == "ret 2 runs 1\n", "a rule without permission changes calls")
        permit(sojourn, ["*"])
        check(target.finish()[0] == 0, "it ended with an error")
    finally:
        target.kill()


def changes_end_with_the_recorder(sojourn, built):
    target = looping(sojourn, built, "killed.db")
    target.process.kill()
    target.process.wait()
    # The program still has the test's pipes.
    wait_for("the end of the rule", lambda: ask(target) == "ret 2 runs 1\n")
    check(ask(target) == "ret 2 runs 1\n", "the rule came back")
    target.process.stdin.close()


def test(sojourn, arguments):
    samples, built = arguments
    sojourn.environment["XDG_CONFIG_HOME"] = sojourn.path("config")
    native(sojourn, os.path.join(built, "changed"), "native.db")
    emulated(sojourn, samples)
    mono(sojourn, samples)
    mono_results(sojourn, samples)
    rules_that_change_mono_calls_are_reported(sojourn)
    rules_change_calls_only_with_permission(sojourn, built)
    mistakes(sojourn, built)
    removed_at_once(sojourn, built)
    changes_end_with_the_recorder(sojourn, built)


if __name__ == "__main__":
    main(test)
