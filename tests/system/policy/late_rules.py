#!/usr/bin/env python3
"""Rules about functions that the first policy did not name are applied, changed and removed without a restart,
launched and attached, while threads run those functions. rule_hits has each hit. The same holds for rules about
values that are recorded already, from callers that are not recorded, and after a failure. Rules that cannot begin
late are reported one by one.

late_rules.py BUILD_FOLDER
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, code_bytes, look, set_policy, start_attach
from late_testing import ask, build, goes_on, leave, permit, stands, write_policy
from sojourn_testing import check, check_accounts, children, main, sample_text
OPEN = {"name": "deny", "function": "late_open", "argument": 1, "as": "int", "change": {"return": -1, "errno": 13}}
SIZE = {"name": "small", "function": "late_size", "result": True, "as": "long", "change": {"set": 7}}
FROM = {**OPEN, "name": "from", "when": [{"caller": "late_outer"}]}
WAIT = {"name": "waits", "function": "late_wait", "result": True, "as": "int", "change": {"set": 1}}
RECORDS = {"function": "late_open", "argument": 1, "as": "int"}
# Traces all threads of a process until its input ends.
SEIZE = sample_text("policy/seize.py")
NUMBERS = {"name": "numbers", "function": "late_many", "signature": "(a:int, b:int, c:int) -> int"}


def obey(sojourn, target, pid):
    """Sets, changes and removes rules of functions that no policy has named before."""
    goes_on(target, 0, "calls by themselves")
    for round_number in range(3):
        answer = set_policy(sojourn, pid, "--policy", write_policy(sojourn, "first", [OPEN]))
        check(not answer["not_applied"], f"{round_number}: the first rule: {answer}")
        goes_on(target, 1, "calls that are denied")
        stands(target, 0, "a call that was not denied")
        answer = set_policy(sojourn, pid, "--policy", write_policy(sojourn, "both", [OPEN, SIZE, WAIT]))
        check(not answer["not_applied"], f"{round_number}: rules beside it: {answer}")
        goes_on(target, 2, "sizes that are changed")
        goes_on(target, 1, "calls that are denied beside that")
        answer = set_policy(sojourn, pid, "--policy", write_policy(sojourn, "second", [SIZE, WAIT]))
        check(not answer["not_applied"], f"{round_number}: the first one taken out: {answer}")
        goes_on(target, 0, "calls by themselves again")
        stands(target, 1, "a call that was denied after all")
    answer = set_policy(sojourn, pid, "--policy", write_policy(sojourn, "from", [FROM]))
    check(not answer["not_applied"], f"a rule about a caller: {answer}")
    goes_on(target, 3, "calls from that caller")
    stands(target, 1, "a call from elsewhere")
    answer = set_policy(sojourn, pid, "--policy", write_policy(sojourn, "none", []))
    check(answer["processes"] == 0, f"no hook is made for fewer rules: {answer}")
    goes_on(target, 0, "calls by themselves in the end")
    check(ask(target)[4] == 0, f"wrong: {ask(target)}")


def hits(sojourn, database):
    rows = sojourn.sql(database, "SELECT rule, f.name, count(*) AS n, min(value) AS low, max(value) AS high FROM rule_hits "
                       "JOIN calls USING (session_id, call_id) JOIN functions f USING (function_id) GROUP BY 1, 2")
    return {row["rule"]: (row["name"], row["n"], row["low"], row["high"]) for row in rows}


def check_hits(sojourn, database, said):
    """Checks that the rows equal the program's own counts."""
    _, changed, sizes, outers, wrong = said
    check(wrong == 0, f"{wrong} calls were half of one rule")
    found = hits(sojourn, database)
    denied = found["deny"][1] + found["from"][1]
    check(found["deny"][::3] == ("late_open", -1) and denied == changed + outers, f"denied {changed} and {outers}: {found}")
    check(found["small"][0] == "late_size" and found["small"][1] == sizes, f"sizes {sizes}: {found}")


def test_launched(sojourn, program):
    database = sojourn.path("launched.db")
    target = Target([sojourn.program, "record", "-q", "-o", database, "--function", "late_*", "--", program],
                    env=sojourn.environment).ready()
    try:
        obey(sojourn, target, children(target.pid)[0])
        status, output = target.finish()
        check(status == 0, f"it ended with {status}")
    finally:
        target.kill()
    check_accounts(sojourn, database)
    check_hits(sojourn, database, [int(part) for part in re.findall(r"\d+", output.splitlines()[-1])])
    print(f"launched: {hits(sojourn, database)}")


def test_attached(sojourn, program):
    """Uses functions that were not even hooked before."""
    database = sojourn.path("attached.db")
    target = Target([program]).ready()
    before, code = look(target.pid), code_bytes(target.pid)
    recorder = start_attach(sojourn, target.pid, database, ["--function", "late_many"])
    obey(sojourn, target, target.pid)
    answer = set_policy(sojourn, target.pid, "--policy", write_policy(sojourn, "numbers", [NUMBERS]))
    check(not answer["not_applied"], f"a signature: {answer}")
    goes_on(target, 0, "calls with values")
    leave(sojourn, target, recorder, before, code)
    status, output = target.finish()
    check(status == 0, f"it ended with {status}")
    check_accounts(sojourn, database)
    check_hits(sojourn, database, [int(part) for part in re.findall(r"\d+", output.splitlines()[-1])])
    rows = sojourn.sql(database, "SELECT position, value FROM arguments JOIN calls USING (session_id, call_id) "
                                 "JOIN functions f USING (function_id) WHERE f.name = 'late_many' ORDER BY call_id, position")
    check(rows, "no values of late_many")
    by_call = {}
    for i in range(0, len(rows) - 3, 4):
        call = {row["position"]: row["value"] for row in rows[i:i + 4]}
        check(call[0] == call[1] + 3 and call[2] == 1 and call[3] == 2, f"values {call}")
        by_call[call[1]] = call
    print(f"attached: {hits(sojourn, database)}, {len(by_call)} calls with values")


def test_recorded_before(sojourn, program):
    """A rule about a value that is recorded already changes no hook. The process still gets the first rule that
    changes calls."""
    database = sojourn.path("recorded.db")
    target = Target([sojourn.program, "record", "-q", "-o", database, "--policy",
                     write_policy(sojourn, "records", [RECORDS], functions={"include": ["late_*"]}), "--", program],
                    env=sojourn.environment).ready()
    try:
        pid = children(target.pid)[0]
        answer = set_policy(sojourn, pid, "--policy",
                            write_policy(sojourn, "changes", [RECORDS, OPEN], functions={"include": ["late_*"]}))
        check(not answer["not_applied"], f"a rule about a recorded value: {answer}")
        goes_on(target, 1, "calls whose argument was recorded and that are denied now")
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()
    check_accounts(sojourn, database)


def test_unwanted_caller(sojourn, program):
    """The process learns the addresses of callers even if every function of the callers' module is hooked already."""
    database = sojourn.path("caller.db")
    target = Target([sojourn.program, "record", "-q", "-o", database, "--function", "late_open", "--", program],
                    env=sojourn.environment).ready()
    try:
        pid = children(target.pid)[0]
        for name, rule, column in (("any", OPEN, 1), ("from", FROM, 3)):
            answer = set_policy(sojourn, pid, "--policy",
                                write_policy(sojourn, name, [rule], functions={"include": ["late_open"]}))
            check(not answer["not_applied"], f"{name}: {answer}")
            goes_on(target, column, f"{name}: calls that are denied")
        stands(target, 1, "a call from elsewhere")
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()
    check_accounts(sojourn, database)


def test_a_failed_policy_is_tried_again(sojourn, program):
    """A process that cannot be stopped does not follow the policy, and that is reported. The same policy tries
    again."""
    database = sojourn.path("failed.db")
    target = Target([sojourn.program, "record", "-q", "-o", database, "--function", "late_*", "--", program],
                    env=sojourn.environment).ready()
    tracer = None
    try:
        pid = children(target.pid)[0]
        policy = write_policy(sojourn, "again", [SIZE])
        tracer = subprocess.Popen([sys.executable, "-c", SEIZE, str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True)
        check(tracer.stdout.readline() == "seized\n", "the threads could not be seized")
        answer = set_policy(sojourn, pid, "--policy", policy)
        check(answer["not_applied"], f"under another tracer: {answer}")
        tracer.communicate()
        answer = set_policy(sojourn, pid, "--policy", policy)
        check(not answer["not_applied"] and answer["processes"] == 1, f"again: {answer}")
        goes_on(target, 2, "sizes that are changed at the second attempt")
        check(set_policy(sojourn, pid, "--policy", policy)["processes"] == 0, "a third one goes over the hooks")
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        if tracer is not None and tracer.poll() is None:
            tracer.kill()
        target.kill()
    check_accounts(sojourn, database)


def test_refused(sojourn, program):
    """Each reason is reported with its rule. Nothing changes without the machine's permission."""
    database = sojourn.path("refused.db")
    target = Target([sojourn.program, "record", "-q", "-o", database, "--library-calls", "--", program],
                    env=sojourn.environment).ready()
    try:
        pid = children(target.pid)[0]
        set_policy(sojourn, pid, "--policy", write_policy(sojourn, "numbered", [RECORDS], modules={"library_calls": True}))
        order = {"name": "order", "function": "late_open", "signature": "(number:int)"}
        answer = set_policy(sojourn, pid, "--policy", write_policy(sojourn, "refused", [order],
                                                                   modules={"library_calls": True}))
        said = "\n".join(answer["not_applied"])
        check(re.search("'order' does not begin .*count differently: write it as", said), f"order: {said}")
        permit(sojourn, ["errno"])
        done = sojourn.run(["policy", "set", "--policy", write_policy(sojourn, "first", [OPEN]), str(pid)],
                           capture_output=True, text=True)
        check(done.returncode != 0 and "changes.json" in done.stderr, f"without permission: {done}")
        goes_on(target, 0, "calls by themselves")
        check(ask(target)[1] == 0, f"changed without permission: {ask(target)}")
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()


def test_gone(sojourn, program):
    """A pattern that matches nothing is reported for the policy that has it, and not for a later policy without
    values."""
    database = sojourn.path("gone.db")
    target = Target([sojourn.program, "record", "-q", "-o", database, "--function", "late_many", "--", program],
                    env=sojourn.environment).ready()
    try:
        pid = children(target.pid)[0]
        with open(sojourn.path("bare.json"), "w", encoding="utf-8") as file:
            json.dump({"policy": 1}, file)
        for path in (write_policy(sojourn, "gone", [{"function": "late_nowhere", "cpu": True}]),
                     sojourn.path("bare.json"), write_policy(sojourn, "none", [])):
            set_policy(sojourn, pid, "--policy", path)
            goes_on(target, 0, "calls by themselves")
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()
    told = [row["not_applied"] for row in sojourn.sql(database, "SELECT not_applied FROM policies ORDER BY number")]
    check(["late_nowhere" in text for text in told] == [False, True, False, False], f"told: {told}")


def test(sojourn, arguments):
    program = build(sojourn)
    test_launched(sojourn, program)
    test_attached(sojourn, program)
    test_recorded_before(sojourn, program)
    test_unwanted_caller(sojourn, program)
    test_a_failed_policy_is_tried_again(sojourn, program)
    test_refused(sojourn, program)
    test_gone(sojourn, program)


if __name__ == "__main__":
    main(test)
