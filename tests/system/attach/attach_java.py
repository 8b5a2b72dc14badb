#!/usr/bin/env python3
"""Attaches to a running JVM repeatedly. Methods of classes loaded before and after are recorded, policies apply,
and the program behaves as without Sojourn.

attach_java.py BUILD_FOLDER SAMPLES_FOLDER [ROUNDS]. SJ_LONG=1 runs a hundred rounds on a busy JVM, with each
collector, and compiles the whole JDK first. ROUNDS runs only that many rounds.
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import mappings, set_policy, start_attach
from java_programs import Program, compiled_first, jvm_reports, sample_classes
from sojourn_testing import IS_LONG, PATIENCE_S, check, check_accounts, main

CALLS = """SELECT f.name, c.ending, count(*) AS calls FROM calls c JOIN functions f USING (function_id)
           WHERE f.name LIKE 'Attached%' GROUP BY 1, 2"""
LOSSLESS = ["--block-ms", "10000"]
MODES = ["-XX:+UseG1GC", "-XX:+UseParallelGC", "-XX:+UseSerialGC", "-XX:+UseZGC", "-Xint", "-Xcomp"]
EARLY, LATE, THROWER, CATCHER, HELD, INNER = (
    "Attached.early(int)", "Attached$Late.late(int)", "Attached.thrower(int)", "Attached.catcher(int)",
    "Attached.held()", "Attached.inner()")


def leave(recorder):
    recorder.send_signal(signal.SIGINT)
    output, errors = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"attach ended with {recorder.returncode}: {output}{errors}")


def recorded(sojourn, database):
    check_accounts(sojourn, database)
    orphans = sojourn.sql(database, "SELECT count(*) AS n FROM gaps WHERE reason = 'orphan'")[0]["n"]
    check(orphans == 0, f"{orphans} exits without an entry")
    return {(row["name"], row["ending"]): row["calls"] for row in sojourn.sql(database, CALLS)}


def check_left(pid):
    ours = [path for _, _, _, path in mappings(pid) if "sojourn" in path or ".arena" in path]
    check(not ours, f"mapped afterwards: {ours}")


def stub_pages(pid):
    """Returns the number of executable pages that belong to no file. The JVM's code cache does not count, because it
    is writable."""
    return sum(high - low for low, high, protection, path in mappings(pid)
               if path == "" and protection.startswith("r-x")) // 4096


def rounds(sojourn, classes, options):
    """One method is open at the attach, another at the detach."""
    program = Program(classes, options)
    program.tell("early", 2)
    before = stub_pages(program.pid)
    for round_, (early, late, throws) in enumerate(((5, 4, 3), (3, 6, 2))):
        database = sojourn.path(f"round{round_}{options[0]}.db")
        program.tell("hold")
        recorder = start_attach(sojourn, program.pid, database, LOSSLESS)
        program.tell("release")
        program.tell("early", early)
        program.tell("late", late)
        program.tell("throw", throws)
        program.tell("hold")
        leave(recorder)
        program.tell("release")
        program.tell("early", 9)
        found = recorded(sojourn, database)
        for name, ending, calls in ((EARLY, "returned", early + 1), (LATE, "returned", late),
                                    (THROWER, "unwound", throws), (CATCHER, "returned", throws),
                                    (HELD, "open", 1), (HELD, "returned", 0), (INNER, "returned", 2)):
            check(found.get((name, ending), 0) == calls, f"{options} {name} {ending} {calls}: {found}")
        joined, left = jvm_reports(sojourn, database, "joined"), jvm_reports(sojourn, database, "left")
        check(len(joined) == len(left) == 1, f"{joined} {left}")
        loaded = 1 if round_ == 0 else 2  # the class Late was loaded while the first round recorded
        check(joined[0]["retransformed"] == loaded and left[0]["retransformed"] == 2, f"{joined} {left}")
        check(joined[0]["refused"] == left[0]["refused"] == 0, f"{joined} {left}")
        check(joined[0]["batches"] > 0 and joined[0]["total_ns"] >= joined[0]["longest_batch_ns"] > 0, f"{joined}")
        check_left(program.pid)
        check(stub_pages(program.pid) <= before + 2, f"{stub_pages(program.pid) - before} pages stay")
    program.finish()


def methods_are_not_recorded_with_counted_calls(sojourn, program):
    database = sojourn.path("counted.db")
    recorder = start_attach(sojourn, program.pid, database, [*LOSSLESS, "--clock", "adaptive"])
    program.tell("early", 3)
    set_policy(sojourn, program.pid, "--function", "*.early(*)")
    program.tell("early", 2)
    recorder.send_signal(signal.SIGINT)
    _, errors = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"attach ended with {recorder.returncode}: {errors}")
    check("methods of java are not recorded with --clock adaptive" in errors, f"not reported: {errors}")
    check(recorded(sojourn, database) == {}, f"recorded {recorded(sojourn, database)}")
    check(jvm_reports(sojourn, database, "joined") == [], "classes were transformed")
    check_left(program.pid)


def policies(sojourn, classes):
    """Only classes whose probes differ are transformed again."""
    program = Program(classes)
    database = sojourn.path("policies.db")
    program.tell("late", 1)
    recorder = start_attach(sojourn, program.pid, database, [*LOSSLESS, "--java-class", "Attached$Late"])
    program.tell("late", 2)
    program.tell("early", 1)
    # the class Attached has such methods, Late loses its probes
    set_policy(sojourn, program.pid, "--function", "*.early(*)")
    program.tell("late", 3)
    program.tell("early", 4)
    program.tell("throw", 1)
    set_policy(sojourn, program.pid, "--function", "*.early(*)", "--function", "*.nothing(*)")
    set_policy(sojourn, program.pid)
    program.tell("throw", 5)
    program.tell("late", 6)
    # this selects all methods, which are the same
    set_policy(sojourn, program.pid, "--java-subclasses-of", "java.lang.Object")
    program.tell("late", 2)
    leave(recorder)
    found = recorded(sojourn, database)
    wanted = {(LATE, "returned"): 10, (EARLY, "returned"): 5, (THROWER, "unwound"): 5, (CATCHER, "returned"): 5}
    check({key: found.get(key) for key in wanted} == wanted, f"{found}")
    changes = [report["retransformed"] for report in jvm_reports(sojourn, database, "selected")]
    check(changes == [2, 0, 2, 0], f"classes transformed again: {changes}")
    methods_are_not_recorded_with_counted_calls(sojourn, program)
    program.finish()


def led_again(sojourn, classes):
    """Each detach discards the compiled wrappers of the probes. The next agent makes the new wrappers jump to its
    stubs."""
    program = Program(classes)
    for round_ in range(2):
        database, times = sojourn.path(f"led{round_}.db"), 50
        while True:
            for name in (database, f"{database}-wal", f"{database}-shm"):
                if os.path.exists(name):
                    os.unlink(name)
            recorder = start_attach(sojourn, program.pid, database, ["--function", "Attached.fib(int)"])
            program.tell("hot", times)
            leave(recorder)
            if jvm_reports(sojourn, database, "left")[0]["leaf_stubs"] >= 2:
                break
            times *= 4  # the JVM decides when it compiles them
            check(times < 50 << 10, f"round {round_}: no wrapper of a probe was led")
        check_accounts(sojourn, database)
    program.finish()


def recorder_killed(sojourn, classes):
    """The recording stays valid, and `detach` removes everything."""
    program = Program(classes, arguments=["busy"])
    recorder = start_attach(sojourn, program.pid, sojourn.path("killed.db"))
    program.work_on()
    recorder.kill()
    recorder.communicate()
    program.tell("late", 3)
    program.tell("throw", 3)
    done = sojourn.run(["detach", str(program.pid)], capture_output=True, text=True)
    check(done.returncode == 0, f"detach: {done}")
    check_left(program.pid)
    program.work_on()
    recorder = start_attach(sojourn, program.pid, sojourn.path("again.db"))
    program.tell("late", 4)
    leave(recorder)
    found = {(row["name"], row["ending"]): row["calls"] for row in sojourn.sql(sojourn.path("again.db"), CALLS)}
    check(found.get((LATE, "returned")) == 4, f"{found}")
    program.finish()


def initializer_runs(sojourn, samples):
    """The agent is not unloaded while the JVM runs the initialiser of a hidden class, which returns to the agent."""
    program = Program(sample_classes(sojourn), ["-Xverify:all"], name="Slow")
    recorder = start_attach(sojourn, program.pid, sojourn.path("slow.db"), ["--java-class", "Slow"])
    program.tell("begin")
    leave(recorder)
    stays = any("libsojourn-agent" in path for _, _, _, path in mappings(program.pid))
    check(stays, "the agent was unloaded under a thread that returns to it")
    program.tell("end")
    done = sojourn.run(["detach", str(program.pid)], capture_output=True, text=True)
    check(done.returncode == 0, f"detach: {done}")
    check_left(program.pid)
    program.finish()


def busy(sojourn, classes, times):
    """Attaches, transforms and detaches while threads run the transformed methods."""
    program = Program(classes, ["-Xmx128m"], ["busy"])
    for round_ in range(times):
        database = sojourn.path("busy.db")
        if os.path.exists(database):
            os.unlink(database)
        recorder = start_attach(sojourn, program.pid, database)
        program.tell("early", round_ % 5)
        leave(recorder)
        check_accounts(sojourn, database)
        check(len(jvm_reports(sojourn, database, "left")) == 1, f"round {round_}: the classes were not restored")
        check_left(program.pid)
        program.work_on()
    program.finish()


def test(sojourn, arguments):
    classes = sample_classes(sojourn)
    if len(arguments) > 1:
        busy(sojourn, classes, int(arguments[1]))
        return
    for mode in MODES if IS_LONG else MODES[:1] + MODES[-1:]:
        rounds(sojourn, classes, compiled_first("Attached", "Attached$Late") if mode == "-Xcomp" else [mode])
    policies(sojourn, classes)
    led_again(sojourn, classes)
    recorder_killed(sojourn, classes)
    initializer_runs(sojourn, arguments[0])
    busy(sojourn, classes, 100 if IS_LONG else 2)


main(test)
