"""A process whose threads load and unload libraries without a pause is attached to, again and again."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, main


def test(sojourn, arguments):
    program, plugin = arguments
    copies = [shutil.copy(plugin, sojourn.path(f"plugin{number}.so")) for number in range(8)]
    process = subprocess.Popen([program, *copies], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)
    check(process.stdout.readline() == "loading\n", "the sample did not start")
    for number in range(5):
        database = sojourn.path(f"{number}.db")
        done = sojourn.run(["attach", "-q", "--for", "300ms", "-o", database, str(process.pid)],
                           capture_output=True, text=True)
        check(done.returncode == 0, f"attach {number}: {done.returncode}, {done.stderr!r}")
        calls = sojourn.sql(database, "SELECT stored_calls FROM sessions")[0]["stored_calls"]
        check(calls > 0, f"attach {number} recorded nothing")
    output, _ = process.communicate("\n", timeout=120)
    check((process.returncode, output) == (0, "fine\n"),
          f"the program ended with {process.returncode}, {output!r}")


main(test)
