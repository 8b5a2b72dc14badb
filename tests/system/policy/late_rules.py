#!/usr/bin/env python3
"""Rules about functions that the running program did not begin with: they are obeyed, changed and taken
out without a restart, launched and attached, while threads are in those functions; rule_hits has each. So are
rules about values that are recorded already, from callers that are not recorded, and after a failure; by debug
data, about calls into libraries, and about memory. What cannot begin late is said, rule by rule.

late_rules.py BUILD_FOLDER
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, check_same, code_bytes, look, set_policy, start_attach
from sojourn_testing import PATIENCE_S, check, check_accounts, children, main, sample_text, wait_for

SOURCE = sample_text("policy/late_rules.c")
OPEN = {"name": "deny", "function": "late_open", "argument": 1, "as": "int", "change": {"return": -1, "errno": 13}}
SIZE = {"name": "small", "function": "late_size", "result": True, "as": "long", "change": {"set": 7}}
FROM = {**OPEN, "name": "from", "when": [{"caller": "late_outer"}]}
WAIT = {"name": "waits", "function": "late_wait", "result": True, "as": "int", "change": {"set": 1}}
HEAP_NAME = "/memfd:sojourn-heap (deleted)"
RECORDS = {"function": "late_open", "argument": 1, "as": "int"}
# Traces all threads of a process until its input ends.
SEIZE = sample_text("policy/seize.py")
NUMBERS = {"name": "numbers", "function": "late_many", "signature": "(a:int, b:int, c:int) -> int"}


def permit(sojourn, kinds):
    folder = sojourn.path("config/sojourn")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "changes.json"), "w", encoding="utf-8") as file:
        json.dump({"allow": [{"programs": ["*"], "functions": ["*"], "kinds": kinds}]}, file)


def write_policy(sojourn, name, rules, **more):
    path = sojourn.path(name + ".json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": rules, **more}, file)
    return path


def ask(target):
    """Calls of late_open by themselves and changed, of late_size changed, of late_open from late_outer changed, and
    wrong ones."""
    target.process.stdin.write("?\n")
    target.process.stdin.flush()
    return [int(part) for part in re.findall(r"\d+", target.process.stdout.readline())]


def goes_on(target, column, what):
    before = ask(target)[column]
    wait_for(what, lambda: ask(target)[column] > before + 100)


def stands(target, column, what):
    """After what was under way has ended, the count stays."""
    goes_on(target, 0 if column else 1, what)
    before = ask(target)
    goes_on(target, 0 if column else 1, what)
    check(ask(target)[column] == before[column], f"{what}: {before} and then {ask(target)}")


def obey(sojourn, target, pid):
    """Sets, changes and takes out rules of functions that no policy has named before."""
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
    """Rows are what the program has counted of its own."""
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


def leave(sojourn, target, recorder, before, code, has_heap=False):
    """After a detach the process is what it was before, but for what takes back blocks of a heap that was patched."""
    done = sojourn.run(["detach", str(target.pid)], capture_output=True, text=True)
    check(done.returncode == 0 and recorder.wait(PATIENCE_S) == 0, f"detach: {done}")
    after, now = look(target.pid), code_bytes(target.pid)
    if has_heap:
        after["mappings"] = [row for row in after["mappings"] if row[1] != HEAP_NAME and row[:2] != ("r-xp", "")]
        now = {key: value for key, value in now.items() if key[2] != HEAP_NAME}
    check_same(before, after, code, now, "after detach")


def test_attached(sojourn, program):
    """Of functions that were not even hooked before."""
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
    """Of a value that is recorded already no hook changes: the process learns of the first rule that changes calls
    all the same."""
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
    """Where a caller lies the process learns also when nothing of its module lacks a hook."""
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


def test_failed_before(sojourn, program):
    """A process that cannot be stopped does not follow, which is said; the same policy tries again."""
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
    """Each reason with its rule; and nothing without the machine's permission."""
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


def typed_calls(sojourn, database, *names):
    """Values by name of the calls of a function that have some."""
    calls = {}
    for row in sojourn.sql(database, f"""SELECT a.call_id, coalesce(nullif(t.name, ''), 'result') AS name, a.value
            FROM arguments AS a JOIN calls USING (session_id, call_id) JOIN functions AS f USING (function_id)
            LEFT JOIN value_types AS t ON t.session_id = a.session_id AND t.function_id = f.function_id
            AND t.position = a.position WHERE f.name IN ({", ".join(repr(name) for name in names)})"""):
        check(row["name"] not in calls.setdefault(row["call_id"], {}), f"{row} is there twice")
        calls[row["call_id"]][row["name"]] = row["value"]
    return list(calls.values())


def check_typed(calls):
    """Whole calls are as the program makes them; one that was under way when its hooks came may lack an end."""
    whole = [call for call in calls if len(call) == 8]
    check(len(calls) - len(whole) <= 6, f"{len(calls) - len(whole)} calls without some values: {calls[:2]}")
    for call in whole:
        number, of = call["number"], call["number"] % 2
        expected = {"name": "over there", "of": "GREEN" if of else "RED", "share": number * 0.5, "at": call["at"],
                    "at->x": number, "at->y": number * 0.5, "number": number, "result": number * 2 + (5 if of else 0)}
        check(call == expected, f"{call} instead of {expected}")
    return len(whole)


def test_typed(sojourn, program, launched):
    """Debug data are read when a rule asks for them: beside the plain value that was recorded before, of functions
    that were not hooked, of none twice; where there are none that is said."""
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


# Positions of these are not those of the debug data.
NUMBERED = ([{"function": "late_typed", "argument": 1, "as": "double"}, {"function": "late_typed", "argument": 3, "as": "int"}],
            [{"function": "late_typed", "signature": "(name:string, of:int)"}],
            [{"name": "even", "function": "late_typed", "argument": 2, "as": "int", "when": {"op": "==", "value": 0}}])


def test_numbered(sojourn, program, before):
    """Values that are recorded by number or signature go on as they were and get no names by debug data, which is said;
    other functions of the same pattern have their types."""
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
            check("'late_[mt]*': values of 1 functions are recorded by number or signature so far: record again" in answer, answer)
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
    """Where debug data have named values of a function, that a rule by number does not record others is said."""
    rules = [{"function": "late_t*"}, {"name": "sixth", "function": "late_typed", "argument": 6, "as": "int"}]
    target = Target([sojourn.program, "record", "-q", "-o", sojourn.path("named.db"), "--policy",
                     write_policy(sojourn, "named", rules[:1]), "--", program], env=sojourn.environment).ready()
    try:
        said = "\n".join(set_policy(sojourn, children(target.pid)[0], "--policy", write_policy(sojourn, "sixth", rules))["not_applied"])
        check("'sixth': values of 1 functions are recorded by debug data so far: record again" in said, said)
        goes_on(target, 0, "calls with the values that they had")
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()
    check_typed(typed_calls(sojourn, sojourn.path("named.db"), "late_typed"))


MEMORY = [{"function": "late_store", "memory": True}, {"function": "late_store", "signature": "(bytes:ulong) -> ulong"}]


def test_memory(sojourn, program, launched, *options):
    """What calls allocate is counted from then on, whether the allocator was patched before or is patched now."""
    database = sojourn.path("memory.db")
    if os.path.exists(database):
        os.unlink(database)
    if launched:
        target = Target([sojourn.program, "record", "-q", "-o", database, "--function", "late_many", *options, "--", program],
                        env=sojourn.environment).ready()
    else:
        target = Target([program]).ready()
        before, code = look(target.pid), code_bytes(target.pid)
        recorder = start_attach(sojourn, target.pid, database, ["--function", "late_many", *options])
    try:
        pid = children(target.pid)[0] if launched else target.pid
        for rules in (MEMORY[:1], MEMORY, [], MEMORY):
            answer = set_policy(sojourn, pid, "--policy", write_policy(sojourn, "memory", rules))
            check(not [text for text in answer["not_applied"] if "go on recording to the end" not in text], f"{rules}: {answer}")
            goes_on(target, 0, "calls whose memory is counted")
        if not launched:
            leave(sojourn, target, recorder, before, code, has_heap=True)
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()
    check_accounts(sojourn, database)
    rows = sojourn.sql(database, """SELECT a.value AS held, k.allocations, k.allocated_bytes, k.frees, k.freed_bytes
        FROM call_costs AS k JOIN functions AS f USING (function_id) JOIN arguments AS a USING (call_id)
        WHERE f.name = 'late_store' AND a.position = 0""")
    check(len(rows) > 100, f"{len(rows)} calls whose memory was counted")
    wrong = [row for row in rows if list(row.values()) != [row["held"], 1, row["held"], 1, row["held"]]]
    check(not wrong, f"{wrong[:3]}")
    print(f"memory of {len(rows)} calls")


def test_memory_refused(sojourn, program):
    """An allocator whose entries were patched to watch freed memory does not begin to count, which is said at once."""
    target = Target([sojourn.program, "record", "-q", "-o", sojourn.path("zombies.db"), "--zombies", "heap", "--", program],
                    env=sojourn.environment).ready()
    try:
        answer = set_policy(sojourn, children(target.pid)[0], "--policy", write_policy(sojourn, "memory", MEMORY))
        check(re.search(r"memory: .*not counted: freed memory has been watched without counting: record again",
                        "\n".join(answer["not_applied"])), f"{answer}")
        goes_on(target, 0, "calls by themselves")
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()


CROWDED = "'late_t*': 1 functions have as many values"


def test_crowded(sojourn, program):
    """Values by debug data that find no room beside others are reported."""
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
    """Where there are no debug data is said in the answer, of the policy that asks for them alone."""
    program = sojourn.path("bare")
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-x", "c", "-", "-pthread", "-o", program], input=SOURCE, text=True, check=True)
    target = Target([sojourn.program, "record", "-q", "-o", sojourn.path("bare.db"), "--function", "late_*", "--", program],
                    env=sojourn.environment).ready()
    try:
        pid = children(target.pid)[0]
        for rules, is_told in (([{"function": "late_typed"}], True), ([], False)):
            answer = set_policy(sojourn, pid, "--policy", write_policy(sojourn, "bare", rules))
            said = re.search("late_typed: no debug data about 1 of 1 functions.*give a signature", "\n".join(answer["not_applied"]))
            check((said is not None) == is_told, f"{rules}: {answer}")
            goes_on(target, 0, "calls by themselves")
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()
LIBRARY = """#include <unistd.h>
__attribute__((noipa)) int late_apart(int number) { return number + 1; }
__attribute__((noipa)) int late_twice(int number) { return number * 2; }
__attribute__((noipa)) int late_block(int file, char *line) { return (int)read(file, line, 1) + 4; }
"""
CALLER = sample_text("policy/late_caller.c")
IMPORTS = [{"function": "!late_apart"},
           {"name": "less", "function": "!late_twice", "result": True, "as": "int", "change": {"set": -1}},
           {"function": "!late_block", "signature": "(file:int, line:pointer) -> int"}]


def build_caller(sojourn, binding):
    library, caller = sojourn.path("liblate.so.1"), sojourn.path("caller")
    subprocess.run(["gcc", "-O1", "-g", "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-Wl,-soname,liblate.so.1"],
                   input=LIBRARY, text=True, check=True)
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-x", "c", "-", "-x", "none", library, "-pthread", "-o", caller,
                    "-Wl,-rpath," + sojourn.path(""), "-Wl,-z," + binding], input=CALLER, text=True, check=True)
    return caller


def check_apart(sojourn, database):
    calls = [call for call in typed_calls(sojourn, database, "liblate.so.1!late_apart", "!late_apart") if len(call) == 2]
    check(len(calls) > 300 and all(call["result"] == call["number"] + 1 for call in calls), f"{len(calls)}: {calls[:3]}")
    return len(calls)


def test_hooked_library(sojourn):
    """Where the library is hooked, too, its functions record results for calls into it from then on; that a rule about
    such calls does not change results is said."""
    permit(sojourn, ["return", "errno", "set"])
    caller, database = build_caller(sojourn, "lazy"), sojourn.path("hooked.db")
    target = Target([sojourn.program, "record", "-q", "-o", database, "--library-calls", "--module", "caller", "--module", "liblate*",
                     "--", caller], env=sojourn.environment).ready()
    try:
        policy = write_policy(sojourn, "hooked", IMPORTS[:1], modules={"library_calls": True, "include": ["caller", "liblate*"]})
        answer = set_policy(sojourn, children(target.pid)[0], "--policy", policy)
        check(not answer["not_applied"], f"{answer}")
        for _ in range(5):
            goes_on(target, 0, "calls with results of a hooked library")
        policy = write_policy(sojourn, "reach", IMPORTS[:2], modules={"library_calls": True, "include": ["caller", "liblate*"]})
        said = "\n".join(set_policy(sojourn, children(target.pid)[0], "--policy", policy)["not_applied"])
        check("'less': results of 1 functions that are recorded themselves are changed by rules about them only: name" in said, said)
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()
    check_accounts(sojourn, database)
    print(f"calls into a hooked library: {check_apart(sojourn, database)}")


def test_imports(sojourn, options, binding):
    """Calls into libraries that were recorded without values, or not recorded at all, have them from then on, by the
    library's debug data too; rules change their results; a call that was open meanwhile ends as it would have."""
    permit(sojourn, ["return", "errno", "set"])
    caller, database = build_caller(sojourn, binding), sojourn.path("imports.db")
    if os.path.exists(database):
        os.unlink(database)
    target = Target([sojourn.program, "record", "-q", "-o", database, *options, "--module", "caller", "--", caller],
                    env=sojourn.environment).ready()
    modules = {"library_calls": True, "include": ["caller"]}
    try:
        pid = children(target.pid)[0]
        for round_number in range(3):
            for rules, column in ((IMPORTS[:1], 0), (IMPORTS[:2], 1), (IMPORTS, 1), ([], 0)):
                answer = set_policy(sojourn, pid, "--policy", write_policy(sojourn, "imports", rules, modules=modules))
                said = [text for text in answer["not_applied"] if "go on recording to the end" not in text]
                check(not said, f"{round_number}: {rules}: {answer}")
                goes_on(target, column, f"calls under {len(rules)} rules")
        stands(target, 1, "a result that was changed after all")
        status, output = target.finish()
        check(status == 0, f"it ended with {status}: {output}")
    finally:
        target.kill()
    check_accounts(sojourn, database)
    changed = int(re.findall(r"\d+", output.splitlines()[-1])[1])
    count = sojourn.sql(database, "SELECT count(*) AS n FROM rule_hits WHERE rule = 'less' AND value = -1")[0]["n"]
    check(count == changed and changed > 0, f"{count} hits, {changed} results changed")
    apart = check_apart(sojourn, database)
    blocked = sojourn.sql(database, "SELECT call_id, ending FROM calls JOIN functions USING (function_id) "
                          "WHERE name LIKE '%!late_block'")
    check([row["ending"] for row in blocked] == (["returned"] if options else []), f"{blocked}")
    results = sojourn.sql(database, f"SELECT value FROM arguments WHERE position = 0 AND call_id = {blocked[0]['call_id']}"
                          ) if options else []
    check([row["value"] for row in results] == ([5] if options else []), f"of the open call: {results}")
    print(f"calls into libraries: {apart} with values, {changed} changed")


def test_gone(sojourn, program):
    """A pattern that matches nothing is reported for the policy that has it, and not of a later one without values."""
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
    sojourn.environment["XDG_CONFIG_HOME"] = sojourn.path("config")
    permit(sojourn, ["return", "errno", "set"])
    program = sojourn.path("late")
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-x", "c", "-", "-pthread", "-o", program], input=SOURCE,
                   text=True, check=True)
    test_launched(sojourn, program)
    test_attached(sojourn, program)
    test_recorded_before(sojourn, program)
    test_unwanted_caller(sojourn, program)
    test_failed_before(sojourn, program)
    test_refused(sojourn, program)
    test_typed(sojourn, program, True)
    test_typed(sojourn, program, False)
    for before in NUMBERED:
        test_numbered(sojourn, program, before)
    test_named(sojourn, program)
    test_memory(sojourn, program, True)
    test_memory(sojourn, program, True, "--thread-memory")
    test_memory(sojourn, program, False)
    test_memory_refused(sojourn, program)
    test_crowded(sojourn, program)
    test_untyped(sojourn)
    test_imports(sojourn, ["--library-calls"], "lazy")
    test_imports(sojourn, ["--library-calls"], "now")
    test_imports(sojourn, [], "lazy")
    test_hooked_library(sojourn)
    test_gone(sojourn, program)


if __name__ == "__main__":
    main(test)
