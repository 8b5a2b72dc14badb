#!/usr/bin/env python3
"""Measures how long commands and questions take on a large recording: seconds of CPU and of waiting, median
and range of the rounds, and the most memory.

first_screen.py BUILD_FOLDER DATABASE [ROUNDS]

The database is one session of 100 M calls in some 13 s, as of
`sojourn record -o big.db -- lua5.4 tests/bench/workloads/lua.lua 8`.
"""
import os
import statistics
import subprocess
import sys
import time

JOINED = ("SELECT f.name, c.duration_ns FROM calls c JOIN functions f USING (function_id) "
          "ORDER BY c.duration_ns DESC LIMIT 10")
WINDOW = ["--from", "5s", "--to", "5.01s"]
SECOND = ["--from", "5s", "--to", "6s"]
HALF = ["--from", "3s", "--to", "9.5s"]
COMMANDS = {
    "report": ["report", "--limit", "20"],
    "tree": ["tree"],
    "replay of 50 calls at 5 s": ["replay", "--from", "5s", "--count", "50"],
    "report of 10 ms": ["report", *WINDOW],
    "tree of 10 ms": ["tree", *WINDOW],
    "replay of 50 calls, of 1 s": ["replay", *SECOND, "--count", "50"],
    "report of 1 s": ["report", *SECOND],
    "tree of 1 s": ["tree", *SECOND],
    "report of half the session": ["report", *HALF],
    "tree of half the session": ["tree", *HALF],
    "report --waiting": ["report", "--waiting", "--limit", "20"],
    "tree --waiting": ["tree", "--waiting"],
    "the 10 longest calls, joined": ["sql", JOINED],
    "slowest_calls": ["sql", "--query", "slowest_calls"],
    "calls that overlap 10 us": ["sql", "SELECT count(*) FROM calls WHERE start_ns < 5000010000 "
                                        "AND end_ns > 5000000000"],
    "calls longer than 10 ms": ["sql", "SELECT count(*) FROM calls WHERE duration_ns > 10000000"],
    "calls longer than 1 ms": ["sql", "SELECT count(*) FROM calls WHERE duration_ns > 1000000"],
    "call_aggregate": ["sql", "SELECT sum(calls) FROM call_aggregate(1)"],
}


def measure(program, words, database):
    start = time.perf_counter()
    child = subprocess.Popen([program, *words, database], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    waited = time.perf_counter() - start
    if child.returncode != 0:
        sys.exit(f"{words} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime, waited, usage.ru_maxrss / 1024


def main():
    program = os.path.join(sys.argv[1], "bin", "sojourn")
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 7
    print("| question | CPU, s (range) | wall, s (range) | MB |\n|---|---|---|---|")
    for name, words in COMMANDS.items():
        found = [measure(program, words, sys.argv[2]) for _ in range(rounds)]
        cpu, wall, memory = zip(*found)
        print(f"| {name} | {statistics.median(cpu):.3f} ({min(cpu):.3f} to {max(cpu):.3f}) | "
              f"{statistics.median(wall):.3f} ({min(wall):.3f} to {max(wall):.3f}) | "
              f"{max(memory):.0f} |")


main()
