"""Attaching to a running Mono program, again and again: its methods are recorded, the program does
what it would have done, and of the agent two pages stay."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import mappings, start_attach
from sojourn_testing import check, check_accounts, main

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "mono")
CALLS = """SELECT f.name, c.ending, count(*) AS calls FROM calls c JOIN functions f USING (function_id)
           WHERE f.name LIKE 'Work:%' GROUP BY 1, 2"""


class Program:
    """The sample: answers each line that it is told."""

    def __init__(self, program, options=()):
        self.process = subprocess.Popen(["mono", *options, program], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        check(self.process.stdout.readline() == "ready\n", "the program did not start")

    def tell(self, what, times, answer=None):
        self.process.stdin.write(f"{what} {times}\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        check(said == f"{what} {times if answer is None else answer}\n", f"{what} {times}: {said}")

    def finish(self):
        self.process.stdin.close()
        check(self.process.wait(60) == 5, f"it ended with {self.process.returncode}")


def leave(recorder):
    recorder.send_signal(signal.SIGINT)
    output, errors = recorder.communicate(timeout=60)
    check(recorder.returncode == 0, f"attach ended with {recorder.returncode}: {output}{errors}")


def recorded(sojourn, database):
    check_accounts(sojourn, database)
    return {(row["name"], row["ending"]): row["calls"] for row in sojourn.sql(database, CALLS)}


def check_left(pid, rounds):
    ours = [path for _, _, _, path in mappings(pid) if "libsojourn" in path or ".arena" in path]
    check(not ours, f"mapped after round {rounds}: {ours}")


def count_of_pages(pid):
    """Pages of trampolines that stay: executable ones that belong to no file."""
    return sum(high - low for low, high, protection, path in mappings(pid)
               if path == "" and protection.startswith("r-x")) // 4096


def methods_compiled_meanwhile(sojourn, program):
    """The second recording finds methods that were compiled with probes for the first."""
    for round_, (late, throws) in enumerate(((4, 3), (6, 2), (1, 5))):
        database = sojourn.path(f"round{round_}.db")
        recorder = start_attach(sojourn, program.pid, database)
        program.tell("late", late)
        program.tell("throw", throws)
        program.tell("collect", 1)
        leave(recorder)
        check_left(program.pid, round_)
        check(count_of_pages(program.pid) == 1, f"{count_of_pages(program.pid)} pages stay")
        found = recorded(sojourn, database)
        wanted = {("Work:Late(int)", "returned"): late + 1, ("Work:Clean()", "returned"): throws,
                  ("Work:Throws(int)", "unwound"): throws + 1}
        check(found == wanted, f"round {round_} recorded {found}")
        program.tell("late", 9)


def test(sojourn, _arguments):
    path = sojourn.path("Attached.exe")
    subprocess.run(["mcs", os.path.join(SAMPLES, "Attached.cs"), f"-out:{path}"], check=True, timeout=300)
    program = Program(path)
    methods_compiled_meanwhile(sojourn, program)
    program.finish()


if __name__ == "__main__":
    main(test)
