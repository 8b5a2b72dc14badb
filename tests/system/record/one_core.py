#!/usr/bin/env python3
"""Programs of one process share one core with four busy loops. At default settings they print and return the same
as alone, and no call is lost. The short form runs the short programs.

one_core.py BUILD_FOLDER WORKLOADS_FOLDER [NAME] (SJ_LONG=1: all of them)
"""
import contextlib
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, main

BUSY_LOOPS = 4
# Samples, with their arguments.
SHORT = {"ends return": "ends return", "ends exit": "ends exit", "ends segv": "ends segv",
         "ends threads": "ends threads", "recursion": "gcc-O2/s_recursion", "signals": "gcc-O2/s_signal",
         "tail calls": "tail_calls_gcc"}
LONG = {"ends flood": "ends flood", "deep": "gcc-O2/s_deep", "coroutines": "gcc-O2/s_coroutine",
        "indirect": "gcc-O2/s_indirect", "longjmp": "gcc-O2/s_longjmp", "threads": "gcc-O2/s_threads",
        "throw": "gcc-O2/s_throw", "throws": "gcc-O2/throws 100", "life signals": "gcc-O2/life signals",
        "life crowd": "gcc-O2/life crowd", "short threads": "short_threads 5000"}


def programs(sojourn, samples, workloads):
    """Returns (name, command, file that it reads) of each program."""
    is_long = bool(os.environ.get("SJ_LONG"))
    for name, words in {**SHORT, **(LONG if is_long else {})}.items():
        yield name, [os.path.join(samples, words.split()[0]), *words.split()[1:]], None
    yield "awk", ["awk", "BEGIN { for (i = 0; i < 20000; i++) s += length(i \"\"); print s }"], None
    yield "lua", ["lua5.4", "-e", "local n = 0 for i = 1, 20000 do n = n + #tostring(i) end print(n)"], None
    if is_long:
        numbers = sojourn.path("numbers")
        with open(numbers, "w", encoding="ascii") as file:
            file.writelines(f"{i * 7919 % 100003}\n" for i in range(20000))
        yield "lua for long", ["lua5.4", os.path.join(workloads, "lua.lua"), "1"], None
        yield "sqlite3", ["sqlite3", ":memory:"], os.path.join(workloads, "sqlite.sql")
        yield "perl", ["perl", "-e", "my %h; $h{$_ % 97} .= $_ for 1 .. 50000; print length $h{3}"], None
        yield "python", ["/usr/bin/python3", "-c", "print(sum(len(str(i)) for i in range(50000)))"], None
        yield "zstd", ["zstd", "-q", "-12", "-c", numbers], None
        yield "xz", ["xz", "-q", "-6", "-c", numbers], None
        yield "sort", ["sort", "-n", numbers], None
        yield "grep", ["grep", "-c", "-E", "^(1|2)+[0-9]*7$", numbers], None
        yield "openssl", ["openssl", "dgst", "-sha256", numbers], None


@contextlib.contextmanager
def one_core():
    """Binds this process and its children to one core, and starts busy loops on that core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY_LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
        os.sched_setaffinity(0, cores)


def given(path):
    return open(path or os.devnull, "rb")


def one(sojourn, name, command, path, plain):
    database = sojourn.path("one.db")
    options = ["--libs"] if "/" not in command[0] else []
    with given(path) as file:
        done, summary = sojourn.record(command, database, options, stdin=file, timeout=2 * PATIENCE_S)
    check((done.returncode, done.stdout) == plain,
          f"{name} ended with {done.returncode}, and alone with {plain[0]}, or said something else: "
          f"{done.stderr.decode()}")
    check(done.stderr == b"", f"{name}: {done.stderr.decode()}")
    check_accounts(sojourn, database)
    check(summary["lost_calls"] == summary["lost_events"] == 0 and summary["calls"] > 0,
          f"{name}: {summary}")
    print(f"{name}: {summary['calls']} calls", flush=True)
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)


def run_alone(command, path):
    with given(path) as file:
        done = subprocess.run(command, stdin=file, capture_output=True, timeout=PATIENCE_S, check=False)
    # A shell returns this exit code for a program that a signal ended.
    return done.returncode if done.returncode >= 0 else 128 - done.returncode, done.stdout


def test(sojourn, arguments):
    samples = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests/samples")
    chosen = [each for each in programs(sojourn, samples, arguments[0])
              if len(arguments) < 2 or arguments[1] in each[0]]
    alone = [run_alone(command, path) for _, command, path in chosen]
    with one_core():
        for (name, command, path), plain in zip(chosen, alone):
            one(sojourn, name, command, path, plain)
    print(f"{len(chosen)} programs")


if __name__ == "__main__":
    main(test)
