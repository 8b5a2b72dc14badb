#!/usr/bin/env python3
"""Children that a process makes in ways of its own: each runs to its end and is recorded, or counted.
forks.py BUILD_FOLDER SAMPLE"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

CALLS = 1000


def calls_of(sojourn, database, function):
    return sojourn.sql(database, "SELECT coalesce(sum(s.calls), 0) AS calls FROM function_stats AS s JOIN "
                                 f"functions AS f USING (function_id) WHERE f.name = '{function}'")[0]["calls"]


def test_locked(sojourn, program):
    """Another thread holds the loader's lock as the program forks, for ever as its child sees it."""
    database = sojourn.path("locked.db")
    done, summary = sojourn.record([program, "locked"], database, ["--zombies", "heap", "--memory", "*"])
    check(done.stdout == b"4 0\n", f"the child: {done.stdout} {done.stderr.decode()}")
    check(calls_of(sojourn, database, "in_child") == CALLS and summary["lost_calls"] == 0, f"{summary}")
    found = sojourn.run(["zombies", "show", "1", database], capture_output=True, text=True).stdout
    check("use_freed" in found and "be_child" in found, f"what the child used: {found}")
    check_accounts(sojourn, database)


def test(sojourn, arguments):
    test_locked(sojourn, arguments[0])


if __name__ == "__main__":
    main(test)
