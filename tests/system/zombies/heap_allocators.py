#!/usr/bin/env python3
"""Watches the functions of other allocators than the C library's: jemalloc, tcmalloc and the program's own. Finds
blocks that a function of another family frees.

heap_allocators.py BUILD_FOLDER SAMPLES
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, main

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "zombies")
ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}
FOUND = ("SELECT z.kind, z.used_in, r.size FROM zombie_reports r JOIN zombies z USING (zombie_id)"
         " ORDER BY r.report_id")
ACCOUNT = "SELECT max(guarded) AS guarded, group_concat(DISTINCT not_watched) AS not_watched FROM zombie_accounts"
MISTAKES = {("use_after_free", "read_block", 40), ("double_free", "drop_block", 64),
            ("invalid_free", "drop_block", 64), ("overflow_at_free", "drop_block", 41),
            ("use_after_free", "read_block", 48), ("use_after_free", "read_block", 300)}
MISMATCHED = {("mismatched_free", "delete_malloced(void*)", 40), ("mismatched_free", "free_new(void*)", 50),
              ("mismatched_free", "delete_array(void*)", 60), ("mismatched_free", "delete_one(void*)", 24)}


def watch(sojourn, command, name, library):
    """Watches a program, which behaves as without Sojourn. Returns the findings."""
    database = sojourn.path(f"{name}.db")
    wrapped = ["env", f"LD_PRELOAD={library}", *command] if library else command
    plain = subprocess.run(wrapped, capture_output=True, check=False)
    done, _ = sojourn.record(wrapped, database, ["--profile", "--zombies", "heap"])
    check((done.returncode, done.stdout) == (plain.returncode, plain.stdout), f"{name}: {done}, not {plain}")
    account = sojourn.sql(database, ACCOUNT)[0]
    check(account["not_watched"] == "" and account["guarded"] > 0, f"{name}: {account}")
    return {tuple(row.values()) for row in sojourn.sql(database, FOUND)}


def build(sojourn, compiler, name, source, *options):
    program = sojourn.path(name)
    subprocess.run([compiler, "-O1", "-w", *options, "-o", program, source, "-pthread"], check=True)
    return program


def test(sojourn, arguments):
    heap = os.path.join(arguments[0], "gcc-O2", "heap")
    for name, library in ALLOCATORS.items():
        found = watch(sojourn, [heap, "1", "4", "5", "8", "9", "18"], name, library)
        check(MISTAKES <= found, f"{name}: {MISTAKES - found} not found")
    mismatched = build(sojourn, "g++", "mismatched", os.path.join(SOURCES, "mismatched.cpp"))
    numbers = ["1", "2", "3", "4"]
    found = watch(sojourn, [mismatched, *numbers], "mismatched", None)
    check(found == MISMATCHED, f"{found}")
    found = watch(sojourn, [mismatched, *numbers], "mismatched-jemalloc", ALLOCATORS["jemalloc"])
    check(found == MISMATCHED, f"{found}")
    # In tcmalloc one function frees blocks of malloc, new and new[].
    found = watch(sojourn, [mismatched], "mismatched-tcmalloc", ALLOCATORS["tcmalloc"])
    check(found == set(), f"{found}")
    own = build(sojourn, "gcc", "own", os.path.join(SOURCES, "own_malloc.c"), "-fno-builtin", "-rdynamic")
    found = watch(sojourn, [own], "own", None)
    check(found == {("use_after_free", "read_own", 40)}, f"{found}")
    found = watch(sojourn, ["redis-server", "--version"], "redis", None)
    check(found == set(), f"{found}")


if __name__ == "__main__":
    main(test)
