#!/usr/bin/env python3
"""Java: the calls that a program counts equal the recorded ones, with every collector and compiler and full
verification. Filters and reasons are correct, and a compiler runs with probes in all its classes. SJ_LONG=1: a
hundred more runs together with --libs, the first of them ten times as long and by both compilers; four with the whole
JDK compiled and --libs.

java_methods.py BUILD_FOLDER SAMPLES_FOLDER [FIRST COUNT]; FIRST, COUNT: only these of the hundred runs
"""
import filecmp
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from java_programs import JAVAC, compiled_first, sample_classes
from sojourn_testing import IS_LONG, PATIENCE_S, check, check_accounts, main

ROUNDS, WORKERS = 3000, 3
COLLECTORS = ["-XX:+UseG1GC", "-XX:+UseParallelGC", "-XX:+UseSerialGC", "-XX:+UseZGC"]
MODES = [*COLLECTORS, "-Xint", "-Xcomp"]
OWN = ("Counted", "Counted$Item", "Faults")
CALLS = (
    "SELECT name, ending, count(*) AS calls FROM calls JOIN functions USING (function_id) "
    "WHERE name LIKE 'Counted%' GROUP BY name, ending"
)
# Counts the calls of a recording with millions of them.
SUMS = (
    "SELECT name, sum(calls - unwound) AS returned, sum(unwound) AS unwound FROM function_stats "
    "JOIN functions USING (function_id) WHERE name LIKE 'Counted%' GROUP BY name"
)
COUNTED = {
    "leaf": "Counted.leaf(int)",
    "thrower": "Counted.thrower(int)",
    "lambda": "Counted.lambda$work$0(int)",
    "item": "Counted$Item.<init>(int)",
    "twice": "Counted$Item.twice()",
}
LOSSLESS = ["--block-ms", "10000"]
# --libs records the compiler's own functions. Compiling the whole JDK takes minutes, so the test does it once for each
# collector.
COMPILED = ["-Xcomp", "-XX:CompileCommand=quiet", "-XX:CompileOnly=Counted,java/sojourn/Probe"]


def recorded(sojourn, database):
    counts = {}
    for row in sojourn.sql(database, CALLS):
        counts.setdefault(row["name"], {})[row["ending"]] = row["calls"]
    return counts


def summed(sojourn, database):
    return {row["name"]: {ending: row[ending] for ending in ("returned", "unwound") if row[ending]}
            for row in sojourn.sql(database, SUMS)}


def check_counts(told, counts, label, rounds=ROUNDS):
    for word, name in COUNTED.items():
        expected = int(re.search(rf"{word}=(\d+)", told)[1])
        calls = sum(counts.get(name, {}).values())
        check(calls == expected, f"{label}: {name}: {calls} recorded, {expected} printed")
    thrown = WORKERS * rounds // 3
    check(counts["Counted.thrower(int)"].get("unwound") == thrown, f"{label}: {counts}")
    check("unwound" not in counts["Counted.catcher(int)"], f"{label}: {counts}")
    check(counts["Counted.main(java.lang.String[])"] == {"returned": 1}, f"{label}: {counts}")


def options_of(mode):
    return compiled_first(*OWN) if mode == "-Xcomp" else [mode]


def every_mode(sojourn, classes):
    for number, mode in enumerate(MODES):
        for libraries in ([], ["--libs"]) if number == 0 else ([],):
            database = sojourn.path(f"mode{number}{len(libraries)}.db")
            # Most calls of such a recording are those of the compilers' own functions.
            is_short = libraries and not IS_LONG
            short, rounds = (["-XX:TieredStopAtLevel=1"], ROUNDS // 10) if is_short else ([], ROUNDS)
            done, _ = sojourn.record(
                ["java", *options_of(mode), *short, "-Xverify:all", "-cp", classes, "Counted", str(rounds), str(WORKERS)],
                database, [*LOSSLESS, *libraries], text=True)
            check(done.returncode == 0, f"{mode}: {done.returncode} {done.stderr}")
            check(done.stderr == "", f"{mode}: the JVM says {done.stderr}")
            found = summed(sojourn, database) if libraries else recorded(sojourn, database)
            check_counts(done.stdout, found, f"{mode} {libraries}", rounds)
            check_accounts(sojourn, database)


def methods_and_libraries_are_hooked_in_one_jvm(sojourn, classes, first, count):
    """Uses both kinds of hooks in one JVM, which once ended it in some runs."""
    for number in range(first, first + count):
        mode = MODES[number % len(MODES)]
        database = sojourn.path("many.db")
        if os.path.exists(database):
            os.unlink(database)
        options = COMPILED if mode == "-Xcomp" else [mode]
        done, _ = sojourn.record(["java", *options, "-cp", classes, "Counted", "100", str(WORKERS)], database,
                                 [*LOSSLESS, "--libs"], text=True)
        check(done.returncode == 0 and done.stderr == "", f"run {number}, {mode}: {done.returncode} {done.stderr}")
        check("leaf=" in done.stdout, f"run {number}, {mode}: {done.stdout}")
        check_accounts(sojourn, database)
        print(f"--libs, run {number}, {mode}", flush=True)


def compiled_with_libraries(sojourn, classes):
    """Compiles the whole JDK first, by compilers whose functions are recorded, too. That is hundreds of millions of
    calls, of which the flight recorder keeps the latest."""
    for number, collector in enumerate(COLLECTORS):
        command = ["java", collector, "-Xcomp", "-Xverify:all", "-cp", classes, "Counted", "100", str(WORKERS)]
        plain = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        done, summary = sojourn.record(command, sojourn.path(f"compiled{number}.db"),
                                       [*LOSSLESS, "--mode", "flight", "--libs"], text=True, timeout=12 * PATIENCE_S)
        check((done.returncode, done.stdout) == (plain.returncode, plain.stdout) and plain.returncode == 0,
              f"{collector}: {done}")
        check(summary["records"] > 100e6 and summary["torn"] == summary["dropped_events"] == 0, f"{collector}: {summary}")
        print(f"{collector} -Xcomp --libs: {summary['records']} records, {summary['hooked']} functions", flush=True)


def states(sojourn, database):
    return [json.loads(row["payload"]) for row in sojourn.sql(
        database, "SELECT payload FROM reports WHERE monitor = 'jvm' AND kind = 'state'")]


def leaf_probes(sojourn, classes):
    """Hot probes become leaf stubs, which count the same. Interpreted probes stay native methods."""
    rounds, leaves = ROUNDS, 0
    while leaves < 2:  # the JVM decides when it compiles them
        rounds *= 4
        check(rounds < ROUNDS << 10, "the wrappers of the probes were not compiled or not led")
        database = sojourn.path(f"leaf{rounds}.db")
        done, _ = sojourn.record(["java", "-cp", classes, "Counted", str(rounds), "2"], database,
                                 LOSSLESS, text=True)
        state = states(sojourn, database)
        check(len(state) == 1 and state[0]["known_jvm"], f"{state}")
        check(state[0]["unanswered"] == 0 and state[0]["classes"] == 2, f"{state}")
        leaves = state[0]["leaf_stubs"]
    counts = recorded(sojourn, database)
    for word, name in COUNTED.items():
        expected = int(re.search(rf"{word}=(\d+)", done.stdout)[1])
        calls = sum(counts.get(name, {}).values())
        check(calls == expected, f"leaf: {name}: {calls} recorded, {expected} printed")
    check_accounts(sojourn, database)
    database = sojourn.path("interpreted.db")
    sojourn.record(["java", "-Xint", "-cp", classes, "Counted", "10", "1"], database, LOSSLESS)
    state = states(sojourn, database)
    check(state[0]["leaf_stubs"] == 0 and state[0]["classes"] == 2, f"{state}")


def names(sojourn, database):
    return {row["name"] for row in sojourn.sql(
        database, "SELECT DISTINCT name FROM calls JOIN functions USING (function_id)")}


def filters(sojourn, classes):
    command = ["java", "-cp", classes, "Counted", "10", "1"]
    expected = [
        (["--java-class", "Counted$Item"], {"Counted$Item.<init>(int)", "Counted$Item.twice()"}),
        (["--function", "*.leaf(*)"], {"Counted.leaf(int)"}),
        (["--java-system", "Counted*"], set()),
    ]
    for number, (options, wanted) in enumerate(expected):
        database = sojourn.path(f"filter{number}.db")
        done, _ = sojourn.record(command, database, [*LOSSLESS, *options])
        check(done.returncode == 0, f"{options}: {done.stderr}")
        found = {name for name in names(sojourn, database) if name.startswith("Counted")}
        check(found == wanted, f"{options}: {found}")
    system = sojourn.sql(database, "SELECT count(*) AS n FROM functions WHERE name LIKE 'java.%'")
    check(system[0]["n"] == 0, "classes of the system have functions")


def compiler(sojourn, samples):
    """All classes of the JDK's compiler have probes, and its output is the same."""
    source = os.path.join(samples, "Shapes.java")
    plain, probed, database = (sojourn.path(name) for name in ("plain", "probed", "javac.db"))
    command = JAVAC if not IS_LONG else ["javac"]
    subprocess.run([*command, "-d", plain, source], check=True)
    done, summary = sojourn.record(
        [*command, "-J-Xverify:all", "-d", probed, source], database,
        [*LOSSLESS, "--java-system", "java.*"], text=True)
    check(done.returncode == 0, f"javac with probes: {done.stdout}{done.stderr}")
    for name in os.listdir(plain):
        same = filecmp.cmp(os.path.join(plain, name), os.path.join(probed, name), shallow=False)
        check(same, f"{name} differs")
    check(set(os.listdir(plain)) == set(os.listdir(probed)), "other classes")
    check(summary["hooked"] > 5000, f"{summary}")
    reasons = {row["reason"] for row in sojourn.sql(
        database, "SELECT DISTINCT reason FROM unhooked_functions WHERE module LIKE 'jvm:%'")}
    check(reasons == {"an abstract or native method"}, f"{reasons}")
    unended = {row["name"] for row in sojourn.sql(
        database, "SELECT name FROM calls JOIN functions USING (function_id) WHERE ending = 'open'")}
    # The program ends by System.exit.
    check(all("main" in name.lower() or "+0x" in name for name in unended), f"open: {unended}")
    check_accounts(sojourn, database)


def faults(sojourn, classes):
    for number, mode in enumerate(("-Xmixed", "-Xint", "-Xcomp")):
        database = sojourn.path(f"faults{number}.db")
        done, summary = sojourn.record_all(
            ["java", *options_of(mode), "-Xmx64m", "-Xss512k", "-cp", classes, "Faults"], database, LOSSLESS,
            text=True)
        check(done.returncode == 3 and done.stdout == "done\n", f"{mode}: {done.stdout}{done.stderr}")
        check(summary["orphan_exits"] == 0 and summary["torn"] == 0, f"{mode}: {summary}")
        endings = {(row["name"], row["ending"]) for row in sojourn.sql(
            database, "SELECT DISTINCT name, ending FROM calls JOIN functions USING (function_id)")}
        check({ending for name, ending in endings if name == "Faults.deep(int)"} == {"unwound"},
              f"{mode}: {endings}")
        ended = {("Faults.overflow()", "returned"), ("Faults.hungry()", "returned"),
                 ("Faults.stopped()", "returned"), ("Faults.lambda$stopped$0()", "returned"),
                 ("Faults.main(java.lang.String[])", "open")}
        check(ended <= endings, f"{mode}: {endings}")
        check_accounts(sojourn, database)


def recorder_killed(sojourn, classes):
    """Classes that are loaded without a recorder stay as they are, and the program continues."""
    command = [sojourn.program, "record", "--quiet", "-o", sojourn.path("killed.db"), "--",
               "java", "-cp", classes, "Waits"]
    recorder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                env=sojourn.environment)
    check(recorder.stdout.readline() == "ready\n", "the program does not run")
    recorder.send_signal(signal.SIGKILL)
    recorder.wait()
    recorder.stdin.write("go\n")
    recorder.stdin.flush()
    check(recorder.stdout.read() == "late 42\n", "the program did not go on")


def virtual_threads(sojourn, samples, classes):
    """Calls in virtual threads are only counted, which is reported. Calls of other threads are recorded. JDK 17 has
    no virtual threads, so java.base gets a class of that name."""
    base = sojourn.path("base")
    patched = os.path.join(samples, "virtual")
    subprocess.run(["javac", "--patch-module", f"java.base={patched}", "-d", base,
                    os.path.join(patched, "VirtualThread.java")], check=True, capture_output=True, timeout=PATIENCE_S)
    database = sojourn.path("turns.db")
    done, _ = sojourn.record(["java", "--patch-module", f"java.base={base}", "-cp", classes, "Turns"],
                             database, LOSSLESS, text=True)
    check((done.returncode, done.stdout) == (0, "5050\n55\n"), f"virtual threads: {done}")
    check("only counted 102 calls of Java methods in virtual threads" in done.stderr, f"virtual threads: {done.stderr}")
    found = {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS.replace("Counted%", "Turns.%"))}
    check(found == {"Turns.leaf(int)": 10, "Turns.work(int)": 1, "Turns.main(java.lang.String[])": 1}, f"{found}")
    check_accounts(sojourn, database)


def test(sojourn, arguments):
    samples = arguments[0]
    classes = sample_classes(sojourn)
    if len(arguments) > 1:
        methods_and_libraries_are_hooked_in_one_jvm(sojourn, classes, int(arguments[1]), int(arguments[2]))
        return
    every_mode(sojourn, classes)
    if IS_LONG:
        methods_and_libraries_are_hooked_in_one_jvm(sojourn, classes, 0, 100)
        compiled_with_libraries(sojourn, classes)
    leaf_probes(sojourn, classes)
    filters(sojourn, classes)
    faults(sojourn, classes)
    compiler(sojourn, samples)
    recorder_killed(sojourn, classes)
    virtual_threads(sojourn, samples, classes)


main(test)
