#!/usr/bin/env python3
"""Programs that cannot be watched for uses of freed memory run as ever, and the account says why.
heap_refusals.py BUILD_FOLDER SAMPLES"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, main

WATCH = ["--profile", "--zombies", "heap"]
WHY = "SELECT DISTINCT not_watched FROM zombie_accounts"


def compare(sojourn, command, name, reason, **environment):
    """Same output and status as without Sojourn; `reason` None: not recorded at all."""
    database = sojourn.path(f"{name}.db")
    wrapped = ["env", *(f"{key}={value}" for key, value in environment.items()), *command]
    plain = subprocess.run(wrapped, capture_output=True, check=False)
    done, _ = sojourn.record(wrapped, database, WATCH)
    check((done.returncode, done.stdout) == (plain.returncode, plain.stdout), f"{name}: {done}, not {plain}")
    found = {row["not_watched"] for row in sojourn.sql(database, WHY)}
    check(reason is None or any(reason in text for text in found), f"{name}: {found}")
    return found


def test(sojourn, arguments):
    sample = [os.path.join(arguments[0], "gcc-O2", "heap"), "0"]
    compare(sojourn, ["valgrind", "-q", *sample], "valgrind", None)
    sanitized = sojourn.path("sanitized")
    subprocess.run(["gcc", "-O1", "-w", "-fsanitize=address", "-pthread", "-o", sanitized,
                    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "zombies",
                                 "heap.c")], check=True)
    compare(sojourn, [sanitized, "0"], "sanitizer", None)


if __name__ == "__main__":
    main(test)
