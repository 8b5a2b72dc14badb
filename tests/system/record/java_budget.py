#!/usr/bin/env python3
"""A Java program over its budget: methods that cost most lose their probes while it runs, and what was
recorded stays balanced; a policy without a budget gives them back. The JVM's own tracing functions keep no budget.

java_budget.py BUILD_FOLDER SAMPLES_FOLDER
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import set_policy
from java_programs import Program, compile_java, jvm_reports
from sojourn_testing import Failure, check, check_accounts, children, main, wait_for

HOT = {"Attached.fib(int)", "Attached.mixed(long)"}
DECISIONS = """SELECT f.name, d.what FROM decisions d JOIN functions f USING (function_id)
               WHERE f.name LIKE 'Attached.%'"""
LATER = """SELECT count(*) AS n FROM calls JOIN functions USING (function_id)
           WHERE name = 'Attached.early(int)' AND ending = 'returned'"""


def decisions(sojourn, database):
    try:
        return [(row["name"], row["what"]) for row in sojourn.sql(database, DECISIONS)]
    except Failure:
        return []  # the database is being made


def has_unhooked(sojourn, database):
    return any(name in HOT and what == "unhook" for name, what in decisions(sojourn, database))


def over_budget(sojourn, classes):
    database = sojourn.path("budget.db")
    program = Program(classes, arguments=["busy"], environment=sojourn.environment,
                      prefix=[sojourn.program, "record", "-q", "-o", database, "--block-ms", "10000", "--budget", "1%", "--"])
    wait_for("hot methods lose their probes", lambda: has_unhooked(sojourn, database))
    wait_for("that is reported", lambda: jvm_reports(sojourn, database, "selected"))
    program.work_on()
    set_policy(sojourn, children(program.pid)[0])  # without a budget
    program.tell("early", 6)
    program.work_on()
    program.finish()
    check_accounts(sojourn, database)
    orphans = sojourn.sql(database, "SELECT count(*) AS n FROM gaps WHERE reason = 'orphan'")[0]["n"]
    changed = [report["retransformed"] for report in jvm_reports(sojourn, database, "selected")]
    check(orphans == 0, f"{orphans} exits without an entry")
    check(sum(changed) >= 2, f"classes transformed again: {changed}")
    check(sojourn.sql(database, LATER)[0]["n"] >= 7, "early is not recorded again")


def test(sojourn, arguments):
    classes = compile_java(sojourn, arguments[0], "Attached")
    over_budget(sojourn, classes)
    refused = sojourn.run(["record", "-q", "-o", sojourn.path("refused.db"), "--budget", "1%", "--java-engine",
                           "runtime", "--", "java", "-version"], capture_output=True, text=True)
    check(refused.returncode not in (0, 127) and "keeps no budget" in refused.stderr, refused.stderr)


main(test)
