#!/usr/bin/env python3
"""A program that overwrites its own functions runs as without Sojourn. Its code is not changed when the hooks are
removed, and the recording names the overwritten functions. Launched and attached.

overwritten.py BUILD_FOLDER PROGRAM
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, main, wait_for

NAME = "overwrites!replaced"


def check_report(sojourn, database, summary):
    check((summary["overwritten"], summary["first_overwritten"]) == (1, NAME), f"{summary}")
    rows = sojourn.sql(database, "SELECT process_number AS process, payload FROM reports "
                       "WHERE monitor = 'recorder' AND kind = 'overwritten'")
    check([(row["process"], json.loads(row["payload"])) for row in rows] == [(1, {"functions": 1, "names": [NAME]})],
          f"{rows}")
    check_accounts(sojourn, database)


def calls_of(sojourn, database):
    rows = sojourn.sql(database, "SELECT name, calls FROM function_stats JOIN functions USING (function_id)")
    return {row["name"]: row["calls"] for row in rows}


def an_overwritten_hook_is_reported_at_the_end(sojourn, program):
    database = sojourn.path("launched.db")
    done, summary = sojourn.record([program], database, text=True, input="call\nwrite\ncall\n")
    check((done.returncode, done.stdout) == (0, "ready\n1 3\n7 3\n7 3\n"), f"{done}")
    check_report(sojourn, database, summary)
    calls = calls_of(sojourn, database)
    check((calls["replaced"], calls["kept"]) == (1, 3), f"{calls}")
    check(f"overwritten the hooks of 1 function, the first is {NAME}" in " ".join(done.stderr.split()), done.stderr)


def intact_hooks_are_not_reported(sojourn, program):
    _, summary = sojourn.record([program], sojourn.path("plain.db"), text=True, input="call\n")
    check("overwritten" not in summary, f"{summary}")


def ask(process, line):
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return process.stdout.readline()


def an_overwritten_hook_is_reported_at_a_detach(sojourn, program):
    database, path = sojourn.path("attached.db"), sojourn.path("attached.json")
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        check(process.stdout.readline() == "ready\n", "the program did not start")
        with subprocess.Popen([sojourn.program, "attach", "--quiet", "-o", database, "--summary", path,
                               str(process.pid)], env=sojourn.environment, stderr=subprocess.DEVNULL) as recorder:
            wait_for("the process is recorded", lambda: sojourn.sql_once_made(
                database, "SELECT 1 FROM processes WHERE number = 1"))
            check((ask(process, "call"), ask(process, "write")) == ("1 3\n", "7 3\n"), "wrong results")
            recorder.terminate()
            check(recorder.wait(timeout=PATIENCE_S) == 0, "the recorder failed")
        check(ask(process, "call") == "7 3\n", "wrong results after leaving")
        process.communicate(timeout=PATIENCE_S)
        check(process.returncode == 0, f"the program ended with {process.returncode}")
    with open(path, encoding="utf-8") as file:
        check_report(sojourn, database, json.load(file))


def test(sojourn, arguments):
    for case in (an_overwritten_hook_is_reported_at_the_end, intact_hooks_are_not_reported, an_overwritten_hook_is_reported_at_a_detach):
        case(sojourn, arguments[0])
        print(case.__name__, flush=True)


main(test)
