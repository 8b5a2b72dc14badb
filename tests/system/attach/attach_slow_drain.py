#!/usr/bin/env python3
"""A process is left while its threads wait in the agent for room: leaving waits for them, and nothing stays mapped.

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
ORIG_RAX, RSI = 15 * 8, 13 * 8
WAITING_CALLS = {7, 23, 35, 230, 232, 270, 271, 281}  # poll, select, nanosleep, epoll_wait and their kind
FUTEX, FUTEX_COMMAND_MASK, FUTEX_WAIT_BITSET = 202, 0x7f, 9
WAIT_MS = 3000  # longer than all attempts of one step of leaving would take


class Frozen:
    """Stops all threads of the recorder but the first, which traces: no thread reads the records. Each stopped thread
    holds no lock, because it sleeps or waits for a condition variable."""

    def __init__(self, pid):
        self.libc = ctypes.CDLL(None)
        self.libc.ptrace.restype = ctypes.c_long
        self.tids = [int(tid) for tid in os.listdir(f"/proc/{pid}/task") if int(tid) != pid]
        for tid in self.tids:
            check(self.libc.ptrace(PTRACE_SEIZE, tid, None, None) == 0, "the recorder is traced already")
            wait_for("a thread of the recorder waits", lambda tid=tid: self.is_stopped_waiting(tid))

    def is_stopped_waiting(self, tid):
        self.libc.ptrace(PTRACE_INTERRUPT, tid, None, None)
        os.waitpid(tid, ANY_CHILD)
        call = self.read_register(tid, ORIG_RAX)
        # The C library waits for a mutex by FUTEX_WAIT, and may hold another one meanwhile.
        if call in WAITING_CALLS or (call == FUTEX and
                                     self.read_register(tid, RSI) & FUTEX_COMMAND_MASK == FUTEX_WAIT_BITSET):
            return True
        self.libc.ptrace(PTRACE_CONT, tid, None, None)
        return False

    def read_register(self, tid, offset):
        return self.libc.ptrace(PTRACE_PEEKUSER, tid, ctypes.c_void_p(offset), None)

    def run_on(self):
        for tid in self.tids:
            self.libc.ptrace(PTRACE_DETACH, tid, None, None)


def waits(pid):
    """Whether a thread is in the futex call of the agent's, for some milliseconds at a time."""
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
    frozen = Frozen(recorder.pid)
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
