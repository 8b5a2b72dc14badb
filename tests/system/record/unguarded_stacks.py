"""Threads have stacks without guard pages, so their mappings adjoin. The threads keep running under a recorder that
makes them wait. The recorder reads no page that another thread has protected."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

CALLS = 4 * 3000000


def test(sojourn, arguments):
    for number in range(3):
        database = sojourn.path(f"{number}.db")
        done, _ = sojourn.record([arguments[0]], database, ["--buffer", "1"], text=True)
        check((done.returncode, done.stdout) == (0, f"calls {CALLS}\n"),
              f"the program ended with {done.returncode}, {done.stdout!r}")
        check_accounts(sojourn, database)
        waited = sojourn.sql(database, "SELECT sum(waited_ns) AS ns FROM threads")[0]["ns"]
        check(waited > 0, "no thread had to wait: the test shows nothing")


main(test)
