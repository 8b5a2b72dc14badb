"""A program that forbids itself system calls (seccomp) keeps running under the recorder. From then on the agent
makes no system call, drops calls where it would wait, and every call is stored or counted as lost. Before strict
mode, which forbids reading the clock, the agent leaves a program of one thread. Strict mode is refused beside other
threads, and in a process that was attached to."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, start_attach
from sojourn_testing import PATIENCE_S, check, check_accounts, main

CALLS = 8001000


def record(sojourn, sample, how, options=()):
    database = sojourn.path(f"{how}{len(options)}.db")
    done, told = sojourn.record([sample, how], database, options, text=True)
    check_accounts(sojourn, database)
    reasons = sojourn.sql(database, "SELECT disarm_reason FROM processes")
    check(reasons == [{"disarm_reason": "confined"}], f"{how}: reported: {reasons}")
    stored = sojourn.sql(database, "SELECT stored_calls FROM sessions")[0]["stored_calls"]
    return database, done, stored, told["lost_calls"]


def filters(sojourn, sample, how, options):
    database, done, stored, lost = record(sojourn, sample, how, options)
    check((done.returncode, done.stdout) == (0, f"calls {CALLS}\n"),
          f"{how} {options}: the program ended with {done.returncode}, {done.stdout!r}")
    # The program's calls, those of main and of the other functions, are stored or counted as lost.
    check(stored > 0 and stored + lost >= CALLS, f"{how}: {stored} calls stored, {lost} lost")
    threads = sojourn.sql(database, "SELECT count(*) AS n FROM threads")[0]["n"]
    check(threads == 2, f"{how}: {threads} threads")


def forks(sojourn, sample):
    """The agent in a forked child makes no system call either."""
    for options in ([], ["--zombies", "heap"]):
        database, done, stored, lost = record(sojourn, sample, "fork", options)
        check((done.returncode, done.stdout) == (0, f"calls {CALLS}\n"),
              f"fork {options}: the program ended with {done.returncode}, {done.stdout!r}")
        check(stored + lost >= CALLS - 1000, f"fork: {stored} calls stored, {lost} lost")
        _, told = sojourn.record([sample, "fork"], sojourn.path("told.db"), options)
        check(list(told["unrecorded_programs"].values()) == [1], f"fork: reported: {told}")


def strict(sojourn, sample):
    _, done, stored, lost = record(sojourn, sample, "strict")
    check((done.returncode, done.stdout) == (0, f"calls {CALLS}\n"),
          f"the strict program ended with {done.returncode}, {done.stdout!r}")
    check(lost == 0 and stored >= 1000, f"strict mode: {stored} calls stored, {lost} lost")
    done, _ = sojourn.record([sample, "strict-threads"], sojourn.path("refused.db"), text=True)
    check((done.returncode, done.stdout) == (4, "refused\n"),
          f"strict mode beside a thread: {done.returncode}, {done.stdout!r}")


def strict_attached(sojourn, sample):
    """The process cannot restore what the tracer wrote, and reading the clock would end the program."""
    target = Target([sample, "strict-told"]).ready()
    database = sojourn.path("attached.db")
    recorder = start_attach(sojourn, target.pid, database)
    target.process.stdin.write("g")
    check(target.finish() == (4, "refused\n"), "strict mode after an attach is not refused")
    check(recorder.wait(PATIENCE_S) == 0, "the recorder failed")
    check_accounts(sojourn, database)


def test(sojourn, arguments):
    filters(sojourn, arguments[0], "seccomp", [])
    filters(sojourn, arguments[0], "seccomp", ["--buffer", "1"])
    filters(sojourn, arguments[0], "prctl", [])
    forks(sojourn, arguments[0])
    strict(sojourn, arguments[0])
    strict_attached(sojourn, arguments[0])


main(test)
