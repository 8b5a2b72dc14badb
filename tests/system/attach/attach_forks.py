"""A child that is forked while the recorder plans for an attach or a changed policy can walk the loader's list.

attach_forks.py BUILD_FOLDER SAMPLE
"""
import contextlib
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, let_work, wait_until_recorded
from sojourn_testing import PATIENCE_S, check, main, wait_for

RECVFROM = "45 "
TRIES = 20


def state_of(pid, tid):
    """Returns the letter of the thread's state, or nothing if it has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8") as file:
        return file.read().rsplit(") ", 1)[1][0]
    return ""


def is_asking(pid):
    """True if a thread of the process sleeps until the recorder replies. The program itself receives nothing."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
            if file.read().startswith(RECVFROM) and state_of(pid, tid) == "S":
                return True
    return False


def runs_freely(pid):
    """True if no thread of the process is stopped by its tracer. A stopped recorder would keep it so."""
    return "t" not in {state_of(pid, tid) for tid in os.listdir(f"/proc/{pid}/task")}


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    wait_for("the recorder stops", lambda: {state_of(pid, tid) for tid in os.listdir(f"/proc/{pid}/task")} <= {"T", ""})


def hold_reply(target, recorder, is_over):
    """Stops the recorder in the middle of a reply, until more children of the program have ended. Returns false if the
    program has not been seen to wait for a reply."""
    while not is_over():
        if is_asking(target.pid):
            stop(recorder.pid)
            held = is_asking(target.pid) and runs_freely(target.pid)
            if held:
                let_work(target.process, rounds=2)  # the second one is forked meanwhile
            recorder.send_signal(signal.SIGCONT)
            if held:
                return True
    return False


def attach_and_change(sojourn, target, number):
    """Returns whether a reply was held during the attach, and during a change of the policy."""
    sojourn.environment["XDG_CACHE_HOME"] = sojourn.path(f"cache-{number}")  # no plan is ready
    recorder = subprocess.Popen(
        [sojourn.program, "attach", "-q", "-o", sojourn.path(f"{number}.db"), "--children", "none", "--module",
         "libcrypto*", str(target.pid)],
        env=sojourn.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    attached = hold_reply(target, recorder, lambda: recorder.poll() is not None or is_recorded(sojourn, target.pid))
    wait_until_recorded(sojourn, target.pid, recorder)
    change = subprocess.Popen([sojourn.program, "policy", "set", "--libs", str(target.pid)], env=sojourn.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    changed = hold_reply(target, recorder, lambda: change.poll() is not None)
    output = change.communicate(timeout=PATIENCE_S)
    check(change.returncode == 0, f"policy set: {change.returncode}, {output}")
    recorder.send_signal(signal.SIGINT)
    output = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"the recorder: {recorder.returncode}, {output}")
    return attached, changed


def is_recorded(sojourn, pid):
    return f"{pid} " in sojourn.run(["ps", "--recorded"], capture_output=True, text=True).stdout


def test(sojourn, arguments):
    target = Target([arguments[0]]).ready()
    attached = changed = False
    tries = 0
    while not (attached and changed) and tries < TRIES:
        at_attach, at_change = attach_and_change(sojourn, target, tries)
        attached, changed, tries = attached or at_attach, changed or at_change, tries + 1
    check(attached and changed, f"the program was never seen to wait for a reply: {attached}, {changed}")
    status, output = target.finish()
    check(status == 0, f"the program: {status}, {output}")
    print(f"{tries} tries; {output}")


main(test)
