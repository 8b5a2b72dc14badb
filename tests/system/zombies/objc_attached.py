#!/usr/bin/env python3
"""Keeps freed Objective-C objects in running processes: attached, detached and attached again, or by a policy during
a recording. A detach frees kept objects and restores the program's methods.

objc_attached.py BUILD_FOLDER SAMPLES
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from attaching import Target, check_left, code_bytes, set_policy, start_attach
from objc_messages import MESSAGES, REST, account_of, found_in, write_policy
from sojourn_testing import PATIENCE_S, check, main, wait_for

# Number 36 uses an object that is not kept any more by then.
NUMBERS = [number for number in sorted(MESSAGES) if number != 36]
WATCH = ["--zombies", "objc", *REST]


class Objects(Target):
    """The sample, which runs one numbered command after the other."""

    def __init__(self, command, **options):
        super().__init__(command, **options)
        self.ready()
        self.program = self.pid

    def obey(self, *words):
        for word in words:
            self.process.stdin.write(f"{word}\n")
            self.process.stdin.flush()
            while (line := self.process.stdout.readline()) != f"{word}\n":
                check(line != "" and not line.startswith("wrong") and "not zero" not in line, f"the program did not {word}: {line}")


def leave(recorder, pid):
    recorder.send_signal(signal.SIGINT)
    _, told = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"leaving {pid}: {told}")


def test_attach_and_detach_twice(sojourn, program):
    target = Objects([program, "-"])
    target.obey(0)
    code = code_bytes(target.pid)
    for turn in range(2):
        database = sojourn.path(f"attached-{turn}.db")
        policy = write_policy(sojourn, "attached")
        recorder = start_attach(sojourn, target.pid, database, ["--policy", policy])
        for first in range(0, len(NUMBERS), 12):
            target.obey(0, *NUMBERS[first:first + 12])
            done = min(first + 12, len(NUMBERS))
            wait_for("the reports", lambda: reports_in(sojourn, database) >= done)
        leave(recorder, target.pid)
        found = set(found_in(sojourn, database))
        wanted = {MESSAGES[number] for number in NUMBERS}
        check(found == wanted, f"turn {turn}: missing {wanted - found}, more than planted {found - wanted}")
        account = account_of(sojourn, database)
        check(account["kept"] == account["full"] + account["left"] > 2000, f"turn {turn}: {account}")
        check_left(code, target.pid, f"turn {turn}")
        target.obey(0, -1)
    check(target.finish()[0] == 0, "the program did not end well")


def test_classes_of_every_stage(sojourn, program, options):
    """After a detach, classes have their own or swizzled methods again, whatever state runtime and program were in
    at the attach and at the detach."""
    target = Objects([program])
    target.obey(0)
    for stages in ((1, 2), (3,)):
        recorder = start_attach(sojourn, target.pid, sojourn.path(f"stages-{stages[0]}.db"), options)
        target.obey(stages[0])
        leave(recorder, target.pid)
        target.obey(*stages[1:])
    check(target.finish()[0] == 0, "the program did not end well")


def reports_in(sojourn, database):
    try:
        return len(found_in(sojourn, database))
    except Exception:  # the database is being made
        return 0


class Recorded(Objects):
    """Runs the sample under `record`."""

    def __init__(self, sojourn, program, database, *options):
        super().__init__([sojourn.program, "record", "-q", "-o", database, *options, "--", program, "-"],
                         env=sojourn.environment)
        with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="utf-8") as file:
            self.program = int(file.read().split()[0])


def test_policy(sojourn, program):
    """A policy starts, ends and restarts the keeping of objects, and changes the selected classes."""
    database = sojourn.path("policy.db")
    target = Recorded(sojourn, program, database, *REST)
    target.obey(0)
    answer = set_policy(sojourn, target.program, *WATCH)
    check(answer["not_applied"] == [], f"{answer}")
    target.obey(0, 1, 17)
    set_policy(sojourn, target.program, *REST)
    target.obey(0)
    answer = set_policy(sojourn, target.program, *WATCH, "--zombie-class", "Duckling")
    check(answer["not_applied"] == [], f"{answer}")
    target.obey(0, 23)
    check(target.finish()[0] == 0, "the program did not end well")
    check(set(found_in(sojourn, database)) == {MESSAGES[number] for number in (1, 17, 23)}, "by policy")
    check(account_of(sojourn, database)["kept"] == 2003, f"{account_of(sojourn, database)}")


def test_heap_too(sojourn, program):
    """Watches the heap and objects at the same time."""
    database = sojourn.path("both.db")
    target = Recorded(sojourn, program, database, "--zombies", "heap,objc", *REST)
    target.obey(0, 1, 2)
    check(target.finish()[0] == 0, "the program did not end well")
    found = found_in(sojourn, database)
    check(found == [MESSAGES[1], MESSAGES[2]], f"both: {found}")
    kinds = sojourn.sql(database, "SELECT DISTINCT kind FROM zombies")
    check([row["kind"] for row in kinds] == ["message_to_freed"], f"{kinds}")


def test_shrink(sojourn, program):
    """A command frees the older half of the kept objects while the program sleeps."""
    database = sojourn.path("shrink.db")
    target = Recorded(sojourn, program, database, "--policy", write_policy(sojourn, "shrink"))
    target.obey(0)
    done = sojourn.run(["zombies", "shrink", str(target.program)], capture_output=True, text=True)
    check(done.returncode == 0, f"{done}")
    target.obey(1)
    check(target.finish()[0] == 0, "the program did not end well")
    account = account_of(sojourn, database)
    check(900 <= account["pressure"] <= 1100 and found_in(sojourn, database) == [MESSAGES[1]], f"{account}")


def test_age(sojourn, program):
    """Objects are freed when they are older than the policy allows."""
    database = sojourn.path("age.db")
    target = Recorded(sojourn, program, database, "--policy", write_policy(sojourn, "age", queue={"age": "1ms"}))
    target.obey(0, 0, 0)
    check(target.finish()[0] == 0, "the program did not end well")
    check(account_of(sojourn, database)["old"] > 0, f"{account_of(sojourn, database)}")


def test(sojourn, arguments):
    program = os.path.join(arguments[0], "gcc-O2", "messages")
    test_attach_and_detach_twice(sojourn, program)
    for options in (["--policy", write_policy(sojourn, "stages")], ["--objc", "dispatch"], []):
        test_classes_of_every_stage(sojourn, os.path.join(arguments[0], "gcc-O2", "tables"), options)
    test_policy(sojourn, program)
    test_heap_too(sojourn, program)
    test_shrink(sojourn, program)
    test_age(sojourn, program)


if __name__ == "__main__":
    main(test)
