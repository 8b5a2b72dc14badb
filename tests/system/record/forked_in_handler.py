#!/usr/bin/env python3
"""A child that was forked in a signal handler waits for free chunks as every process does. With the smallest
buffer, none of its calls is lost. A child that returns from the handler keeps running, also if the handler
interrupted a wait or a probe of its parent. The parent loses only events of its handlers. forked_in_handler.py BUILD_FOLDER SAMPLE"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

CALLS = 400000
RETURNING_CALLS = 100000
FORKS = 8
PROBE_FORKS = 60
EVENTS_OF_HANDLER = 2


def calls_of_leaf(sojourn, database):
    return sojourn.sql(database, "SELECT sum(s.calls) AS calls FROM function_stats AS s JOIN functions "
                                 "AS f USING (function_id) WHERE f.name = 'forked_leaf'")[0]["calls"]


def test_inside(sojourn, program):
    database = sojourn.path("forked.db")
    done, summary = sojourn.record([program, str(CALLS)], database, ["--buffer", "1", "--block-ms", "10000"])
    check(done.returncode == 0, f"ended with {done.returncode}: {done.stderr.decode()}")
    check(summary["lost_calls"] == summary["lost_events"] == 0, f"lost: {summary}")
    check_accounts(sojourn, database)
    calls = calls_of_leaf(sojourn, database)
    check(calls == CALLS, f"{calls} calls of forked_leaf")
    print(f"{calls} calls")


def test_returning(sojourn, program, children):
    """The main thread waits most of the time, so the handlers usually fork during a wait."""
    database = sojourn.path(f"returning-{children}.db")
    done, summary = sojourn.record([program, str(RETURNING_CALLS), str(FORKS)], database,
                                   ["--buffer", "1", "--block-ms", "10000", "--children", children])
    check(done.returncode == 0, f"{children}: ended with {done.returncode}: {done.stdout} {done.stderr.decode()}")
    check(summary["lost_events"] <= EVENTS_OF_HANDLER * FORKS, f"{children}: lost {summary}")
    check_accounts(sojourn, database)


def test_probes(sojourn, program, children):
    """The main thread never waits, so the handlers usually interrupt a probe or the program."""
    database = sojourn.path(f"probes-{children}.db")
    done, _ = sojourn.record([program, "1000", str(PROBE_FORKS)], database,
                             ["--when-full", "drop", "--children", children])
    check(done.returncode == 0, f"{children}: ended with {done.returncode}: {done.stdout} {done.stderr.decode()}")
    check_accounts(sojourn, database)


def test(sojourn, arguments):
    test_inside(sojourn, arguments[0])
    test_returning(sojourn, arguments[0], "all")
    test_returning(sojourn, arguments[0], "none")
    test_probes(sojourn, arguments[0], "all")
    test_probes(sojourn, arguments[0], "none")


if __name__ == "__main__":
    main(test)
