#!/usr/bin/env python3
"""A child ends normally if a signal handler has forked it while its thread waited for the plan of a module that it
loads. forked_in_loader.py BUILD_FOLDER SAMPLE"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

LARGE = "libcrypto.so.3"  # planning it takes longer than any other reply


def test(sojourn, arguments):
    for children in ("all", "none"):
        database = sojourn.path(f"{children}.db")
        sojourn.environment["XDG_CACHE_HOME"] = sojourn.path(f"cache-{children}")  # no plan is ready
        done, _ = sojourn.record([arguments[0], LARGE], database, ["--libs", "--children", children])
        check(done.returncode == 0, f"{children}: ended with {done.returncode}: {done.stdout} {done.stderr.decode()}")
        check(not done.stdout.startswith(b"0 forks"), f"{children}: no fork in the conversation: {done.stdout}")
        check_accounts(sojourn, database)


if __name__ == "__main__":
    main(test)
