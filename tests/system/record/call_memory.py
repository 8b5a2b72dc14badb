#!/usr/bin/env python3
"""Memory of calls: the bytes that each call allocates and frees equal the program's own count by
malloc_usable_size. The test covers all functions of malloc's family, failing ones, mappings, C++ operators, the C
library's own calls, threads and recursion. It runs with the C library's allocator, one that the program defines,
and jemalloc, in started and in attached processes.

call_memory.py BUILD_FOLDER
"""
import ctypes.util
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import attach_until
from sojourn_testing import check, check_accounts, main, sample_text

THREADS, ROUNDS = 3, 40
COMMON = sample_text("record/call_memory.h")
MAIN = sample_text("record/call_memory_main.c")
OBJECTS = sample_text("record/call_memory_objects.cpp")


def build(sojourn, name, flags):
    program = sojourn.path(name)
    common = ["-O2", "-g", "-w", "-fno-builtin"]
    with open(program + ".c", "w", encoding="utf-8") as file:
        file.write(COMMON + MAIN)
    with open(program + ".cc", "w", encoding="utf-8") as file:
        file.write(OBJECTS)
    subprocess.run(["gcc", *common, "-D_GNU_SOURCE", f"-DTHREADS={THREADS}", f"-DROUNDS={ROUNDS}", *flags, "-c",
                    program + ".c", "-o", program + ".o"], check=True)
    more = ["-std=c++17", "-x", "c++", program + ".cc", "-x", "none", "-lstdc++"] if "-DOBJECTS" in flags else []
    subprocess.run(["gcc", *common, "-rdynamic", program + ".o", *more, "-pthread", "-o", program], check=True)
    return program


def compare(sojourn, database, tally):
    """Compares each thread's calls, in order, with what the program has written."""
    compared = 0
    for number in range(THREADS):
        with open(f"{tally}.{number}", encoding="utf-8") as file:
            tid, *lines = file.read().splitlines()
        rows = sojourn.sql(database, f"""
            SELECT f.name, c.allocations, c.allocated_bytes, c.frees, c.freed_bytes, c.net_bytes,
                   c.allocated_self_bytes, k.is_nested, coalesce(a.name GLOB 'mem_*', 0) AS is_below
            FROM calls AS c JOIN functions AS f USING (function_id) JOIN threads AS t USING (thread_id)
            LEFT JOIN functions AS a ON a.function_id = c.caller_function_id
            LEFT JOIN call_costs AS k ON k.session_id = c.session_id AND k.call_id = c.call_id
            WHERE f.name GLOB 'mem_*' AND t.tid = {tid} ORDER BY c.start_ns""")
        outer = [row for row in rows if not row["is_below"]]
        check(len(outer) == len(lines), f"{len(outer)} calls recorded, {len(lines)} counted")
        for row, line in zip(outer, lines):
            *call, allocations, allocated, frees, freed = line.split(" ")
            recorded = [row[name] for name in ("allocations", "allocated_bytes", "frees", "freed_bytes")]
            counted = [int(value) for value in (allocations, allocated, frees, freed)]
            check(recorded == counted, f"thread {number}, {line}: recorded {recorded}")
            check(row["net_bytes"] == counted[1] - counted[3], f"{row}")
            compared += 1
        # The sum of the calls' own memory equals the sum of the outermost calls.
        check(sum(row["allocated_self_bytes"] for row in rows) == sum(row["allocated_bytes"] for row in outer), "self")
    return compared


def recorded(sojourn, program, environment=None):
    database, tally = sojourn.path("memory.db"), sojourn.path("tally")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    done, _ = sojourn.record([program], database, ["--memory", "mem_*"], text=True,
                             env={**os.environ, "TALLY": tally, **(environment or {})})
    check(done.returncode == 0, f"{program} ended with {done.returncode}: {done.stderr}")
    check_accounts(sojourn, database)
    return database, tally


def test_sums(sojourn, database):
    """Sums of recursive functions count the outermost calls. Sums of call paths count each call once."""
    sums = {row["name"]: row for row in sojourn.sql(database, """
        SELECT f.name, k.* FROM function_costs AS k JOIN functions AS f USING (function_id)""")}
    for row in sojourn.sql(database, """
            SELECT f.name, sum(iif(k.is_nested, 0, k.allocations)) AS allocations, sum(k.frees_self) AS frees_self,
                   sum(iif(k.is_nested, 0, k.allocated_bytes - k.freed_bytes)) AS net_bytes, count(*) AS calls,
                   count(k.cpu_ns) AS cpu_calls
            FROM call_costs AS k JOIN functions AS f USING (function_id) GROUP BY f.name"""):
        of = sums[row["name"]]
        check(all(of[name] == row[name] for name in ("calls", "allocations", "frees_self", "net_bytes")), f"{of}, {row}")
        check(row["cpu_calls"] == 0 and of["cpu_ns"] is None, f"CPU time that was not requested: {row}")


def test_attached(sojourn, program):
    """Attaches to a running process and detaches. The process keeps running."""
    database, tally, stop = sojourn.path("attached.db"), sojourn.path("attached"), sojourn.path("stop")
    calls = """SELECT cast(a.value AS INTEGER) AS number, c.allocations, c.allocated_bytes, c.frees, c.freed_bytes
        FROM calls AS c JOIN functions AS f USING (function_id) JOIN arguments AS a ON a.call_id = c.call_id
        WHERE f.name = 'mem_numbered' AND c.allocations IS NOT NULL"""
    with subprocess.Popen([program, stop], env={**sojourn.environment, "TALLY": tally}) as child:
        attach_until(sojourn, child.pid, database, lambda _: len(sojourn.sql(database, calls)) > 20,
                     ["--memory", "mem_*", "--value", "mem_numbered(number:long)"])
        with open(stop, "w", encoding="utf-8"):
            pass
        check(child.wait() == 0, f"the program ended with {child.returncode}")
    with open(tally, encoding="utf-8") as file:
        counted = [[int(value) for value in line.split(" ")[1:]] for line in file]
    rows = sojourn.sql(database, calls)
    for row in rows:
        recorded = [row[name] for name in ("allocations", "allocated_bytes", "frees", "freed_bytes")]
        check(recorded == counted[row["number"]], f"{row}, counted {counted[row['number']]}")
    return len(rows)


def test(sojourn, arguments):
    programs = {"plain": [], "own": ["-DOWN_MALLOC"], "objects": ["-DOWN_MALLOC", "-DOBJECTS"]}
    for name, flags in programs.items():
        database, tally = recorded(sojourn, build(sojourn, name, flags))
        print(f"{name}: {compare(sojourn, database, tally)} calls as the program counts")
        test_sums(sojourn, database)
    jemalloc = ctypes.util.find_library("jemalloc")
    check(jemalloc, "no jemalloc")
    database, tally = recorded(sojourn, sojourn.path("plain"), {"LD_PRELOAD": jemalloc})
    print(f"jemalloc: {compare(sojourn, database, tally)} calls as the program counts")
    print(f"attached: {test_attached(sojourn, sojourn.path('plain'))} calls as the program counts")


if __name__ == "__main__":
    main(test)
