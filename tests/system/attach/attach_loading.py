"""Attaches twice (SJ_LONG=1: ten times) to a process whose threads load and unload libraries without a pause."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import attach_until
from sojourn_testing import IS_LONG, PATIENCE_S, check, main


def test(sojourn, arguments):
    program, plugin = arguments
    copies = [shutil.copy(plugin, sojourn.path(f"plugin{number}.so")) for number in range(8)]
    process = subprocess.Popen([program, *copies], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)
    check(process.stdout.readline() == "loading\n", "the sample did not start")
    for number in range(10 if IS_LONG else 2):
        database = sojourn.path(f"{number}.db")
        attach_until(sojourn, process.pid, database, lambda summary: summary["calls"] > 0)
    output, _ = process.communicate("\n", timeout=PATIENCE_S)
    check((process.returncode, output) == (0, "fine\n"),
          f"the program ended with {process.returncode}, {output!r}")


main(test)
