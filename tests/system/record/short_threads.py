"""Thousands of short-lived threads: at default settings none of their calls is lost. If only one thread can be
recorded at a time, the calls of the others are lost, but each is counted. The summary names the option that allows
more threads, with --quiet, too. SJ_LONG=1 runs 100,000 threads."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

THREADS = 100000 if "SJ_LONG" in os.environ else 20000
BELOW = 67


def calls_of(threads):
    return sum(i % BELOW for i in range(threads))


def record(sojourn, sample, threads, options):
    database = sojourn.path(f"{threads}{''.join(options)}.db")
    done, told = sojourn.record([sample, str(threads)], database, options, text=True)
    check((done.returncode, done.stdout) == (0, f"calls {calls_of(threads)}\n"),
          f"the program ended with {done.returncode}, {done.stdout!r}")
    check_accounts(sojourn, database)
    stored = sojourn.sql(database, "SELECT stored_calls FROM sessions")[0]["stored_calls"]
    # Calls of short_leaf, of the threads' functions and of main.
    check(stored + told["lost_calls"] == calls_of(threads) + threads + 1,
          f"{stored} calls stored, {told['lost_calls']} lost, {calls_of(threads)} + {threads} + 1 made")
    return done, told


def test(sojourn, arguments):
    done, told = record(sojourn, arguments[0], THREADS, [])
    check(told["lost_calls"] == told["lost_events"] == 0, f"lost: {told}")
    check(done.stderr == "", f"told: {done.stderr}")
    done, told = record(sojourn, arguments[0], 6000, ["--threads", "1", "--when-full", "drop"])
    check(told["lost_calls"] > 0 and told["refused_threads"] > 0, f"nothing lost: {told}")
    check(f"lost {told['lost_calls']} calls" in done.stderr and "--threads" in done.stderr,
          f"not reported: {done.stderr}")


main(test)
