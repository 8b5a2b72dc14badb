"""A debugger steps through a recorded program and detaches. The program keeps running: flags that were saved while
the debugger stepped do not set the trap flag again when they are restored."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main


def test(sojourn, arguments):
    database = sojourn.path("stepped.db")
    done, _ = sojourn.record([arguments[0]], database, text=True)
    check((done.returncode, done.stdout) == (0, "lived on 4 times\n"),
          f"the program ended with {done.returncode}, {done.stdout!r}")
    check_accounts(sojourn, database)


main(test)
