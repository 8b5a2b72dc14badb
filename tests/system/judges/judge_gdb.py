#!/usr/bin/env python3
"""Debian's gdb: C++, stripped, with worker threads. Each error that it reports is an exception thrown through many
of its frames. It reads symbols, debugs a program and prints the same with all of its functions hooked. judge_gdb.py
BUILD_FOLDER; SJ_LONG=1: more errors, 20 times"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from judging import IS_LONG, REPEATS, check_session, need, run_both
from sojourn_testing import check, main

ERRORS = ["print nosuch", "list nofunc", "print 1 +", "print (char)", "x/i nosuch", "info scope nowhere",
          "ptype struct absent", "break nowhere:12", "frame 9", "print $nosuchreg + *0"]
QUIET = ["set print thread-events off", "set confirm off",
         "set pagination off", "set debuginfod enabled off", "set breakpoint pending off"]


def one_round(sojourn):
    samples = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests/samples/gcc-O2")
    words = [*QUIET, *ERRORS * (20 if IS_LONG else 5), "info functions throw", "break main", "run 3", "backtrace", *ERRORS,
             "info line main", "continue", "print 6 * 7"]
    command = ["gdb", "-nx", "-batch", *(part for word in words for part in ("-ex", word)),
               os.path.join(samples, "throws")]
    database = sojourn.path("gdb.db")
    # A batch ends at its first error, unless the commands are given one by one, as here.
    plain = run_both(sojourn, "gdb", command, ("gdb", "libstdc++*"), database,
                     # gdb's program is recorded, too. The variables that the agent removed from its environment had
                     # been above the stack.
                     [(r"process \d+", "process N"), (r"LWP \d+", "LWP N"), (r"words=0x[0-9a-f]+", "words=N")])
    check("$1 = 42" in plain[1] and "Breakpoint 1" in plain[1], f"gdb did not work: {plain[1][-500:]}")
    told = sojourn.sql(database, "SELECT (SELECT sum(unwound) FROM function_stats) AS unwound, "
                       "(SELECT count(*) FROM threads) AS threads")[0]
    check(told["unwound"] > 1000, f"exceptions ended {told['unwound']} calls only")
    check(told["threads"] > 2, f"{told['threads']} threads")
    print(f"gdb: {check_session(sojourn, database, 2)} calls, {told}", flush=True)
    os.unlink(database)


def test(sojourn, _):
    need("gdb")
    for _ in range(REPEATS):
        one_round(sojourn)


if __name__ == "__main__":
    main(test)
