#!/usr/bin/env python3
"""The plan of a module takes longer than the program waits. The module is hooked in the same recording, in all
processes that continue without it, and missing calls are reported. Launched and attached.

late_modules.py BUILD_FOLDER PROGRAM
"""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, main

CALLS = 1000  # calls after the hooks, in each process
LIBRARY, FUNCTION = "libcrypto.so.3", "OpenSSL_version_num"
OPTIONS = ["--plan-wait", "1ms", "--module", LIBRARY, "--function", FUNCTION]


def check_recording(sojourn, database, summary, output):
    called = sorted(int(line) for line in output.split() if line != "ready")
    rows = sojourn.sql(database, "SELECT count(*) AS calls FROM calls JOIN functions USING (function_id) "
                       f"WHERE name = '{FUNCTION}' GROUP BY thread_id ORDER BY 1")
    recorded = [row["calls"] for row in rows]
    check(len(recorded) == len(called) and all(CALLS <= count <= most for count, most in zip(recorded, called)),
          f"of {called} calls {recorded} were recorded: {summary}")
    check((summary["late_plans"], summary["late_unhooked"]) == (1, 0), f"{summary}")
    check(LIBRARY in summary["late_module"] and summary["late_missed_ns"] > 0, f"{summary}")
    rows = sojourn.sql(database, "SELECT payload ->> 'module' AS module, payload ->> 'missed_ns' AS missed, "
                       "payload ->> 'is_hooked' AS hooked FROM reports WHERE monitor = 'recorder'")
    check(rows == [{"module": summary["late_module"], "missed": summary["late_missed_ns"], "hooked": 1}], f"{rows}")
    check_accounts(sojourn, database)


def a_late_module_is_hooked_in_all_processes(sojourn, program):
    database = sojourn.path("launched.db")
    done, summary = sojourn.record([program, LIBRARY, FUNCTION, "fork"], database, OPTIONS, text=True)
    check(done.returncode == 0, f"{done}")
    check_recording(sojourn, database, summary, done.stdout)
    check(f"a plan took longer than the program waits: calls of {summary['late_module']} are missing for"
          in " ".join(done.stderr.split()), f"{done.stderr}")


def a_late_module_is_hooked_after_an_attach(sojourn, program):
    database, summary = sojourn.path("attached.db"), sojourn.path("attached.json")
    with subprocess.Popen([program, LIBRARY, FUNCTION], stdout=subprocess.PIPE, text=True) as process:
        check(process.stdout.readline() == "ready\n", "the program did not start")
        done = sojourn.run(["attach", "--quiet", "-o", database, "--summary", summary, *OPTIONS, str(process.pid)],
                           capture_output=True, text=True)
        output, _ = process.communicate(timeout=PATIENCE_S)
    check((process.returncode, done.returncode) == (0, 0), f"the program ended with {process.returncode}: {done}")
    with open(summary, encoding="utf-8") as file:
        check_recording(sojourn, database, json.load(file), output)


def test(sojourn, arguments):
    for case in (a_late_module_is_hooked_in_all_processes, a_late_module_is_hooked_after_an_attach):
        shutil.rmtree(sojourn.path("cache"), ignore_errors=True)
        case(sojourn, arguments[0])
        print(case.__name__, flush=True)


main(test)
