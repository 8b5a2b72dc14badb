#!/usr/bin/env python3
"""Unusual Java classes: in many loaders, unloaded, rewritten by another agent, hidden, chosen by loader and by
ancestor. Also a recorder that dies while they are loaded.

java_classes.py BUILD_FOLDER SAMPLES_FOLDER
"""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import set_policy, start_attach, wait_until_recorded
from java_programs import INTERNAL_ASM, Program, compile_java, compiled_first, jvm_reports, sample_classes
from sojourn_testing import PATIENCE_S, check, check_accounts, main, sample_text

LOSSLESS = ["--block-ms", "10000"]
LOADERS, RUNS = 40, 5
CALLS = "SELECT f.name, count(*) AS calls FROM calls c JOIN functions f USING (function_id) GROUP BY 1"
PLUGINS = """SELECT m.path, f.function_id, count(*) AS calls
             FROM calls c JOIN functions f USING (function_id) JOIN modules m USING (module_id)
             WHERE f.name = 'Plugin.run(int)' GROUP BY 1, 2"""

HIDDEN = """SELECT m.path, f.name, count(*) AS calls
            FROM calls c JOIN functions f USING (function_id) JOIN modules m USING (module_id)
            WHERE m.path LIKE 'jvm:Hidden/%' GROUP BY f.name, m.path"""

NOT_RECORDED = """SELECT f.name, count(*) AS n FROM unhooked_functions u JOIN functions f USING (function_id)
                  JOIN modules m ON m.module_id = f.module_id
                  WHERE u.reason LIKE 'a hidden Java class%' AND m.path LIKE 'jvm:Hidden/HiddenPart+%' GROUP BY 1"""

ENDED = """SELECT count(m.unloaded_ns) AS n FROM mappings m JOIN session_modules s ON s.session_id = m.session_id
           AND s.number = m.module_number JOIN modules AS o USING (module_id) WHERE o.path LIKE 'jvm:{}%'"""


def sums():
    return LOADERS * sum(range(1, RUNS + 1)) + 18 + 1


def loaders(sojourn, classes):
    """The class of each loader is a module of its own, and no id is used twice when classes are unloaded."""
    database = sojourn.path("loaders.db")
    log = sojourn.path("unloaded.txt")
    done, _ = sojourn.record(
        ["java", "-Xverify:all", f"-Xlog:class+unload:file={log}", "-cp", classes, "Loaders", str(LOADERS)],
        database, LOSSLESS, text=True)
    check(done.stdout == f"ready\nsum {sums()}\n", f"{done}")
    with open(log, encoding="utf-8") as file:
        check("unloading class Plugin" in file.read(), "no class was unloaded: nothing is shown")
    rows = sojourn.sql(database, PLUGINS)
    check(len(rows) == len({row["path"] for row in rows}) == len({row["function_id"] for row in rows}),
          f"two loaders share: {rows}")
    check(len(rows) >= LOADERS - 2, f"{len(rows)} loaders of {LOADERS}")  # two loaders may have the same hash
    check(sum(row["calls"] for row in rows) == LOADERS * RUNS, f"{rows}")
    check(all(row["path"].startswith("jvm:Plugin@") for row in rows), f"{rows}")
    ended, lasting = (sojourn.sql(database, ENDED.format(path))[0]["n"] for path in ("Plugin@", "Loaders"))
    check(ended >= LOADERS // 4 and lasting == 0, f"{ended} of {LOADERS} classes ended with their loader, {lasting} others")
    check_accounts(sojourn, database)


def lines(sojourn, samples):
    """Methods have the line numbers of their class files."""
    database = sojourn.path("loaders.db")
    with open(os.path.join(samples, "Loaders.java"), encoding="utf-8") as file:
        source = file.read().splitlines()
    rows = {row["name"]: row for row in sojourn.sql(
        database, "SELECT name, file, line FROM function_lines JOIN functions USING (function_id)")}
    for name, code in (("Loaders$Square.area()", "return"), ("Loaders.main(java.lang.String[])", "")):
        row = rows[name]
        written = source[row["line"] - 2] + source[row["line"] - 1]
        check(row["file"] == "Loaders.java" and name.split(".")[1].split("(")[0] in written and code in written,
              f"{row}: {written}")
    told = sojourn.run(["report", database], capture_output=True, text=True).stdout
    check(f"Loaders.java:{rows['Loaders$Square.area()']['line']}" in told, f"the report says\n{told}")


def lines_that_ran_are_recorded(sojourn, samples, classes):
    """Checks the lines of methods, and whether these ran, in interpreted and compiled code. The sample states what
    is expected."""
    with open(os.path.join(samples, "Lines.java"), encoding="utf-8") as file:
        source = list(enumerate(file.read().splitlines(), 1))
    wanted = {number: int(line.endswith("// runs")) for number, line in source
              if line.endswith(("// runs", "// does not"))}
    alone = subprocess.run(["java", "-cp", classes, "Lines"], capture_output=True, text=True, check=True).stdout
    for number, mode in enumerate((["-Xint"], ["-Xcomp", "-XX:TieredStopAtLevel=1"])):
        database = sojourn.path(f"lines{number}.db")
        done, _ = sojourn.record(["java", *mode, "-Xverify:all", "-cp", classes, "Lines"], database,
                                 [*LOSSLESS, "--lines"], text=True)
        check((done.stdout, done.stderr) == (alone, ""), f"{done}")
        rows = sojourn.sql(database, "SELECT line, max(entered) AS entered FROM source_lines WHERE file = 'Lines.java' "
                                     "GROUP BY line")
        found = {row["line"]: row["entered"] for row in rows}
        check({line: found.get(line) for line in wanted} == wanted, f"{mode}: {found}, wanted {wanted}")
        check_accounts(sojourn, database)


def choices(sojourn, classes):
    square = {"Loaders$Square.<init>(int)", "Loaders$Square.area()"}
    base = {"Loaders$Base.<init>()", "Loaders$Base.twice()"}
    expected = [(["--java-loader", "Loaders$PluginLoader"], {"Plugin.run(int)"}),
                (["--java-loader", "app", "--java-class", "Loaders$Lone"],
                 {"Loaders$Lone.<init>()", "Loaders$Lone.alone()"}),
                (["--java-subclasses-of", "*Shape"], square | base),
                (["--java-subclasses-of", "Loaders$Base", "--java-class", "*Square"], square),
                (["--java-subclasses-of", "java.lang.ClassLoader"],
                 {"Loaders$PluginLoader.<init>(byte[])", "Loaders$PluginLoader.loadClass(java.lang.String,boolean)"})]
    for number, (options, wanted) in enumerate(expected):
        database = sojourn.path(f"choice{number}.db")
        done, _ = sojourn.record(["java", "-cp", classes, "Loaders", str(LOADERS)], database,
                                 [*LOSSLESS, *options], text=True)
        check(done.stdout == f"ready\nsum {sums()}\n", f"{options}: {done}")
        found = {row["name"] for row in sojourn.sql(database, CALLS) if "(" in row["name"]}
        check(found == wanted, f"{options}: {found}")
        check_accounts(sojourn, database)


def early_calls(sojourn, database):
    return {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS)}.get("Attached.early(int)", 0)


def read_count(file):
    with open(file, encoding="utf-8") as lines:
        return int(lines.read())


def any_names(sojourn, classes):
    """The name of a method may have almost any bytes: here a control character, a line end and Java's NUL."""
    folder, database = sojourn.path("renamed"), sojourn.path("renamed.db")
    os.mkdir(folder)
    with open(os.path.join(classes, "Plugin.class"), "rb") as file:
        renamed = file.read().replace(b"\0\3run", b"\0\4\1\n\xc0\x80")
    for name in (name for name in os.listdir(classes) if name.startswith("Loaders")):
        with open(os.path.join(classes, name), "rb") as file, open(os.path.join(folder, name), "wb") as copy:
            copy.write(file.read().replace(b"\0\3run", b"\0\4\1\n\xc0\x80"))
    with open(os.path.join(folder, "Plugin.class"), "wb") as file:
        file.write(renamed)
    done, _ = sojourn.record(["java", "-Xverify:all", "-cp", folder, "Loaders", "3"], database, LOSSLESS, text=True)
    check(done.returncode == 0 and done.stdout.startswith("ready\nsum "), f"{done}")
    calls = {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS)}
    check(calls.get("Plugin.\\x01\\x0a\\xc0\\x80(int)") == 3 * RUNS, f"{calls}")


def methods_without_space_for_probes_are_listed(sojourn):
    """A method that has no space for probes stays as it is and is listed. Other methods of its class have probes."""
    folder, database = sojourn.path("large"), sojourn.path("large.db")
    steps, jumped = 21843, 10918  # 65,531 bytes of code, with a jump of 32,765 bytes
    os.mkdir(folder)
    with open(os.path.join(folder, "Large.java"), "w", encoding="ascii") as file:
        source = sample_text("java/large/Large.java")
        file.write(source.replace("/* full */", "x += 1; " * steps).replace("/* far */", "x += 1; " * jumped))
    compile_java(sojourn, folder, "Large")
    done, _ = sojourn.record(["java", "-Xverify:all", "-cp", sojourn.path("classes"), "Large"], database, LOSSLESS, text=True)
    check((done.stdout, done.stderr) == (f"{steps + jumped + 2}\n", ""), f"{done}")
    rows = sojourn.sql(database, "SELECT name, reason FROM unhooked_functions WHERE module LIKE 'jvm:Large%'")
    reason = "its class file has no space for probes"
    check({row["name"]: row["reason"] for row in rows} == {"Large.full(int)": reason, "Large.far(int)": reason}, f"{rows}")
    calls = {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS)}
    check(calls.get("Large.small(int)") == 1 and calls.get("Large.main(java.lang.String[])") == 1, f"{calls}")
    check_accounts(sojourn, database)


def hidden_calls(sojourn, database):
    check_accounts(sojourn, database)
    rows = sojourn.sql(database, HIDDEN)
    check(all(row["path"].startswith("jvm:Hidden/HiddenPart+") for row in rows), f"{rows}")
    return {row["name"]: row["calls"] for row in rows}


def calls_of_each_method(calls):
    """Returns the expected calls: `calls` of each method of the hidden class, and none of the hidden classes of
    lambdas."""
    return {name: calls for name in ("HiddenPart.run(int)", "HiddenPart.part(int)")}


def hidden(sojourn, classes):
    """Methods of hidden classes are recorded under their host's name, and chosen by it."""
    for number, (options, expected) in enumerate((([], calls_of_each_method(30)), (["--java-class", "Hidden"], calls_of_each_method(30)),
                                                  (["--java-class", "HiddenPart"], {}))):
        database = sojourn.path(f"hidden{number}.db")
        program = Program(classes, ["-Xverify:all"], name="Hidden", environment=sojourn.environment,
                          prefix=[sojourn.program, "record", "--quiet", "-o", database, *LOSSLESS, *options, "--"])
        program.tell("define", 3)
        program.tell("lambda", 1)
        program.tell("call", 10)
        program.finish()
        found = hidden_calls(sojourn, database)
        check(found == expected, f"{options}: {found}")


def not_recorded(sojourn, database):
    return {row["name"]: row["n"] for row in sojourn.sql(database, NOT_RECORDED)}


def methods_of(count):
    return {name: count for name in ("HiddenPart.<init>()", "HiddenPart.part(int)", "HiddenPart.run(int)")}


def hidden_when_attached(sojourn, classes):
    """Hidden classes that existed before the attach are listed and not recorded. Hidden classes of an ended
    recording report nothing to the next recording, which gives their ids to its own functions. A lambda that existed
    before is recorded, because its code is a method of its host."""
    program = Program(classes, ["-Xverify:all"], name="Hidden")
    program.tell("define", 1)
    for number, calls in enumerate((7, 5, 3)):
        database = sojourn.path(f"hidden_attached{number}.db")
        recorder = start_attach(sojourn, program.pid, database, LOSSLESS)
        program.tell("define", 1)
        program.tell("call", calls)
        leave(recorder)
        program.tell("call", 2)
        found = hidden_calls(sojourn, database)
        check(found == calls_of_each_method(calls), f"attached {number}: {found}")
        others = {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS) if row["name"].startswith("Hidden.")}
        check(others == {"Hidden.define(java.lang.String)": 1, "Hidden.call(int)": calls,
                         "Hidden.lambda$static$0(int)": calls}, f"attached {number}: {others}")
        listed = not_recorded(sojourn, database)
        check(listed == methods_of(number + 1), f"attached {number}: {listed}")
        before = [report["hidden_before"] for report in jvm_reports(sojourn, database, "joined")]
        check(before == [number + 1], f"attached {number}: {before}")
    program.finish()


def hidden_classes_wanted_later_are_listed(sojourn, classes):
    """A policy that selects hidden classes too late lists the classes that it cannot record. These are classes from
    before the agent, and classes that were defined while no policy selected them. Recorded classes are not listed."""
    program = Program(classes, ["-Xverify:all"], name="Hidden")
    program.tell("define", 1)
    database = sojourn.path("hidden_later.db")
    recorder = subprocess.Popen([sojourn.program, "attach", "-o", database, *LOSSLESS, "--java-class", "Nothing*",
                                 "--allow-unmatched", str(program.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=sojourn.environment)
    wait_until_recorded(sojourn, program.pid, recorder)
    program.tell("define", 2)
    set_policy(sojourn, program.pid, "--java-class", "Hidden*")
    program.tell("define", 1)
    set_policy(sojourn, program.pid)
    program.tell("call", 3)
    said = leave(recorder)
    check("3 hidden classes were there before" in said, said)
    listed, found = not_recorded(sojourn, database), hidden_calls(sojourn, database)
    check((listed, found) == (methods_of(3), calls_of_each_method(3)), f"{listed} {found}")
    program.finish()


def hidden_values(sojourn, classes):
    """Values of hidden classes of an earlier recording do not appear in the next one, neither alone nor in other
    calls."""
    program = Program(classes, ["-Xverify:all"], name="Hidden")
    for number in range(2):
        database, summary = sojourn.path(f"hidden_values{number}.db"), sojourn.path(f"hidden_values{number}.json")
        recorder = start_attach(sojourn, program.pid, database, [*LOSSLESS, "--value", "HiddenPart.*(1:int)",
                                                                 "--summary", summary])
        program.tell("define", 1)
        program.tell("call", 4)
        leave(recorder)
        rows = sojourn.sql(database, "SELECT name, value FROM arguments JOIN calls USING (session_id, call_id) "
                                     "JOIN functions USING (function_id)")
        with open(summary, encoding="utf-8") as file:
            lost = json.load(file)["lost_values"]
        found = sorted((row["name"], int(row["value"])) for row in rows)
        check(found == [(name, value) for name in sorted(calls_of_each_method(0)) for value in range(4)], f"round {number}: {found}")
        check(lost == 0, f"round {number}: {lost} values are lost")
    program.finish()


def make_agent(sojourn, classes):
    manifest, jar = sojourn.path("manifest.txt"), sojourn.path("rewriter.jar")
    with open(manifest, "w", encoding="ascii") as file:
        file.write("Premain-Class: Rewriter\nAgent-Class: Rewriter\nCan-Retransform-Classes: true\n")
    names = [name for name in os.listdir(classes) if name.startswith("Rewriter")]
    subprocess.run(["jar", "cfm", jar, manifest, *[part for name in names for part in ("-C", classes, name)]],
                   check=True, timeout=PATIENCE_S)
    return jar


def leave(recorder):
    recorder.send_signal(signal.SIGINT)
    output, errors = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"attach ended with {recorder.returncode}: {output}{errors}")
    return output + errors


def launched_with_another_agent(sojourn, classes, jar):
    counts, database = sojourn.path("counts1"), sojourn.path("agents1.db")
    program = Program(classes, [INTERNAL_ASM, "-Xverify:all", f"-javaagent:{jar}={counts}"],
                      prefix=[sojourn.program, "record", "--quiet", "-o", database, *LOSSLESS, "--"],
                      environment=sojourn.environment)
    program.tell("early", 5)
    program.finish()
    check((early_calls(sojourn, database), read_count(counts)) == (6, 6), "launched")


def another_agent_before_and_after(sojourn, classes, jar):
    for number, comes_first in enumerate((True, False)):
        counts, database = sojourn.path(f"counts{number}"), sojourn.path(f"attached{number}.db")
        program = Program(classes, [INTERNAL_ASM] + ([f"-javaagent:{jar}={counts}"] if comes_first else []))
        program.tell("early", 1)
        recorder = start_attach(sojourn, program.pid, database, LOSSLESS)
        program.tell("early", 2)
        if not comes_first:
            subprocess.run(["jcmd", str(program.pid), "JVMTI.agent_load", jar, counts], check=True,
                           capture_output=True, timeout=PATIENCE_S)
        program.tell("early", 3)
        leave(recorder)
        program.tell("early", 4)
        program.finish()
        check(early_calls(sojourn, database) == 7, f"{comes_first}: {early_calls(sojourn, database)}")
        wanted = 14 if comes_first else 9
        check(read_count(counts) == wanted, f"{comes_first}: {read_count(counts)}")


def ended(sojourn, database):
    rows = sojourn.sql(database, "SELECT f.name, c.ending, count(*) AS calls FROM calls c "
                                 "JOIN functions f USING (function_id) GROUP BY 1, 2")
    return {(row["name"], row["ending"]): row["calls"] for row in rows}


def old_class_files(sojourn, classes):
    """Subroutines (jsr, ret), and constructors that throw before they call the other constructor."""
    for mode, options in (("-Xint", ["-Xint"]), ("-Xcomp", compiled_first("Old", "Old$Early", "Old$Parent", "Made"))):
        database = sojourn.path(f"old{mode}.db")
        done, _ = sojourn.record(["java", INTERNAL_ASM, *options, "-Xverify:all", "-cp", classes, "Old"], database, LOSSLESS,
                                 text=True)
        check((done.stdout, done.stderr) == ("90 011\n", ""), f"{done}")
        found = ended(sojourn, database)
        wanted = {("Made.twice(int)", "returned"): 4, ("Old$Early.<init>(int)", "returned"): 1,
                  ("Old$Early.<init>(int)", "unwound"): 2, ("Old$Early.checked(int)", "unwound"): 2,
                  ("Old$Parent.<init>(int)", "returned"): 1, ("Old.early(int)", "returned"): 3}
        check({key: found.get(key) for key in wanted} == wanted, f"{mode}: {found}")
        check_accounts(sojourn, database)


def redefined(sojourn, classes):
    """Another agent changes the code of a class and restores it. Each time, the functions of the previous code end."""
    manifest, jar, database = sojourn.path("redefines.txt"), sojourn.path("redefines.jar"), sojourn.path("redefined.db")
    with open(manifest, "w", encoding="ascii") as file:
        file.write("Premain-Class: Redefined\nCan-Redefine-Classes: true\n")
    subprocess.run(["jar", "cfm", jar, manifest, "-C", classes, "Redefined.class", "-C", classes,
                    "Redefined$Target.class"], check=True, timeout=PATIENCE_S)
    done, _ = sojourn.record(["java", f"-javaagent:{jar}", "-Xverify:all", "-cp", jar, "Redefined"], database, LOSSLESS,
                             text=True)
    check((done.stdout, done.stderr) == ("3333\n11110\n7777\n", ""), f"{done}")
    rows = sojourn.sql(database, "SELECT c.function_id, count(*) AS calls FROM calls c JOIN functions f USING (function_id) "
                                 "WHERE f.name = 'Redefined$Target.value()' GROUP BY 1")
    check(sorted(row["calls"] for row in rows) == [5, 10], f"{rows}")
    gone = sojourn.sql(database, ENDED.format("Redefined$Target"))[0]["n"]
    check(gone == 2, f"{gone} times the class that was redefined ended")
    check_accounts(sojourn, database)


def recorder_killed_while_classes_load(sojourn, classes):
    command = [sojourn.program, "record", "--quiet", "-o", sojourn.path("killed.db"), "--",
               "java", "-cp", classes, "Loaders", str(LOADERS)]
    recorder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=sojourn.environment)
    check(recorder.stdout.readline() == "ready\n", "the program does not run")
    recorder.kill()
    recorder.wait()
    check(recorder.stdout.read() == f"sum {sums()}\n", "the program did not go on")


def test(sojourn, arguments):
    classes = sample_classes(sojourn)
    loaders(sojourn, classes)
    lines(sojourn, arguments[0])
    lines_that_ran_are_recorded(sojourn, arguments[0], classes)
    choices(sojourn, classes)
    any_names(sojourn, classes)
    old_class_files(sojourn, classes)
    methods_without_space_for_probes_are_listed(sojourn)
    redefined(sojourn, classes)
    hidden(sojourn, classes)
    hidden_when_attached(sojourn, classes)
    hidden_classes_wanted_later_are_listed(sojourn, classes)
    hidden_values(sojourn, classes)
    jar = make_agent(sojourn, classes)
    launched_with_another_agent(sojourn, classes, jar)
    another_agent_before_and_after(sojourn, classes, jar)
    recorder_killed_while_classes_load(sojourn, classes)


main(test)
