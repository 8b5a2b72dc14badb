#!/usr/bin/env python3
"""A Java program over its overhead budget: the most expensive methods lose their probes while it runs, and the
recording stays balanced. A policy without a budget restores the probes. Muted methods keep their probes, which record
nothing, so no class is transformed for them. The JVM's own tracing functions have no budget.

java_budget.py BUILD_FOLDER SAMPLES_FOLDER
"""
import contextlib
import ctypes
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import set_policy
from java_programs import Program, jvm_reports, sample_classes
from sojourn_testing import PATIENCE_S, Failure, check, check_accounts, children, main, wait_for

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, ANY_CHILD = 17, 0x4206, 0x4207, 0x40000000
HOT = {"Attached.fib(int)", "Attached.mixed(long)"}
DECISIONS = """SELECT f.name, d.what, d.reason LIKE '%muted%' AS is_muted, d.overhead_ppm
               FROM decisions d JOIN functions f USING (function_id) WHERE f.name LIKE '{}%' ORDER BY d.number"""
PART = "StandingPart.part(long)"
RECORDED = f"SELECT sum(calls) AS n FROM function_stats JOIN functions USING (function_id) WHERE name = '{PART}'"
LATER = """SELECT count(*) AS n FROM calls JOIN functions USING (function_id)
           WHERE name = 'Attached.early(int)' AND ending = 'returned'"""


def decisions(sojourn, database, program):
    try:
        return [dict(row) for row in sojourn.sql(database, DECISIONS.format(program))]
    except Failure:
        return []  # the database is being made


def has_unhooked(sojourn, database):
    return any(row["name"] in HOT and row["what"] == "unhook" for row in decisions(sojourn, database, "Attached"))


def class_of(name):
    return name.split("(")[0].rsplit(".", 1)[0]


def transformations(rows):
    """Counts the transformations for these decisions, and for the policy that undoes them. Decisions that were made
    together have the same overhead. A class with only muted methods is not transformed."""
    made, without_probes, group, changed = 0, set(), None, set()
    for row in rows:
        if group != (row["what"], row["overhead_ppm"]):
            group, changed = (row["what"], row["overhead_ppm"]), set()
        name, of = row["name"], class_of(row["name"])
        leaves = row["what"] == "unhook" and not row["is_muted"]
        if (leaves or name in without_probes) and of not in changed:
            changed.add(of)
            made += 1
        without_probes = without_probes | {name} if leaves else without_probes - {name}
    return made + len({class_of(name) for name in without_probes})


def check_transformations(sojourn, database, program):
    rows = decisions(sojourn, database, program)
    changed = sum(report["retransformed"] for report in jvm_reports(sojourn, database, "selected"))
    check(changed == transformations(rows), f"{changed} classes were transformed for {rows}")


def over_budget(sojourn, classes):
    database = sojourn.path("budget.db")
    program = Program(classes, arguments=["busy"], environment=sojourn.environment,
                      prefix=[sojourn.program, "record", "-q", "-o", database, "--block-ms", "10000", "--budget", "1%", "--"])
    wait_for("hot methods lose their probes", lambda: has_unhooked(sojourn, database))
    program.work_on()
    set_policy(sojourn, children(program.pid)[0])  # without a budget
    program.tell("early", 6)
    program.work_on()
    program.finish()
    check_accounts(sojourn, database)
    orphans = count_orphans(sojourn, database)
    check(orphans == 0, f"{orphans} exits without an entry")
    check_transformations(sojourn, database, "Attached")
    check(sojourn.sql(database, LATER)[0]["n"] >= 7, "early is not recorded again")


def says(program):
    program.stdin.write("\n")
    program.stdin.flush()
    return int(program.stdout.readline())


def count_orphans(sojourn, database):
    return sojourn.sql(database, "SELECT count(*) AS n FROM gaps WHERE reason = 'orphan'")[0]["n"]


@contextlib.contextmanager
def traced(pid):
    """Traces the process while the block under `with` runs, so that the process refuses other tracers."""
    libc = ctypes.CDLL(None)
    wait_for("no other process traces it", lambda: libc.ptrace(PTRACE_SEIZE, pid, None, None) == 0)
    yield
    libc.ptrace(PTRACE_INTERRUPT, pid, None, None)
    os.waitpid(pid, ANY_CHILD)
    libc.ptrace(PTRACE_DETACH, pid, None, None)


def is_muted(sojourn, database):
    return any(row["name"] == PART and row["what"] == "unhook" and row["is_muted"]
               for row in decisions(sojourn, database, "Standing"))


def muted(sojourn, classes):
    """No class is transformed for a muted method. So muting also works for hidden classes, which cannot be
    transformed."""
    database = sojourn.path("muted.db")
    recorder = subprocess.Popen([sojourn.program, "record", "-q", "-o", database, "--block-ms", "10000", "--budget", "1%",
                                 "--", "java", "-cp", classes, "Standing"], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True, env=sojourn.environment)
    check(recorder.stdout.readline() == "ready\n", "the program did not start")
    wait_for("the method of the hidden class is muted", lambda: is_muted(sojourn, database))
    left_out = says(recorder)
    wait_for("the loop continues", lambda: says(recorder) > left_out + 10000)
    java = children(recorder.pid)[0]
    unrecorded = (says(recorder) - left_out) // 2  # at least: the governor may have tried it meanwhile
    with traced(java):
        refused = sojourn.run(["policy", "set", "--json", str(java)], capture_output=True, text=True)
    check("traced" in refused.stdout + refused.stderr, f"{refused}")
    set_policy(sojourn, java)  # without a budget
    again = says(recorder)
    wait_for("it is recorded again", lambda: says(recorder) > again + 1000)
    total = says(recorder)
    recorder.communicate(timeout=PATIENCE_S)
    check_accounts(sojourn, database)
    check(recorder.returncode == 0, f"it ends with {recorder.returncode}")
    recorded = sojourn.sql(database, RECORDED)[0]["n"]
    orphans = count_orphans(sojourn, database)
    check(total - again <= recorded <= total - unrecorded and orphans == 0,
          f"{recorded} of {total} calls, {orphans} exits without an entry")
    check_transformations(sojourn, database, "Standing")


def test(sojourn, arguments):
    classes = sample_classes(sojourn)
    over_budget(sojourn, classes)
    muted(sojourn, classes)
    refused = sojourn.run(["record", "-q", "-o", sojourn.path("refused.db"), "--budget", "1%", "--java-engine",
                           "runtime", "--", "java", "-version"], capture_output=True, text=True)
    check(refused.returncode not in (0, 127) and "keeps no budget" in refused.stderr, refused.stderr)


main(test)
