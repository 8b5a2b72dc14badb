#!/usr/bin/env python3
"""Both Java engines, rewritten classes and the JVM's own tracing functions, record the same entries as JVMTI's
MethodEntry. The second engine follows changes of the policy and delays no safepoint. If it cannot be used, that is
reported.

java_engines.py BUILD_FOLDER SAMPLES_FOLDER; SJ_LONG=1: in every mode of the JVM
"""
import collections
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import set_policy, start_attach
from java_programs import Program, compiled_first, jvm_reports, sample_classes
from sojourn_testing import PATIENCE_S, check, check_accounts, children, main

TRACED = ["--java-engine", "runtime"]
LOSSLESS = ["--block-ms", "10000"]
PROGRAMS = [["Counted", "300", "3"], ["Shapes"], ["Kinds"], ["Lines"], ["Loaders", "10"]]
MODES = ["-Xint", "-Xcomp", "-XX:TieredStopAtLevel=1", "-XX:-TieredCompilation"]
COLLECTORS = ["-XX:+UseG1GC", "-XX:+UseParallelGC", "-XX:+UseSerialGC", "-XX:+UseZGC"]
LOAD = "Loaders$PluginLoader.loadClass(java.lang.String,boolean)"
TYPES = {"B": "byte", "C": "char", "D": "double", "F": "float", "I": "int", "J": "long", "S": "short", "Z": "boolean"}
CALLS = "SELECT f.name, count(*) AS calls FROM calls c JOIN functions f USING (function_id) GROUP BY 1"
ENDINGS = """SELECT f.name, c.ending, count(*) AS calls FROM calls c JOIN functions f USING (function_id)
             GROUP BY 1, 2"""


def readable(descriptor):
    types = []
    for dimensions, name in re.findall(r"(\[*)(L[^;]+;|[A-Z])", descriptor[1:descriptor.index(")")]):
        types.append(TYPES.get(name, name[1:-1].replace("/", ".")) + "[]" * len(dimensions))
    return "(" + ",".join(types) + ")"


def count_by_jvmti(sojourn, command):
    library = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests/libjvmti_entries.so")
    told = sojourn.path("jvmti.txt")
    done = subprocess.run(["java", f"-agentpath:{library}={told}", *command], capture_output=True, text=True)
    check(done.returncode == 0, f"{command}: {done}")
    counts = collections.Counter()
    with open(told, encoding="utf-8") as file:
        for line in file:
            entries, signature, name, descriptor = line.split()
            if "$$Lambda" not in signature:  # hidden classes: the engines see the code that these run
                counts[f"{signature[1:-1].replace('/', '.')}.{name}{readable(descriptor)}"] += int(entries)
    return done.stdout, counts


def recorded(sojourn, command, options):
    database = sojourn.path("engine.db")
    if os.path.exists(database):
        os.unlink(database)
    done, summary = sojourn.record(["java", *command], database, [*LOSSLESS, *options], text=True)
    check((done.returncode, done.stderr) == (0, ""), f"{command} {options}: {done}")
    check_accounts(sojourn, database)
    check(summary["torn"] == 0, f"{summary}")
    state = jvm_reports(sojourn, database, "state")
    engine = "runtime" if options else "rewritten"
    check(len(state) == 1 and state[0]["engine"] == engine and state[0]["unanswered"] == 0, f"{state}")
    calls = {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS)}
    return done.stdout, {name: count for name, count in calls.items() if "(" in name}


def same_entries(sojourn, classes, is_long):
    for program in PROGRAMS:
        for mode in [*MODES, *COLLECTORS] if is_long else MODES[:1]:
            command = [mode, "-cp", classes, *program]
            output, wanted = count_by_jvmti(sojourn, command)
            for options in ([], TRACED):
                said, found = recorded(sojourn, command, options)
                if program[0] == "Loaders" and not options:
                    found[LOAD] -= int(program[1])  # each engine asks for the class of the probes
                check(said == output, f"{program} says {said}")
                differing = {name: (wanted[name], found.get(name, 0)) for name in set(wanted) | set(found)
                             if wanted[name] != found.get(name, 0)}
                check(not differing, f"{command} {options}: JVMTI's entries, recorded ones: {differing}")


def compiled(sojourn, classes, is_long):
    """Compares the counts of a program that counts its own calls, with compiled methods. Exits may be missing only at
    exceptions."""
    rounds, workers = 8000, 3
    for mode in [*MODES, *COLLECTORS] if is_long else MODES[1:3]:
        options = compiled_first("Counted", "Counted$Item") if mode == "-Xcomp" else [mode]
        output, found = recorded(sojourn, [*options, "-cp", classes, "Counted", str(rounds), str(workers)], TRACED)
        wanted = {word: int(count) for word, count in re.findall(r"(\w+)=(\d+)", output)}
        counts = {"leaf": "Counted.leaf(int)", "thrower": "Counted.thrower(int)", "item": "Counted$Item.<init>(int)",
                  "twice": "Counted$Item.twice()", "lambda": "Counted.lambda$work$0(int)"}
        check({word: found[name] for word, name in counts.items()} == wanted, f"{mode}: {found}, {wanted}")
        endings = {(row["name"], row["ending"]): row["calls"] for row in sojourn.sql(sojourn.path("engine.db"), ENDINGS)}
        for name in ("Counted.leaf(int)", "Counted.catcher(int)", "Counted$Item.twice()"):
            check(endings[name, "returned"] == found[name], f"{mode}: {endings}")
        check(endings.get(("Counted.thrower(int)", "open"), 0) == 0, f"{mode}: {endings}")


def faults(sojourn, classes):
    for mode, options in (("-Xint", ["-Xint"]), ("-Xcomp", compiled_first("Faults"))):
        database = sojourn.path(f"faults{mode}.db")
        done, summary = sojourn.record_all(["java", *options, "-Xmx64m", "-Xss512k", "-cp", classes, "Faults"], database,
                                           [*LOSSLESS, *TRACED], text=True)
        check((done.returncode, done.stdout) == (3, "done\n"), f"{mode}: {done}")
        check(summary["torn"] == 0, f"{mode}: {summary}")
        check_accounts(sojourn, database)
        found = {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS)}
        check(found.get("Faults.overflow()") == found.get("Faults.hungry()") == 1, f"{mode}: {found} {summary}")


def another_policy(sojourn, classes):
    database = sojourn.path("policies.db")
    late, early, thrower = "Attached$Late.late(int)", "Attached.early(int)", "Attached.thrower(int)"
    program = Program(classes, prefix=[sojourn.program, "record", "-q", "-o", database, *LOSSLESS, *TRACED,
                                       "--java-class", "Attached$Late", "--"], environment=sojourn.environment)
    pid = children(program.pid)[0]
    program.tell("late", 2)
    program.tell("early", 1)
    set_policy(sojourn, pid, "--function", "*.early(*)")
    program.tell("late", 3)
    program.tell("early", 4)
    set_policy(sojourn, pid)
    program.tell("throw", 5)
    program.tell("late", 6)
    program.finish()
    found = {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS)}
    wanted = {late: 8, early: 5, thrower: 5}
    check({name: found.get(name) for name in wanted} == wanted, f"{found}")
    check_accounts(sojourn, database)


def system_classes_are_added_and_removed(sojourn, classes):
    """Sets policies without system classes, with them, and without them again. Each line of input ends a call. The
    policy changes while the next call waits for its line."""
    reader, early = "java.io.BufferedReader.readLine()", "Attached.early(int)"
    for engine in ("rewritten", "runtime"):
        database = sojourn.path(f"system-{engine}.db")
        program = Program(classes, prefix=[sojourn.program, "record", "-q", "-o", database, *LOSSLESS, "--java-engine",
                                           engine, "--function", early, "--"], environment=sojourn.environment)
        pid = children(program.pid)[0]
        for options, times in ((None, 2), (["--libs", "--function", reader], 3), (["--function", early], 4)):
            if options is not None:
                set_policy(sojourn, pid, *options)
            for _ in range(times):
                program.tell("early", 1)
        program.finish()
        found = {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS)}
        check((found.get(reader), found.get(early)) == (3, 12), f"{engine}: {found}")
        check_accounts(sojourn, database)


def full_rings(sojourn, classes, number):
    """Returns the calls that were dropped during a collection, while no thread read the rings."""
    database = sojourn.path(f"full{number}.db")
    recorder = subprocess.Popen([sojourn.program, "record", "-q", "-o", database, *LOSSLESS, *TRACED, "--buffer", "1", "--",
                                 "java", "-cp", classes, "Safepoint"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                text=True, env=sojourn.environment)
    check(recorder.stdout.readline() == "ready\n", "the program does not run")
    os.kill(recorder.pid, signal.SIGSTOP)
    for _ in range(10):
        recorder.stdin.write("collect\n")
        recorder.stdin.flush()
        check(recorder.stdout.readline() == "collected\n", "nothing was collected")
    os.kill(recorder.pid, signal.SIGCONT)
    check(recorder.communicate("end\n", PATIENCE_S)[0] == "done\n", "the program did not end")
    check_accounts(sojourn, database)
    waited = sojourn.sql(database, "SELECT name, waited_ns FROM threads WHERE name LIKE 'worker%' AND waited_ns <> 0")
    check(not waited, f"threads waited in the JVM's own state: {waited}")
    return sojourn.sql(database, "SELECT lost_calls FROM sessions")[0]["lost_calls"]


def the_agent_detaches_from_a_killed_recorder(sojourn, classes):
    """The recorder is killed. The agent then detaches while threads enter the tracing functions."""
    program = Program(classes, arguments=["busy"], environment=sojourn.environment,
                      prefix=[sojourn.program, "record", "-q", "-o", sojourn.path("taken_out.db"), *TRACED, "--"])
    pid = children(program.pid)[0]
    program.work_on()
    program.process.kill()
    program.process.wait()
    done = sojourn.run(["detach", str(pid)], capture_output=True, text=True)
    check(done.returncode == 0, f"detach: {done}")
    program.work_on()
    program.tell("early", 5)
    loaded = subprocess.run(["jcmd", str(pid), "VM.class_hierarchy"], capture_output=True, text=True, check=True,
                            timeout=PATIENCE_S).stdout
    check("Attached/" in loaded and "java.sojourn.Probe" not in loaded, "a JVM without probes has their class")
    output, _ = program.process.communicate(timeout=PATIENCE_S)
    check(output == "wrong=0\n", f"{output}")


def classes_of_a_running_jvm_are_rewritten(sojourn, classes):
    """The JVM runs without calls of its tracing functions: classes are rewritten, and that is reported."""
    program = Program(classes)
    database = sojourn.path("attached.db")
    recorder = start_attach(sojourn, program.pid, database, [*LOSSLESS, *TRACED])
    program.tell("early", 4)
    recorder.send_signal(signal.SIGINT)
    check(recorder.communicate(timeout=PATIENCE_S) and recorder.returncode == 0, "attach failed")
    program.finish()
    joined = jvm_reports(sojourn, database, "joined")
    found = {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS)}
    check(joined[0]["engine"] == "rewritten" and found.get("Attached.early(int)") == 5, f"{joined} {found}")


def test(sojourn, arguments):
    is_long = os.environ.get("SJ_LONG") == "1"
    classes = sample_classes(sojourn)
    same_entries(sojourn, classes, is_long)
    compiled(sojourn, classes, is_long)
    faults(sojourn, classes)
    another_policy(sojourn, classes)
    system_classes_are_added_and_removed(sojourn, classes)
    check(any(full_rings(sojourn, classes, number) for number in range(4)), "no ring was ever full")
    the_agent_detaches_from_a_killed_recorder(sojourn, classes)
    classes_of_a_running_jvm_are_rewritten(sojourn, classes)


main(test)
