#!/usr/bin/env python3
"""Memory of threads: the bytes that each thread allocates and frees equal the program's count in its own malloc,
whichever functions are recorded. They are stored by thread, by step and by block. Memory of forked children does not
count for their parent. Without the option nothing is stored.

thread_memory.py BUILD_FOLDER
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main, sample_text

THREADS = 4
SOURCE = sample_text("record/thread_memory.c")
NAMES = ("malloc_allocations", "malloc_bytes", "malloc_frees", "malloc_freed_bytes")


def record(sojourn, program, options):
    database = sojourn.path("threads.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    done, _ = sojourn.record([program], database, options, text=True)
    check(done.returncode == 0, f"{options}: {done.stderr}")
    check_accounts(sojourn, database)
    said = {int(words[0]): [int(word) for word in words[1:]] for words in map(str.split, done.stdout.splitlines())}
    check(len(said) == THREADS, f"{done.stdout}")
    return database, said


def test_counted(sojourn, program, options):
    database, said = record(sojourn, program, options)
    rows = {row["tid"]: row for row in sojourn.sql(database, "SELECT * FROM threads")}
    for tid, counted in said.items():
        told = [rows[tid][name] for name in NAMES]
        check(told == counted, f"{options}, thread {tid}: {told}, counted {counted}")
    steps = sojourn.sql(database, """
        SELECT t.tid, sum(x.allocations) AS allocations, sum(x.allocated_bytes) AS bytes, sum(x.frees) AS frees,
               count(*) AS n, count(x.allocations) AS known
        FROM thread_times AS x JOIN threads AS t ON t.session_id = x.session_id AND t.number = x.thread_number
        GROUP BY t.tid""")
    for row in steps:
        if row["tid"] in said:
            check(row["known"] == row["n"], f"steps without counts: {row}")
            check(row["allocations"] <= said[row["tid"]][0] and row["bytes"] <= said[row["tid"]][1] and
                  row["frees"] <= said[row["tid"]][2], f"steps count more than there was: {row}")
    blocks = sojourn.run(["sql", "--json", "--query", "block_costs", database], capture_output=True, text=True)
    check(blocks.returncode == 0, blocks.stderr)
    return len(steps)


def test_unasked(sojourn, program):
    database, _ = record(sojourn, program, [])
    found = sojourn.sql(database, "SELECT count(malloc_allocations) AS t FROM threads")[0]["t"]
    steps = sojourn.sql(database, "SELECT count(allocations) AS n FROM thread_times")[0]["n"]
    check(found == 0 and steps == 0, f"unasked: {found} threads, {steps} steps")


def test(sojourn, arguments):
    program = sojourn.path("threads")
    with open(program + ".c", "w", encoding="utf-8") as file:
        file.write(SOURCE)
    subprocess.run(["gcc", "-O2", "-g", "-w", "-fno-builtin", "-D_GNU_SOURCE", f"-DTHREADS={THREADS}", "-rdynamic",
                    program + ".c", "-pthread", "-o", program], check=True)
    steps = test_counted(sojourn, program, ["--thread-memory"])
    test_counted(sojourn, program, ["--memory", "thm_work"])
    test_counted(sojourn, program, ["--thread-memory", "--function", "run", "--mode", "profile"])
    test_unasked(sojourn, program)
    print(f"{THREADS} threads, {steps} with steps")


if __name__ == "__main__":
    main(test)
