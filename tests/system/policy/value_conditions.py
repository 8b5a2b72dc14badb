#!/usr/bin/env python3
"""Conditions of rules about values: other values, errno, the duration, the thread, the caller and the number of the
call. They apply alone and together, by number and by signature. The calls that meet them equal those that the
program prints. Rules change calls under several conditions, in one thread, between two marks, for a time, or by
bytes written to where an argument points.

value_conditions.py BUILD_FOLDER
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target
from sojourn_testing import build_sample, check, check_accounts, main, sample_text

INCLUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "agent", "include")
SOURCE = sample_text("policy/value_conditions.c")
NUMBER = {"function": "cond_work", "argument": 3, "as": "long"}
SIGNATURE = "(kind:int, path:str, number:long) -> int"


def when(subject, op=None, value=None, kind=None):
    condition = dict(subject)
    if kind:
        condition["as"] = kind
    if op:
        condition.update({"op": op, "value": value})
    return condition


def argument(number, op, value, kind):
    return when({"argument": number}, op, value, kind)


def result(op, value):
    return when({"result": True}, op, value, "int")


def rules():
    """Returns each rule with the function that tells if a printed call meets it."""
    return [
        ({**NUMBER, "when": [argument(1, "==", 1, "int"), result("<", 0)]},
         lambda c: c["kind"] == 1 and c["result"] < 0),
        ({**NUMBER, "when": [when({"errno": True}, "==", 2)]}, lambda c: c["errno"] == 2),
        ({**NUMBER, "when": [when({"duration": True}, ">=", "25ms")]}, lambda c: c["slow"]),
        ({**NUMBER, "when": [when({"thread": "bet*"})]}, lambda c: c["thread"] == "beta"),
        ({**NUMBER, "when": [when({"caller": "cond_second"}), argument(2, "==", "/sec*", "string")]},
         lambda c: c["path"] == "/second"),
        ({**NUMBER, "when": [when({"caller": "/^cond_f/"}), when({"thread": "alpha"}), result(">", 10),
                             when({"errno": True}, "!=", 0)]},
         lambda c: c["path"] == "/first" and c["thread"] == "alpha" and c["result"] > 10 and c["errno"] != 0),
        ({"function": "cond_work", "errno": True, "when": [argument(1, "==", 2, "int")]}, lambda c: c["kind"] == 2),
        ({"function": "cond_work", "result": True, "as": "int",
          "when": [argument(2, "!=", "/first", "string"), when({"call": True}, "<=", 5)]},
         lambda c, seen=[]: c["path"] != "/first" and (seen.append(1) or len(seen) <= 5)),
    ]


def build(sojourn):
    program = sojourn.path("conditions")
    with open(program + ".c", "w", encoding="utf-8") as file:
        file.write(SOURCE)
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", f"-I{INCLUDE}", program + ".c", "-pthread", "-o", program],
                   check=True)
    return program


def permit(sojourn, programs, kinds):
    folder = sojourn.path("config/sojourn")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "changes.json"), "w", encoding="utf-8") as file:
        json.dump({"allow": [{"programs": programs, "functions": ["*"], "kinds": kinds}]}, file)


def record(sojourn, program, values):
    database, policy = sojourn.path("conditions.db"), sojourn.path("policy.json")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": values}, file)
    done, _ = sojourn.record([program], database, ["--policy", policy], text=True)
    check(done.returncode == 0, f"{values}: {done.stderr}")
    check_accounts(sojourn, database)
    return database, done.stdout


def printed_calls(output):
    """Returns the calls of cond_work as it prints them. Threads run one after the other."""
    calls, thread = [], "alpha"
    for line in output.splitlines():
        words = line.split()
        if words[0] == "pair" and words[1] == "5":
            thread = "beta"
        if words[0] == "work":
            kind, path, number, returned, error, slow = words[1:]
            calls.append({"kind": int(kind), "path": path, "number": int(number), "result": int(returned),
                          "errno": int(error), "slow": slow == "1", "thread": thread})
    return calls


def check_durations(sojourn, database, calls):
    """The recorded duration decides if a call is slow. Under load other calls than those that sleep are slow, too."""
    rows = sojourn.sql(database, "SELECT duration_ns >= 25000000 AS slow FROM calls JOIN functions USING (function_id) "
                                 "WHERE name = 'cond_work' ORDER BY start_ns")
    check(len(rows) == len(calls), f"{len(rows)} recorded calls of {len(calls)}")
    for call, row in zip(calls, rows):
        check(row["slow"] or not call["slow"], f"{call} sleeps, which its duration does not have")
        call["slow"] = bool(row["slow"])


def test_kept(sojourn, program):
    named = [({**rule, "name": f"rule{i}"}, is_met) for i, (rule, is_met) in enumerate(rules())]
    signature = {"function": "cond_work", "signature": SIGNATURE, "name": "whole",
                 "when": [argument(1, "==", 1, "int"), argument(3, ">", 12, "long"), when({"errno": True}, "==", 13)]}
    database, output = record(sojourn, program, [rule for rule, _ in named])
    calls = printed_calls(output)
    check(len(calls) == 80, f"{len(calls)} calls")
    check_durations(sojourn, database, calls)
    for rule, is_met in named:
        met = [call for call in calls if is_met(call)]
        of = "errno" if "errno" in rule else "result" if "result" in rule else "number"
        found = [row["value"] for row in sojourn.sql(database, f"""
            SELECT value FROM rule_hits JOIN calls USING (session_id, call_id)
            WHERE rule = '{rule["name"]}' ORDER BY start_ns""")]
        check(found == [call[of] for call in met], f"{rule}: {found}, printed {[call[of] for call in met]}")
        check(0 < len(met) < len(calls), f"{rule} tells little")
    database, output = record(sojourn, program, [signature])
    met = [call for call in printed_calls(output) if call["kind"] == 1 and call["number"] > 12 and call["errno"] == 13]
    found = sojourn.sql(database, "SELECT position, value FROM rule_hits JOIN calls USING (session_id, call_id) "
                                  "WHERE rule = 'whole' ORDER BY start_ns, position")
    expected = [{"position": position, "value": value} for call in met for position, value in
                enumerate((call["result"], call["kind"], call["path"], call["number"]))]
    check(met and found == expected, f"{found}, printed {expected}")
    print(f"{len(named) + 1} rules keep what {len(calls)} calls print")


def test_changed(sojourn, program):
    left = {"function": "chg_pair", "argument": 1, "as": "int"}
    values = [
        {**left, "name": "both", "when": [argument(1, ">=", 3, "int"), argument(2, "==", 1, "int"),
                                          when({"thread": "alph*"})], "change": {"set": 100}},
        {**left, "name": "phase", "when": [when({"thread": "beta"})],
         "change": {"between": ["middle", "middle"], "set": 50}},
        {"function": "chg_pair", "argument": 3, "as": "pointer", "name": "bytes", "when": [argument(1, "==", 0, "int")],
         "change": {"write": "0x6f6b00"}},
        {"function": "chg_pair", "result": True, "as": "int", "name": "short", "change": {"for": "1ns", "set": 7}},
    ]
    permit(sojourn, [os.path.realpath(program)], ["set", "write"])
    database, output = record(sojourn, program, values)
    said = [line for line in output.splitlines() if line.split()[0] in ("pair", "sum")]
    expected = []
    for thread in ("alpha", "beta"):
        for i in range(6):
            given = 100 if thread == "alpha" and i in (3, 5) else 50 if thread == "beta" and i in (2, 3) else i
            expected += [f"pair {given} {i % 2} {'ok' if i == 0 else 'buffer'} {thread}", f"sum {given + i % 2}"]
    check(said == expected, f"it says {said}, not {expected}")
    found = [(row["rule"], row["n"]) for row in sojourn.sql(
        database, "SELECT rule, count(*) AS n FROM rule_hits GROUP BY 1 ORDER BY 1")]
    check(found == [("both", 2), ("bytes", 2), ("phase", 2)], f"rule_hits {found}")
    permit(sojourn, [os.path.realpath(program)], ["set"])
    with open(sojourn.path("policy.json"), "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": values}, file)
    done, _ = sojourn.record([program], sojourn.path("refused.db"), ["--policy", sojourn.path("policy.json")], text=True)
    check(done.returncode != 0 and "does not allow rule \"bytes\"" in done.stderr, f"{done.stderr}")


def test_callers(sojourn, program):
    """A rule changes the calls from one caller, and not the calls of the same function from others."""
    permit(sojourn, [os.path.realpath(program)], ["set"])
    values = [{**NUMBER, "name": "second", "when": [when({"caller": "cond_sec*"}), argument(1, "!=", 0, "int")],
               "change": {"set": 501}}]
    database, output = record(sojourn, program, values)
    calls = printed_calls(output)
    expected = [call for call in calls if call["path"] == "/second" and call["kind"] != 0]
    check(expected and [call for call in calls if call["number"] == 501] == expected, f"{output}")
    hits = sojourn.sql(database, "SELECT count(*) AS n FROM rule_hits WHERE rule = 'second'")[0]["n"]
    check(hits == len(expected), f"{hits} hits, {len(expected)} calls")
    values[0]["when"] = [when({"caller": "chg_pair"})]
    database, output = record(sojourn, program, values)
    check(all(call["number"] != 501 for call in printed_calls(output)), "calls by others were changed")


PHASES = sample_text("policy/phases.c")


def test_marks(sojourn):
    """A mark belongs to its process and does not switch the rules of another process. A mark from the command line
    switches the rules of all."""
    program = sojourn.path("phases")
    subprocess.run(["gcc", "-O1", "-w", f"-I{INCLUDE}", "-x", "c", "-", "-o", program], input=PHASES, text=True, check=True)
    permit(sojourn, [os.path.realpath(program)], ["return"])
    sojourn.environment["XDG_RUNTIME_DIR"] = sojourn.path("run")  # in this directory no other recording is running
    os.mkdir(sojourn.path("run"), 0o700)
    policy = sojourn.path("phases.json")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": [{"function": "chg_one", "argument": 1, "as": "int", "change": {
            "between": ["phase", "phase"], "return": 9}}]}, file)
    target = Target([sojourn.program, "record", "-q", "-o", sojourn.path("phases.db"), "--policy", policy, "--",
                     program], env=sojourn.environment).ready()

    def ask(what):
        target.process.stdin.write(what + "\n")
        target.process.stdin.flush()
        return target.process.stdout.readline().strip()

    def mark(end):
        done = sojourn.run(["mark", end, "phase"], capture_output=True, text=True)
        check(done.returncode == 0, f"mark: {done}")

    try:
        check([ask(what) for what in "pc"] == ["parent 2", "child 2"], "changed without a mark")
        check([ask(what) for what in "bpc"] == ["child 9", "parent 2", "child 9"], "after the child's mark")
        check([ask(what) for what in "epc"] == ["child 2", "parent 2", "child 2"], "after the child's end")
        mark("begin")
        check([ask(what) for what in "pc"] == ["parent 9", "child 9"], "after the command line's mark")
        mark("end")
        check([ask(what) for what in "pc"] == ["parent 2", "child 2"], "after the command line's end")
        check(target.finish()[0] == 0, "it ended with an error")
    finally:
        target.kill()


def test_prototypes(sojourn):
    """A file of prototypes gives the types of a library's functions without debug data."""
    library, user, prototypes = (sojourn.path(name) for name in ("libtiny.so", "user", "tiny.txt"))
    build_sample(sojourn, "policy/tiny.c", "-O1", "-shared", "-fPIC", program=library)
    build_sample(sojourn, "policy/tiny.c", "-O1", "-DTINY_USER", library, program=user)
    with open(prototypes, "w", encoding="utf-8") as file:
        file.write("# a library\n\n  tiny_sum (a:int, text:str, x:double) -> int  \nother(_:int) -> str\n")
    database = sojourn.path("tiny.db")
    options = ["--libs", "--allow-unmatched", "--prototypes", prototypes, "--value", "tiny_sum"]
    done, _ = sojourn.record([user], database, options, text=True)
    check(done.returncode == 0, f"{done.stderr}")
    found = [row["value"] for row in sojourn.sql(database, "SELECT value FROM arguments ORDER BY position")]
    check(found == [100, 1, "abc", 2.5], f"{found}")
    for line, sentence in [("tiny_sum a:int", "tiny.txt:1: NAME(NAME:KIND, ...)"), ("\nf(a:strange)", "tiny.txt:2:"),
                           ("f(" + 600 * "a" + ")", "tiny.txt:1: the line is too long")]:
        with open(prototypes, "w", encoding="utf-8") as file:
            file.write(line)
        done, _ = sojourn.record([user], database, options, text=True)
        check(done.returncode != 0 and sentence in done.stderr, f"{line[:40]}: {done.stderr}")


def test_mistakes(sojourn):
    """Each mistake gives one sentence, with its place."""
    change = {"set": 1}
    for rule, sentence in [
        ({**NUMBER, "when": []}, "a list of 1 to 8 conditions"),
        ({**NUMBER, "when": [{"argument": 1, "op": "==", "value": 1}]}, "\"as\" goes with"),
        ({**NUMBER, "when": [{"duration": True, "op": "<"}]}, "both \"op\" and \"value\""),
        ({**NUMBER, "when": [{"thread": "a", "caller": "b"}]}, "one of \"argument\""),
        ({**NUMBER, "when": [{"caller": "b", "op": "==", "value": 1}]}, "a name has no"),
        ({**NUMBER, "when": [argument(2, "<", "a", "string")]}, "texts are compared"),
        ({**NUMBER, "when": [result("==", 1)], "change": change}, "arguments are known at the entry"),
        ({**NUMBER, "when": [when({"call": True}, "<=", 1)], "change": change}, "count calls"),
        ({**NUMBER, "when": [when({"thread": "a?"})], "change": change}, "written whole"),
        ({**NUMBER, "change": {"write": "0x6"}}, "a text of 1 to 64 bytes"),
        ({**NUMBER, "change": {"write": "a", "set": 1}}, "either \"set\""),
        ({**NUMBER, "change": {"between": ["a"], "set": 1}}, "a list of two marks"),
        ({"function": "f", "errno": True, "as": "int"}, "both \"function\" and \"as\""),
        ({"function": "f", "signature": "(a:int)", "when": [argument(2, "==", 1, "int")]}, "is not about a value of the signature"),
    ]:
        with open(sojourn.path("wrong.json"), "w", encoding="utf-8") as file:
            json.dump({"policy": 1, "values": [rule]}, file)
        done = sojourn.run(["policy", "check", sojourn.path("wrong.json")], capture_output=True, text=True)
        check(done.returncode != 0 and sentence in done.stderr and "wrong.json:1:" in done.stderr,
              f"{rule}: {done.stderr}")


def test(sojourn, arguments):
    sojourn.environment["XDG_CONFIG_HOME"] = sojourn.path("config")
    program = build(sojourn)
    test_kept(sojourn, program)
    test_changed(sojourn, program)
    test_callers(sojourn, program)
    test_marks(sojourn)
    test_prototypes(sojourn)
    test_mistakes(sojourn)


if __name__ == "__main__":
    main(test)
