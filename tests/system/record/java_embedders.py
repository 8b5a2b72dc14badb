#!/usr/bin/env python3
"""Records Java without `sojourn record` or `attach`: a JVM loads the recorder itself, by -agentpath, or by jcmd
while it runs. The recorder reads its settings from the environment and records into a folder. Native code of the
JVM is not hooked, because threads run it. Programs with their own JVM, linked or opened by name, run under `record`
with both engines.

java_embedders.py BUILD_FOLDER SAMPLES_FOLDER
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from java_programs import Program, jvm_reports, sample_classes
from sojourn_testing import PATIENCE_S, check, check_accounts, main

CALLS = "SELECT name, count(*) AS n FROM calls JOIN functions USING (function_id) GROUP BY name"


def direct(sojourn, folder):
    os.makedirs(folder)
    return dict(sojourn.environment, SOJOURN_DIRECT=f"file://{folder}")


def library(sojourn):
    return os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "lib/libsojourn-direct.so")


def delivered(sojourn, folder):
    done = sojourn.run(["flush", "--spool", folder], capture_output=True, text=True)
    check(done.returncode == 0, f"flush: {done}")
    database = os.path.join(folder, "sessions.db")
    check_accounts(sojourn, database)
    rows = sojourn.sql(database, "SELECT count(*) AS n FROM modules WHERE path NOT LIKE 'jvm:%'")
    check(rows[0]["n"] == 0, f"{rows} native modules are hooked under running threads")
    return {row["name"]: row["n"] for row in sojourn.sql(database, CALLS)}


def by_agentpath(sojourn, classes):
    folder = sojourn.path("started")
    done = subprocess.run(["java", f"-agentpath:{library(sojourn)}", "-Xverify:all", "-cp", classes, "Counted", "300", "2"],
                          capture_output=True, text=True, check=True, env=direct(sojourn, folder), timeout=PATIENCE_S)
    check(done.stderr == "", f"it says {done.stderr}")
    calls = delivered(sojourn, folder)
    check(calls["Counted.leaf(int)"] == int(re.search(r"leaf=(\d+)", done.stdout)[1]), f"{calls}, {done.stdout}")


def build_embedder(sojourn, samples, *options):
    home = "/usr/lib/jvm/java-17-openjdk-amd64"
    program = sojourn.path(f"embedder{len(options)}")
    subprocess.run(["gcc", "-O1", f"-I{home}/include", f"-I{home}/include/linux", os.path.join(samples, "embedder.c"),
                    f"-L{home}/lib/server", *(options or ("-ljvm",)), f"-Wl,-rpath,{home}/lib/server", "-o", program], check=True)
    return program


def embedded(sojourn, samples, classes):
    for program in (build_embedder(sojourn, samples), build_embedder(sojourn, samples, "-DBY_NAME", "-Wl,--no-as-needed")):
        for engine in ("rewritten", "runtime"):
            database = sojourn.path(f"{os.path.basename(program)}{engine}.db")
            done, _ = sojourn.record([program, classes, "Counted", "300", "2"], database,
                                     ["--block-ms", "10000", "--java-engine", engine], text=True)
            check((done.returncode, done.stderr) == (0, ""), f"{done}")
            state = jvm_reports(sojourn, database, "state")
            check(len(state) == 1 and state[0]["engine"] == engine, f"{state}")
            calls = {row["name"]: row["n"] for row in sojourn.sql(database, CALLS)}
            check(calls["Counted.leaf(int)"] == int(re.search(r"leaf=(\d+)", done.stdout)[1]), f"{calls}, {done.stdout}")
            check_accounts(sojourn, database)


def load(program, path):
    return subprocess.run(["jcmd", str(program.pid), "JVMTI.agent_load", path], capture_output=True, text=True,
                          check=True, timeout=PATIENCE_S).stdout


def by_jcmd(sojourn, classes):
    folder = sojourn.path("loaded")
    program = Program(classes, environment=direct(sojourn, folder))
    program.tell("early", 2)
    told = load(program, library(sojourn))
    check("return code: 0" in told, f"jcmd says {told}")
    check("return code: 0" in load(program, library(sojourn)), "a second time")
    program.tell("early", 4)
    program.finish()
    calls = delivered(sojourn, folder)
    check(calls.get("Attached.early(int)") == 5, f"{calls}")


def a_missing_destination_is_reported(sojourn, classes):
    """The environment names no destination: the JVM says so and continues."""
    program = Program(classes)
    told = load(program, library(sojourn))
    check("return code: -1" in told, f"jcmd says {told}")
    program.tell("early", 1)
    program.finish()


def test(sojourn, arguments):
    classes = sample_classes(sojourn)
    by_agentpath(sojourn, classes)
    by_jcmd(sojourn, classes)
    a_missing_destination_is_reported(sojourn, classes)
    embedded(sojourn, arguments[0], classes)


main(test)
