#!/usr/bin/env python3
"""Detaches while threads of the process wait in the agent for free chunks. The detach waits for the threads, and
nothing stays mapped.

attach_slow_drain.py BUILD_FOLDER SAMPLE
"""
import ctypes
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target
from sojourn_testing import PATIENCE_S, check, check_accounts, main, wait_for

PTRACE_PEEKUSER, PTRACE_CONT, PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 3, 7, 17, 0x4206, 0x4207
ANY_CHILD = 0x40000000
ORIG_RAX = 15 * 8
SLEEPS = {35, 230}  # nanosleep, clock_nanosleep
WAIT_MS = 3000  # longer than all attempts of one step of a detach take


class FrozenDrain:
    """Stops the recorder's thread that reads the records. The thread is stopped while it sleeps because there are no
    records, so it holds no lock. All other threads keep running. A thread that is stopped in pthread_cond_wait could
    block a thread that signals."""

    def __init__(self, pid):
        self.libc = ctypes.CDLL(None)
        self.libc.ptrace.restype = ctypes.c_long
        drains = [int(tid) for tid in os.listdir(f"/proc/{pid}/task") if name_of(pid, tid) == "drain"]
        check(len(drains) == 1, f"the recorder has {len(drains)} threads that read records")
        self.tid = drains[0]
        check(self.libc.ptrace(PTRACE_SEIZE, self.tid, None, None) == 0, "the recorder is traced already")
        wait_for("the thread that reads records sleeps", self.is_stopped_asleep)

    def is_stopped_asleep(self):
        self.libc.ptrace(PTRACE_INTERRUPT, self.tid, None, None)
        os.waitpid(self.tid, ANY_CHILD)
        if self.libc.ptrace(PTRACE_PEEKUSER, self.tid, ctypes.c_void_p(ORIG_RAX), None) in SLEEPS:
            return True
        self.libc.ptrace(PTRACE_CONT, self.tid, None, None)
        return False

    def run_on(self):
        self.libc.ptrace(PTRACE_DETACH, self.tid, None, None)


def name_of(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as file:
        return file.read().strip()


def waits(pid):
    """True if a thread is in the agent's futex call, which lasts some milliseconds at a time."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/wchan", encoding="ascii") as file:
                if "futex" in file.read():
                    return True
        except FileNotFoundError:
            pass
    return False


def has_agent(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        return "libsojourn-agent" in file.read()


def test(sojourn, arguments):
    database, summary = sojourn.path("left.db"), sojourn.path("left.json")
    target = Target(arguments[:1]).ready()
    recorder = subprocess.Popen([sojourn.program, "attach", "-q", "-o", database, "--summary", summary, "--buffer", "1",
                                 "--block-ms", str(WAIT_MS), str(target.pid)], env=sojourn.environment,
                                stderr=subprocess.DEVNULL)
    wait_for("the process is recorded", lambda: sojourn.sql_once_made(database, "SELECT 1 FROM streams LIMIT 1"))
    os.kill(target.pid, signal.SIGSTOP)  # so that no records are left to read
    frozen = FrozenDrain(recorder.pid)
    os.kill(target.pid, signal.SIGCONT)
    try:
        wait_for("the threads wait for room", lambda: target.work() == target.work() and waits(target.pid))
        os.kill(recorder.pid, signal.SIGINT)
        wait_for("the agent is unloaded", lambda: not has_agent(target.pid))
    finally:
        frozen.run_on()
    check(recorder.wait(timeout=PATIENCE_S) == 0, "the recorder failed")
    with open(summary, encoding="utf-8") as file:
        check(json.load(file)["left_bytes"] == 0, "something was left")
    check_accounts(sojourn, database)
    check(target.finish()[0] == 0, "the program failed")


main(test)
