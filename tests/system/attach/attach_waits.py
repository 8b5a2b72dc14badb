"""Attaches to a process whose threads wait in system calls, changes what is recorded, and leaves, again and again. No
wait ends with EINTR.

attach_waits.py BUILD_FOLDER SAMPLE
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, attach, check_left, code_bytes, set_policy, start_attach
from sojourn_testing import PATIENCE_S, check, main

ROUNDS = 20
CALLS = 13


def change_while_recording(sojourn, pid):
    """Adds a function to a running recording, removes it, and ends the recording."""
    recorder = start_attach(sojourn, pid, sojourn.path("changed.db"), ["--function", "count_wait"])
    set_policy(sojourn, pid, "--function", "count_wait", "--function", "wait_*")
    set_policy(sojourn, pid, "--function", "count_wait")
    recorder.send_signal(signal.SIGINT)
    output = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"the recorder: {recorder.returncode}, {output}")


def test(sojourn, arguments):
    target = Target([arguments[0]]).ready()
    code = code_bytes(target.pid)
    for i in range(ROUNDS):
        done, summary = attach(sojourn, target.pid, sojourn.path(f"run-{i}.db"), ["--for", "15ms"])
        check(done.returncode == 0 and summary, f"round {i}: {done}")
        check(summary["left_bytes"] == 0, f"round {i}: {summary}")
    change_while_recording(sojourn, target.pid)
    check_left(code, target.pid, "the program that waits")
    status, output = target.finish()
    check(status == 0, f"the program: {status}, {output}")
    rows = [line.split() for line in output.splitlines()]
    check(len(rows) == CALLS, f"not all calls are reported: {output}")
    for name, waits, interrupted, mistakes in rows:
        check(int(waits) > 0, f"{name} never waited: {output}")
        check(interrupted == "0" and mistakes == "0", f"{name} was interrupted: {output}")
    print(output)


main(test)
