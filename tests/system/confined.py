"""A program that takes system calls away from itself (seccomp) runs on under the recorder: the agent
makes none from then on, drops where it would wait, and every call is stored or counted as lost."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from sojourn_testing import check, check_accounts, main


def test(sojourn, arguments):
    database, summary = sojourn.path("confined.db"), sojourn.path("summary.json")
    process = subprocess.Popen(
        [sojourn.program, "record", "--quiet", "-o", database, "--summary", summary, "--",
         arguments[0]],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=sojourn.environment)
    check(process.stdout.readline() == "confined\n", "the sample did not start")
    # The recorder looks fifty times a second.
    time.sleep(3)
    output, _ = process.communicate("\n", timeout=120)
    check((process.returncode, output) == (0, "calls 8001000\n"),
          f"the program ended with {process.returncode}, {output!r}")
    check_accounts(sojourn, database)
    with open(summary, encoding="utf-8") as file:
        told = json.load(file)
    rows = sojourn.sql(database, "SELECT disarm_reason FROM processes")
    check(rows == [{"disarm_reason": "confined"}], f"what is told: {rows}")
    # Its own calls, those of main and of the other functions, stored or lost.
    stored = sojourn.sql(database, "SELECT stored_calls FROM sessions")[0]["stored_calls"]
    check(stored > 0 and stored + told["lost_calls"] >= 8001000,
          f"{stored} calls stored, {told['lost_calls']} lost")
    threads = sojourn.sql(database, "SELECT count(*) AS n FROM threads")[0]["n"]
    check(threads == 2, f"{threads} threads")


main(test)
