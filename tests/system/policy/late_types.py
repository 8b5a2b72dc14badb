#!/usr/bin/env python3
"""Rules by debug data begin in a running program, launched and attached, beside values of other functions and under
patterns that match the same function. Values recorded by number or signature keep no names, which is reported.
Functions without debug data, and values that do not fit, are reported, too.

late_types.py BUILD_FOLDER
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, code_bytes, look, set_policy, start_attach
from late_testing import SOURCE, build, goes_on, leave, typed_calls, write_policy
from sojourn_testing import check, check_accounts, children, main


def check_typed(calls):
    """Checks that complete calls are as the program makes them. A call that was running when its hooks were set may
    lack its end."""
    whole = [call for call in calls if len(call) == 8]
    check(len(calls) - len(whole) <= 6, f"{len(calls) - len(whole)} calls without some values: {calls[:2]}")
    for call in whole:
        number, of = call["number"], call["number"] % 2
        expected = {"name": "over there", "of": "GREEN" if of else "RED", "share": number * 0.5, "at": call["at"],
                    "at->x": number, "at->y": number * 0.5, "number": number, "result": number * 2 + (5 if of else 0)}
        check(call == expected, f"{call} instead of {expected}")
    return len(whole)


def test_typed(sojourn, program, launched):
    """Debug data are read when a rule asks for them: beside the plain value that was recorded before, for functions
    that were not hooked, and never twice. Missing debug data are reported."""
    database = sojourn.path(f"typed{launched}.db")
    rules = [{"function": name} for name in ("late_many", "late_t*", "late_*")]
    policies = [write_policy(sojourn, f"typed{i}", rules[:i + 1], functions={"include": ["late_many", "late_typed"]})
                for i in range(len(rules))]
    if launched:
        target = Target([sojourn.program, "record", "-q", "-o", database, "--function", "late_many", "--", program],
                        env=sojourn.environment).ready()
    else:
        target = Target([program]).ready()
        before, code = look(target.pid), code_bytes(target.pid)
        recorder = start_attach(sojourn, target.pid, database, ["--function", "late_many"])
    try:
        pid = children(target.pid)[0] if launched else target.pid
        for policy in policies:
            answer = set_policy(sojourn, pid, "--policy", policy)
            check(not answer["not_applied"], f"{policy}: {answer}")
            goes_on(target, 0, "calls with values by debug data")
        if not launched:
            leave(sojourn, target, recorder, before, code)
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()
    check_accounts(sojourn, database)
    whole = check_typed(typed_calls(sojourn, database, "late_typed"))
    many = [call for call in typed_calls(sojourn, database, "late_many") if len(call) == 4]
    check(whole > 100 and len(many) > whole, f"{whole} calls of late_typed, {len(many)} of late_many")
    check(all(call == {"a": call["a"], "b": 1, "c": 2, "result": call["a"] + 3} for call in many), f"{many[:3]}")
    rows = sojourn.sql(database, "SELECT f.name, count(*) AS n FROM value_types JOIN functions AS f USING (function_id) "
                       "GROUP BY 1")
    counted = {row["name"]: row["n"] for row in rows}
    check((counted["late_many"], counted["late_typed"]) == (4, 8), f"types: {counted}")
    print(f"types that came late: {whole} and {len(many)} calls, {counted}")


# These positions differ from those of the debug data.
NUMBERED = ([{"function": "late_typed", "argument": 1, "as": "double"}, {"function": "late_typed", "argument": 3, "as": "int"}],
            [{"function": "late_typed", "signature": "(name:string, of:int)"}],
            [{"name": "even", "function": "late_typed", "argument": 2, "as": "int", "when": {"op": "==", "value": 0}}])


def test_numbered(sojourn, program, before):
    """Values recorded by number or signature continue unchanged and get no names by debug data, which is reported.
    Other functions of the same pattern have their types."""
    database = sojourn.path("numbered.db")
    if os.path.exists(database):
        os.unlink(database)
    policies = [write_policy(sojourn, f"numbered{i}", [*before, *more], functions={"include": ["late_many", "late_typed"]})
                for i, more in enumerate(([], [{"function": "late_[mt]*"}]))]
    target = Target([sojourn.program, "record", "-q", "-o", database, "--policy", policies[0], "--", program],
                    env=sojourn.environment).ready()
    try:
        goes_on(target, 0, "calls before there are types")
        for _ in range(2):
            answer = "\n".join(set_policy(sojourn, children(target.pid)[0], "--policy", policies[1])["not_applied"])
            check("'late_[mt]*': values of 1 function are recorded by number or signature so far: record again" in answer, answer)
            goes_on(target, 0, "calls with the values that they had")
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()
    check_accounts(sojourn, database)
    types = sojourn.sql(database, "SELECT f.name, count(*) AS n FROM value_types JOIN functions AS f USING (function_id) GROUP BY 1 ORDER BY 1")
    declared = [{"name": "late_typed", "n": 2}] if "signature" in before[0] else []
    check(types == [{"name": "late_many", "n": 4}, *declared], f"types: {types}")
    calls = sojourn.sql(database, "SELECT call_id, count(a.position) AS n FROM calls LEFT JOIN arguments AS a USING (call_id) "
                        "JOIN functions USING (function_id) WHERE name = 'late_typed' GROUP BY 1 ORDER BY 1")
    expected = {0, 1} if "when" in before[0] else {2}
    counts = {row["n"] for row in calls[:-100]}
    check(len(calls) > 300 and counts == expected, f"{len(calls)} calls with {counts} values")
    print(f"{len(calls)} calls keep the values that they had")


def test_named(sojourn, program):
    """If debug data have named values of a function, a rule by number records no others, which is reported."""
    rules = [{"function": "late_t*"}, {"name": "sixth", "function": "late_typed", "argument": 6, "as": "int"}]
    target = Target([sojourn.program, "record", "-q", "-o", sojourn.path("named.db"), "--policy",
                     write_policy(sojourn, "named", rules[:1]), "--", program], env=sojourn.environment).ready()
    try:
        said = "\n".join(set_policy(sojourn, children(target.pid)[0], "--policy", write_policy(sojourn, "sixth", rules))["not_applied"])
        check("'sixth': values of 1 function are recorded by debug data so far: record again" in said, said)
        goes_on(target, 0, "calls with the values that they had")
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()
    check_typed(typed_calls(sojourn, sojourn.path("named.db"), "late_typed"))


CROWDED = "'late_t*': other rules use the space for values of 1 function"


def test_crowded(sojourn, program):
    """Values by debug data that do not fit beside others are reported."""
    database = sojourn.path("crowded.db")
    rules = [{"name": f"number {argument}", "function": "late_typed", "result": True, "as": "int",
              "when": [{"argument": argument, "as": kind, "op": "==", "value": -1} for kind in ("int", "double")]}
             for argument in range(1, 9)]
    target = Target([sojourn.program, "record", "-q", "-o", database, "--policy", write_policy(sojourn, "full", rules), "--",
                     program], env=sojourn.environment).ready()
    try:
        answer = set_policy(sojourn, children(target.pid)[0], "--policy",
                            write_policy(sojourn, "crowded", [*rules, {"function": "late_t*"}]))
        check(CROWDED in "\n".join(answer["not_applied"]), f"{answer}")
        goes_on(target, 0, "calls with as many values as fit")
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()
    check_accounts(sojourn, database)
    told = [row["not_applied"] for row in sojourn.sql(database, "SELECT not_applied FROM policies ORDER BY number")]
    check([CROWDED in text for text in told] == [False, True], f"told: {told}")


def test_untyped(sojourn):
    """If there are no debug data, the answer to the policy that asks only for them says so."""
    program = sojourn.path("bare")
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-x", "c", "-", "-pthread", "-o", program], input=SOURCE, text=True, check=True)
    target = Target([sojourn.program, "record", "-q", "-o", sojourn.path("bare.db"), "--function", "late_*", "--", program],
                    env=sojourn.environment).ready()
    try:
        pid = children(target.pid)[0]
        for rules, is_told in (([{"function": "late_typed"}], True), ([], False)):
            answer = set_policy(sojourn, pid, "--policy", write_policy(sojourn, "bare", rules))
            said = re.search("late_typed: no debug data about 1 of 1 function.*give a signature", "\n".join(answer["not_applied"]))
            check((said is not None) == is_told, f"{rules}: {answer}")
            goes_on(target, 0, "calls by themselves")
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()


def test(sojourn, arguments):
    program = build(sojourn)
    test_typed(sojourn, program, True)
    test_typed(sojourn, program, False)
    for before in NUMBERED:
        test_numbered(sojourn, program, before)
    test_named(sojourn, program)
    test_crowded(sojourn, program)
    test_untyped(sojourn)


if __name__ == "__main__":
    main(test)
