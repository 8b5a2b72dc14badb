#!/usr/bin/env python3
"""A child that was forked in a signal handler waits for room as any process does: with the smallest
buffer, none of its calls is lost. forked_in_handler.py BUILD_FOLDER SAMPLE"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

CALLS = 400000


def test(sojourn, arguments):
    database = sojourn.path("forked.db")
    done, summary = sojourn.record([arguments[0], str(CALLS)], database,
                                   ["--buffer", "1", "--block-ms", "10000"])
    check(done.returncode == 0, f"ended with {done.returncode}: {done.stderr.decode()}")
    check(summary["lost_calls"] == summary["lost_events"] == 0, f"lost: {summary}")
    check_accounts(sojourn, database)
    calls = sojourn.sql(database, "SELECT sum(s.calls) AS calls FROM function_stats AS s JOIN functions "
                                  "AS f USING (function_id) WHERE f.name = 'forked_leaf'")[0]["calls"]
    check(calls == CALLS, f"{calls} calls of forked_leaf")
    print(f"{calls} calls")


if __name__ == "__main__":
    main(test)
