#!/usr/bin/env python3
"""Java: function.txt has the values of named methods, interpreted and compiled. Rules set arguments and results,
leave calls out, and throw instead of calls, which rule_hits counts. Rules that cannot apply are reported.

java_values.py BUILD_FOLDER
"""
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import start_attach
from java_programs import Program, sample_classes
from sojourn_testing import PATIENCE_S, check, check_accounts, children, function_lines, main, wait_for

INTERPRETED = ["-Xint"]
COMPILED = ["-Xcomp", "-XX:TieredStopAtLevel=1"]  # the first compiler starts sooner
MIXED = ["-Xmixed"]
NPC = "Kinds$Npc"
VALUES = [f"{NPC}.hit(1:int)", f"{NPC}.hit(2:string)", f"{NPC}.hit(result:int)",
          f"{NPC}.join(left:str, right:str) -> str", f"{NPC}.scale(1:double)", f"{NPC}.scale(2:float)",
          f"{NPC}.scale(result:double)", f"{NPC}.wide(1:long)", f"{NPC}.wide(3:int)", f"{NPC}.wide(4:object)",
          f"{NPC}.wide(result:long)", f"{NPC}.paint(1:object)", f"{NPC}.paint(2:object)",
          f"{NPC}.paint(4:object)", f"{NPC}.paint(result:object)", f"{NPC}.plain(1:object)",
          f"{NPC}.plain(2:object)", f"{NPC}.plain(3:object)", f"{NPC}.fail(1:int)", f"{NPC}.ask(result:bool)",
          f"{NPC}.rate(of:float) -> float"]
# Returns the text in the brackets, and the result, of each call of the methods above, in order.
CALLS = [
    ('hit(30,"J\u00f6rg \\"\u20ac\\" \U0001f600")', "70"),
    ("hit(-5,null)", "105"),
    ('join("one","' + "x" * 64 + '...")', '"one' + "x" * 61 + '..."'),
    ("scale(1.5,2.0)", "3.0"),
    ("wide(1099511627776,boolean,-3,'a',short)", "1099511627570"),
    (f"paint(GREEN,int[3],java.lang.String[][],{NPC}@ID)", "BLUE"),
    ('paint(null,null,java.lang.String[][],"text")', "null"),
    ("plain(-7,false,'\u00e4')", "-"),
    ("fail(0)", "!Kinds$Refused"),
    ("plain(1,true,'x')", "-"),
    ("fail(1)", "!Kinds$Refused"),
    ("ask()", "0"),
    ("rate(3.0)", "1.5"),
]
RULES = [
    {"name": "left", "function": "Ruled.add", "argument": 1, "as": "int", "when": {"op": "==", "value": 3},
     "change": {"set": 30}},
    {"name": "right", "function": "Ruled.add", "argument": 1, "as": "int", "when": {"op": "==", "value": 1},
     "change": {"argument": 2, "set": 20}},
    {"name": "by", "function": "Ruled.scale", "argument": 1, "as": "float", "change": {"set": 2.5}},
    {"name": "scaled", "function": "Ruled.scale", "result": True, "as": "double", "change": {"set": 0.1}},
    {"name": "free", "function": "Ruled.price", "argument": 1, "as": "long",
     "change": {"argument": 2, "as": "bool", "set": True}},
    {"name": "unit", "function": "Ruled.price", "argument": 3, "as": "int",
     "change": {"argument": 4, "as": "uint", "set": 8364}},
    {"name": "nameless", "function": "Ruled.name", "argument": 1, "as": "int", "when": {"op": ">", "value": 1},
     "change": {"return": 0}},
    {"name": "opened", "function": "Ruled.open", "result": True, "as": "bool", "change": {"set": True}},
    {"name": "closed", "function": "Ruled.write", "argument": 1, "as": "int", "when": {"op": "==", "value": 2},
     "change": {"throw": "Ruled$Closed"}},
    {"name": "state", "function": "Ruled.write", "argument": 1, "as": "int", "when": {"op": "==", "value": 3},
     "change": {"throw": "java.lang.IllegalStateException"}},
    {"name": "no class", "function": "Ruled.write", "argument": 1, "as": "int", "when": {"op": "==", "value": 1},
     "change": {"throw": "java.lang.String"}},
    {"name": "never", "function": "Ruled.always", "argument": 1, "as": "int", "change": {"return": 42}},
]
PLAIN = ["3 7", "6.0", "16", "number 1, number 2", "false written, written, written", "1", "11", "36"]
# 30 rounds of sum: 1 of 8 add(1, 20), 1 of 8 add(3 -> 30, 1).
RULED = ["21 34", "0.1", "8364", "number 1, null",
         "true written, Ruled$Closed: thrown by a rule of Sojourn, java.lang.IllegalStateException", "42", "7"]
HITS = [("right", 2, 20, None), ("left", 1, 30, 3), ("by", 1, 2.5, 2.0), ("scaled", 0, 0.1, 7.5),
        ("unit", 4, 8364, None), ("free", 2, 1, None), ("nameless", 0, 0, None), ("opened", 0, 1, 0),
        ("closed", 1, 2, 2), ("state", 1, 3, 3), ("never", 0, 42, None)]
ROUNDS = 40000


def record(sojourn, command, name, options):
    database = sojourn.path(name)
    done, summary = sojourn.record(command, database, ["--block-ms", "10000", *options],
                                   text=True)
    check_accounts(sojourn, database)
    return done, summary, database


def values_are_in_function_txt(sojourn, classes):
    alone = subprocess.run(["java", "-cp", classes, "Kinds"], capture_output=True, text=True, check=True).stdout
    options = [part for rule in VALUES for part in ("--value", rule)]
    for mode in (INTERPRETED, COMPILED):
        done, _, database = record(sojourn, ["java", *mode, "-Xverify:all", "-cp", classes, "Kinds"],
                                   f"values{mode[0]}.db", options)
        check(done.stdout == alone, f"{mode}: it said {done.stdout}, {done.stderr}")
        text = sojourn.run(["export", database], capture_output=True, text=True, timeout=PATIENCE_S).stdout
        left = [re.sub("@[0-9a-f]+", "@ID", line.split(":", 1)[1]) for line in function_lines(text)
                if line.startswith("leave:" + NPC) and "<init>" not in line]
        wanted = [f"{NPC}.{call}ret:{result}" for call, result in CALLS]
        check(left == wanted, f"{mode}: function.txt has\n" + "\n".join(left))
    rows = sojourn.sql(database, "SELECT kind, value FROM arguments JOIN calls USING (session_id, call_id) "
                                 f"JOIN functions USING (function_id) WHERE name LIKE '{NPC}.wide%' ORDER BY kind, value")
    check([row["kind"] for row in rows] == ["int", "long", "long", "object"], f"arguments: {rows}")


def permit(sojourn, kinds):
    folder = sojourn.path("config/sojourn")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "changes.json"), "w", encoding="utf-8") as file:
        json.dump({"allow": [{"programs": ["*/java"], "functions": ["*"], "kinds": kinds}]}, file)


def write_policy(sojourn, rules):
    path = sojourn.path("rules.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": rules}, file)
    return ["--policy", path]


def summed(rounds):
    return sum((20 if i & 7 == 1 else 1) + (30 if i & 7 == 3 else i & 7) for i in range(rounds))


def hits_of(sojourn, database):
    return sojourn.sql(database, "SELECT rule, position, value, old_value, name FROM rule_hits JOIN calls "
                                 "USING (session_id, call_id) JOIN functions USING (function_id) "
                                 "ORDER BY call_id, position DESC")


def rules_change_calls(sojourn, classes):
    alone = subprocess.run(["java", "-cp", classes, "Ruled"], capture_output=True, text=True, check=True).stdout
    check(alone.splitlines() == PLAIN, f"alone it says {alone}")
    permit(sojourn, ["set", "return", "throw"])
    for mode in (INTERPRETED, MIXED):
        rounds = 8 if mode == INTERPRETED else ROUNDS
        done, summary, database = record(
            sojourn, ["java", *mode, "-Xverify:all", "-cp", classes, "Ruled", str(rounds)], f"ruled{mode[0]}.db",
            write_policy(sojourn, RULES))
        said = done.stdout.splitlines()
        check(said == [*RULED, str(summed(rounds))], f"{mode}: it says {said}, {done.stderr}")
        found = [(row["rule"], row["position"], row["value"], row["old_value"])
                 for row in hits_of(sojourn, database)]
        check(found[:len(HITS)] == HITS, f"{mode}: rule_hits {found[:20]}")
        check(len(found) == len(HITS) + rounds // 4, f"{mode}: {len(found)} hits")
        check(summary["orphan_exits"] == 0 and summary["torn"] == 0, f"{mode}: {summary}")
        rows = sojourn.sql(database, "SELECT name, ending, count(*) AS n FROM calls JOIN functions "
                                     "USING (function_id) WHERE name LIKE 'Ruled.%' GROUP BY 1, 2")
        calls = {(row["name"], row["ending"]): row["n"] for row in rows}
        check(calls[("Ruled.write(int)", "unwound")] == 2 and calls[("Ruled.write(int)", "returned")] == 1
              and calls[("Ruled.always()", "returned")] == 1
              and calls[("Ruled.add(int,int)", "returned")] == rounds + 2, f"{mode}: {calls}")
        text = sojourn.run(["export", database], capture_output=True, text=True, timeout=PATIENCE_S).stdout
        check({"leave:Ruled.write(2)ret:!Ruled$Closed", "leave:Ruled.always()ret:42"} <= set(function_lines(text)),
              f"{mode}: function.txt {text[:3000]}")


def impossible_changes_are_reported(sojourn):
    classes = sojourn.path("classes")
    command = ["java", "-cp", classes, "Ruled"]
    permit(sojourn, ["set", "return", "errno"])
    done, _ = sojourn.record(command, sojourn.path("refused.db"),
                             write_policy(sojourn, [RULES[8]]), text=True)
    check(done.returncode == 125 and "does not allow" in done.stderr, f"throw without permission: {done}")
    done = sojourn.run(["record", "-o", sojourn.path("unmatched.db"), "--value", "Ruled.nowhere(1:int)", "--", *command],
                       capture_output=True, text=True)
    check(done.returncode == 0 and 'nothing matched ["Ruled.nowhere"]' in done.stderr, f"a method that is not there: {done}")
    done, _, _ = record(sojourn, command, "memory.db",
                        write_policy(sojourn, [{"function": "Ruled.add", "memory": True}]))
    check("not of 1 method of Mono and Java" in done.stderr, f"memory of a Java method: {done}")
    rule = {**RULES[0], "change": {"set": 1, "errno": 5}}
    done, _, _ = record(sojourn, command, "errno.db", write_policy(sojourn, [rule]))
    check(done.stdout.splitlines() == PLAIN and "errno is not set for methods of Mono and Java" in done.stderr,
          f"errno: {done}")


def types_are_checked(sojourn):
    """If the value that a rule sets does not fit the method's type, no call is changed, and the misfits are counted."""
    command = ["java", "-cp", sojourn.path("classes"), "Ruled"]
    rules = [{"name": "wide", "function": "Ruled.open", "result": True, "as": "long", "change": {"set": 7}},
             {"name": "whole", "function": "Ruled.scale", "argument": 1, "as": "float",
              "change": {"argument": 2, "as": "long", "set": 7}}]
    permit(sojourn, ["set", "return"])
    done, _, database = record(sojourn, command, "unfit.db", write_policy(sojourn, rules))
    check(done.stdout.splitlines() == PLAIN and not hits_of(sojourn, database), f"unfit: {done.stdout}")
    for name in ("wide", "whole"):
        check(f"rule '{name}': its value does not have the type of the methods; calls left unchanged: 1;" in done.stderr, f"unfit: {done.stderr}")


def overflows_leave_balanced_calls(sojourn, classes):
    """Overflows of the stack and of the heap leave balanced calls, even inside the code that records values."""
    options = [part for rule in ("Faults.deep(number:int) -> int", "Faults.hungry(1:object)", "Faults.leaf(1:int)")
               for part in ("--value", rule)]
    for mode in (MIXED, INTERPRETED):
        done, summary, database = record(
            sojourn, ["java", *mode, "-Xmx64m", "-Xss256k", "-cp", classes, "Faults"], f"faults{mode[0]}.db", options)
        check(done.returncode == 3 and done.stdout == "done\n", f"{mode}: {done.stdout}{done.stderr}")
        check(summary["orphan_exits"] == 0 and summary["torn"] == 0, f"{mode}: {summary}")
        rows = sojourn.sql(database, "SELECT ending, count(*) AS n FROM calls JOIN functions USING (function_id) "
                                     "WHERE name = 'Faults.deep(int)' GROUP BY 1")
        check([row["ending"] for row in rows] == ["unwound"], f"{mode}: {rows}")
        rows = sojourn.sql(database, "SELECT count(*) AS n, max(value) AS deepest FROM arguments JOIN calls "
                                     "USING (session_id, call_id) JOIN functions USING (function_id) "
                                     "WHERE name = 'Faults.deep(int)' AND kind = 'int'")
        check(rows[0]["n"] > 0 and rows[0]["deepest"] > 100, f"{mode}: {rows}")


def wait_in_probes(pid):
    """True if the workers, which never sleep by themselves, are sleeping."""
    states = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(")")
        if name.startswith("worker-"):
            states.append(rest.split()[0])
    return states == ["S", "S"]


def collect_while_threads_wait(sojourn, classes, number):
    """Returns the lost calls: none, unless a thread gave up waiting before the collection ended."""
    database = sojourn.path(f"full{number}.db")
    recorder = subprocess.Popen(
        [sojourn.program, "record", "-q", "-o", database, "--block-ms", "10000", "--value",
         "Safepoint.valued(value:int) -> int", "--", "java", "-cp", classes, "Safepoint"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=sojourn.environment)
    check(recorder.stdout.readline() == "ready\n", "the program does not run")
    pid = children(recorder.pid)[0]
    os.kill(recorder.pid, signal.SIGSTOP)
    seen = []
    wait_for("full rings", lambda: seen.append(wait_in_probes(pid)) or seen[-9:] == [True] * 9)
    recorder.stdin.write("collect\n")
    recorder.stdin.flush()
    check(recorder.stdout.readline() == "collected\n", "nothing was collected")
    os.kill(recorder.pid, signal.SIGCONT)
    check(recorder.communicate("end\n", PATIENCE_S)[0] == "done\n", "the program did not end")
    check_accounts(sojourn, database)
    return sojourn.sql(database, "SELECT lost_calls FROM sessions")[0]["lost_calls"]


def a_full_ring_delays_no_safepoint(sojourn, classes):
    # If the machine stood still for ten seconds, calls are lost, which proves nothing.
    check(any(collect_while_threads_wait(sojourn, classes, number) == 0 for number in range(4)),
          "each collection waited for threads that wait for room")


def values_are_recorded_in_a_running_jvm(sojourn, classes):
    """Attaches and detaches repeatedly while threads run methods with values."""
    permit(sojourn, ["return"])
    program = Program(classes, arguments=["busy"])
    rule = {"name": "early", "function": "Attached.early", "argument": 1, "as": "int",
            "when": {"op": "==", "value": 2}, "change": {"return": 0}}
    busy = [{"function": "Attached.catcher", "signature": "(value:int) -> int"},
            {"function": "Attached.mixed", "argument": 1, "as": "long"},
            {"function": "Attached.thrower", "argument": 1, "as": "int"}]
    plain = {key: rule[key] for key in ("function", "argument", "as")}
    for number in range(2):
        database = sojourn.path(f"attached{number}.db")
        options = write_policy(sojourn, [*busy, rule if number == 1 else plain])
        recorder = start_attach(sojourn, program.pid, database, ["--block-ms", "10000", "--exclude", "*.fib", *options])
        program.tell("early", 5)
        program.work_on()
        recorder.send_signal(signal.SIGINT)
        output, errors = recorder.communicate(timeout=PATIENCE_S)
        check(recorder.returncode == 0, f"attach ended with {recorder.returncode}: {output}{errors}")
        program.work_on()
        check_accounts(sojourn, database)
        rows = sojourn.sql(database, "SELECT name, kind, value, rule FROM arguments JOIN calls USING (session_id, "
                                     "call_id) JOIN functions USING (function_id) WHERE name = 'Attached.early(int)' "
                                     "ORDER BY call_id, position")
        values = [(row["value"], row["rule"]) for row in rows]
        wanted = [(depth, "") for depth in range(5, -1, -1)]
        check(values == ([(0, "early"), (2, "")] if number == 1 else wanted), f"{number}: {values}")
        rows = sojourn.sql(database, "SELECT DISTINCT name, kind FROM arguments JOIN calls USING (session_id, "
                                     "call_id) JOIN functions USING (function_id) WHERE name <> 'Attached.early(int)'")
        found = {(row["name"].split(".")[1].split("(")[0], row["kind"]) for row in rows}
        check({("catcher", "int"), ("mixed", "long"), ("thrower", "int"), ("thrower", "thrown")} <= found, f"{found}")
    program.finish()


def test(sojourn, _):
    classes = sample_classes(sojourn)
    sojourn.environment["XDG_CONFIG_HOME"] = sojourn.path("config")
    values_are_in_function_txt(sojourn, classes)
    rules_change_calls(sojourn, classes)
    impossible_changes_are_reported(sojourn)
    types_are_checked(sojourn)
    overflows_leave_balanced_calls(sojourn, classes)
    a_full_ring_delays_no_safepoint(sojourn, classes)
    values_are_recorded_in_a_running_jvm(sojourn, classes)


main(test)
